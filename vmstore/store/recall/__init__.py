"""RecallAnswer: what a session's memory is asked, within a token budget."""
