"""Commits of other logs taken in: as they are, or re-encoded."""
