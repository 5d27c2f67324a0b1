"""Selects the literals that can occur in a text by its words, so that hundreds of rules cost little.

A text is taken apart once. Most of its words are in no literal, which is remembered of short ones; only the literals
that a word of the text is in are looked for. Keys of vendors are looked for in long words alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

KEY_CHARS_MIN = 20
"""No key is shorter, what gives it away included."""
_KNOWN_MAX = 1 << 15  # words that are remembered, of no more characters than this:
_KNOWN_CHARS_MAX = 24
_SIGNS = bytes(one for one in range(128) if not (chr(one).isalnum() or chr(one) in "_-./+=:~%$@"))
_APART = bytes.maketrans(_SIGNS, b" " * len(_SIGNS))
_OTHERS = bytes(one for one in range(128) if not chr(one).islower())
_LETTERS = bytes.maketrans(_OTHERS, b" " * len(_OTHERS))
_RUN = re.compile(rb"[a-z\x80-\xff]{2,}")


class AnchorWords:
    """The words of a text: those long enough for a key as they stand, and its runs of letters in small ones."""

    def __init__(self, text: str) -> None:
        words = set(text.encode("utf-8", "surrogatepass").translate(_APART).split())
        self.long = b"\n".join([word for word in words if len(word) >= KEY_CHARS_MIN])
        joined = b" ".join(words)
        if not joined.isascii():
            joined = joined.decode("utf-8", "surrogatepass").lower().encode("utf-8", "surrogatepass")
        self.low = joined.lower()
        self.runs = set(self.low.translate(_LETTERS).split())


class Anchors:
    """Literals in small letters, each by its longest run of letters; one that has none can always be there."""

    def __init__(self, literals: Sequence[str]) -> None:
        self._always: dict[int, bytes] = {}
        self._pieces: dict[int, tuple[list[bytes], set[bytes]]] = {}  # of those that a run of letters is not enough for
        self._stems: dict[bytes, list[tuple[int, bool, bool]]] = {}
        for at, literal in enumerate(literals):
            raw = literal.encode()
            run = max(_RUN.finditer(raw), key=lambda found: len(found[0]), default=None)
            pieces = raw.translate(_APART).split()
            if run is not None and pieces != [run[0]]:
                inner = {match[0] for match in _RUN.finditer(raw) if match.start() and match.end() < len(raw)}
                self._pieces[at] = (pieces, inner)
            if run is None:
                self._always[at] = max(pieces, key=len, default=b"")
            else:
                whole = (at, run.start() > 0, run.end() < len(raw))
                self._stems.setdefault(run[0], []).append(whole)
        self._any = re.compile(either(self._stems))
        self._none: set[bytes] = set()  # words that are in no literal
        self._known: dict[bytes, frozenset[int]] = {}

    def within(self, words: AnchorWords) -> set[int]:
        """The numbers of the literals that can stand in a text of such words."""
        found = {at for at, piece in self._always.items() if piece in words.low}
        for word in words.runs - self._none:
            known = self._known.get(word)
            found |= self._look(word) if known is None else known
        for at in found & self._pieces.keys():
            pieces, inner = self._pieces[at]
            if not inner <= words.runs or any(piece not in words.low for piece in pieces):
                found.discard(at)
        return found

    def _look(self, word: bytes) -> frozenset[int]:
        short = len(word) <= _KNOWN_CHARS_MAX
        if self._any.search(word) is None:
            if short:
                if len(self._none) >= _KNOWN_MAX:
                    self._none.clear()
                self._none.add(word)
            return frozenset()
        found = frozenset(
            at
            for stem, rows in self._stems.items()
            if stem in word
            for at, first, last in rows
            if (not first or word.startswith(stem)) and (not last or word.endswith(stem))
        )
        if short:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            self._known[word] = found
        return found


class KeyPrefixes:
    """Published prefixes of keys; some may also follow a letter directly."""

    def __init__(self, literals: Iterable[str], anywhere: Iterable[str]) -> None:
        self._anywhere = tuple((literal, literal.encode()) for literal in anywhere)
        heads = sorted({literal.encode() for literal in literals}, key=len)
        self._first = re.compile(rb"(?<![A-Za-z0-9_])" + either(heads))
        self._inner = {head: tuple(shorter.decode() for shorter in heads if head.startswith(shorter)) for head in heads}

    def within(self, words: AnchorWords) -> set[str]:
        """Those that can stand in a text of such words."""
        if not words.long:
            return set()
        found = {literal for literal, raw in self._anywhere if raw in words.long}
        for head in set(self._first.findall(words.long)):
            found.update(self._inner[head])
        return found


def either(words: Iterable[bytes]) -> bytes:
    """A pattern for the longest of many words that stands at a place: their tree, so that few are tried there."""
    tree: dict[bytes, list[bytes]] = {}
    for word in words:
        tree.setdefault(word[:1], []).append(word[1:])
    ends = b"" in tree
    tree.pop(b"", None)
    branches = [re.escape(first) + either(rest) for first, rest in sorted(tree.items())]
    if not branches:
        return b""
    return b"(?:" + b"|".join(branches) + b")" + (b"?" if ends else b"")
