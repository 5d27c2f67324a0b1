"""Decides recorded sessions again: under other policies and budgets, or the same to check them."""
