"""A server for a team over the namespaces of a store."""
