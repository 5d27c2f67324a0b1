"""Times that texts and questions name, as intervals."""
