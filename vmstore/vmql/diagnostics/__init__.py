"""What is wrong with a text, and what was meant."""
