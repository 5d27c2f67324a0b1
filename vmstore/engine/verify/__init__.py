"""Verify: the chain, the cells and the views checked against the log."""
