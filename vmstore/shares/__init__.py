"""Shared regions: namespaces that others may use as far as their grants go."""
