"""The kinds of tasks, with their batches, loss and score on dev."""
