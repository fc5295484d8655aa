"""The page scripts, joined by seqdemo.ui.assets in the order given there."""
