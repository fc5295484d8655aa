"""What goes out: cards, tables, the gallery of examples, repositories on the Hub."""
