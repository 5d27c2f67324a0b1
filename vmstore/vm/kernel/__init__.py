"""The kernel: state, decisions, eviction. Pure."""
