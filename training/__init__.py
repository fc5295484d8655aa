"""From raw data to an evaluated checkpoint: `python -m training --help`."""
