"""One training run: the loop, its state on disk, resuming, several processes, what the person sees."""
