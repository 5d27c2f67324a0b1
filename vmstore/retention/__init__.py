"""Retention: rules stated in the namespace, and what is due by them."""
