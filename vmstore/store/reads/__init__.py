"""Answers about sessions, one file each."""
