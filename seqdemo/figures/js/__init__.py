"""The drawings: ES modules, and beside a module the sheet it needs. Joined by seqdemo.figures.modules."""
