"""Chunks: windows of a text that overlap, each short enough for an embedder to take in whole."""

from __future__ import annotations

TOKENS = 200  # of a chunk, estimated at four characters each
TOKENS_SHARED = 40  # that a chunk has in common with the one before
CHARS, CHARS_SHARED = 4 * TOKENS, 4 * TOKENS_SHARED
CHUNKS_MAX = 512  # of one text: 80,000 tokens; what stands further down is found by its words


def chunks(text: str) -> list[tuple[int, int]]:
    """Start and end of each chunk of a text; none for a blank text.

    A chunk ends behind a blank where one stands in its last fifth, at a line's end rather than at a word's.
    """
    found: list[tuple[int, int]] = []
    start, size = 0, len(text)
    while start < size and len(found) < CHUNKS_MAX:
        end = size if size - start <= CHARS else _end(text, start)
        if not text[start:end].isspace():
            found.append((start, end))
        if end == size:
            break
        start = end - CHARS_SHARED
    return found


def _end(text: str, start: int) -> int:
    least, most = start + CHARS - CHARS_SHARED, start + CHARS
    for mark in ("\n", " "):
        at = text.rfind(mark, least, most)
        if at >= 0:
            return at + 1
    return most
