"""Live sessions as users hold them."""
