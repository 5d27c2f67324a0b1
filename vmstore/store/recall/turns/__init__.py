"""Turns of a session after the fact: their tags, and older ones in a sentence each."""
