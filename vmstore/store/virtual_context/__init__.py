"""Memory in two calls around somebody's own model call: what to send before it, what was said after it."""
