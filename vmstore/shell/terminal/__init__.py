"""Answers on a terminal: layout, formats, colours."""
