"""Maintenance of a store: verify, doctor, backup, archive, upgrade."""
