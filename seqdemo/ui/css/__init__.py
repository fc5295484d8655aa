"""The page styles."""
