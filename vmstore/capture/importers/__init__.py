"""Importers: session files read by format and written as sessions."""
