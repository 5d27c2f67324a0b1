"""Texts and JSON values: terms, tokens, skeletons."""
