"""Secrets and personal data in text: where they stand, and what is shown in their place. Pure."""
