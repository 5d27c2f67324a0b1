"""Prices of models: a dated list of published ones, and estimates by it."""
