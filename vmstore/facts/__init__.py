"""What sentences state: facts, their addresses and their verbs. Pure, and each finder and parser has a version."""
