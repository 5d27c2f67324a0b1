"""Which pages may answer a text: terms, topics, postings."""
