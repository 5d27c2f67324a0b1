"""Snapshots of folded live sessions."""
