"""The chat's screens, of Textual; only what shows them loads them."""
