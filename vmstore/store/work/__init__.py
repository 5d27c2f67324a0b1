"""The doors to an agent's work: what tools did, what to be warned of, what was learned."""
