"""A memory's session in the store: how it is written, and the state that is folded from it."""
