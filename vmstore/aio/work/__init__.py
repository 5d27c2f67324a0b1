"""The async twins of an agent's work and its parts."""
