"""Seals: signed roots over all sessions, and proofs that a later one extends an earlier one."""
