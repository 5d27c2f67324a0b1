"""The parts of a session's memory: facts, tags, segments and turns; and the facts of a store."""
