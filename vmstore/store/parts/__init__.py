"""The parts of a store: its care, its trust, its sharing, its catalog and its index."""
