"""What the turns of a live session are about: their tags, and where a topic gives way to another."""
