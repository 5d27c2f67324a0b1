"""Plans run: rows as they are taken."""
