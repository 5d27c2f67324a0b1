"""Recall in the kernel: terms, topics, postings."""
