"""A store for every client of the Model Context Protocol."""
