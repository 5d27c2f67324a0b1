"""What a session's memory did, in numbers."""
