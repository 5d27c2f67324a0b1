"""The arguments of commands, read without loading the store."""
