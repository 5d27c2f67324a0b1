"""The conversation of a recorded session: messages matched, pages created, the log caught up with."""
