"""Runs the kernel on a session as it happens."""
