"""A prompt put together from what a session remembers: what stands in it, what it took, and why."""
