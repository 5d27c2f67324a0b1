"""Many namespaces as one that is asked, and the care of them by many workers."""
