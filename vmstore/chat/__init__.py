"""Conversations with a model over a live session, on a screen or from a list of prompts."""
