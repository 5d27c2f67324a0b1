"""Publication: sessions and column segments of a store put into a cold tier."""
