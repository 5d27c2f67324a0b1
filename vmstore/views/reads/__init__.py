"""Reads of the views that need more than one of them."""
