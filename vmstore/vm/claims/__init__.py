"""Decisions found in what was said, by patterns of English."""
