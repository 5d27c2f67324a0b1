"""A namespace: one log with its views and its gate, under one lock."""
