"""Embedders: what gives texts vectors, passed in when a store is opened."""
