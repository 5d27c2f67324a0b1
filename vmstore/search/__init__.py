"""Search: pages found by their words, as of any moment."""
