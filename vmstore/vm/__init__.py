"""Decides what is in the prompt: pure, deterministic, each decision with its reasons."""
