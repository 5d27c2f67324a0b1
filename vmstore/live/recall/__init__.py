"""Recall by a live session itself."""
