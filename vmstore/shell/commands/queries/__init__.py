"""Commands that ask."""
