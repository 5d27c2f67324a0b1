"""From text to nodes and back."""
