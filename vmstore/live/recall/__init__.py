"""What a live session finds and notices by itself."""
