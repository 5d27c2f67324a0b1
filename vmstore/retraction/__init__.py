"""Retraction: all that came of a cause marked as superseded."""
