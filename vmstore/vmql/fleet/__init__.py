"""Statements over many namespaces: the rows of each, with its name in a column, as one relation."""
