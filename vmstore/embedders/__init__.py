"""Embedders: what gives texts vectors, handed in by whoever opens a store."""
