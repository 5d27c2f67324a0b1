"""Ways out of a store: bundles, tables, backups, and where the bytes are. Nothing here writes to a log."""
