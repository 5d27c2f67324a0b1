"""Metrics of a session's memory."""
