"""Topics of a live session: tags of turns, and boundaries between topics."""
