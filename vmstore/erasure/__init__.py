"""Erasure, top to bottom: plan, record, destroy, forget, certify, resume."""
