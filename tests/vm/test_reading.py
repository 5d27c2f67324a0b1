"""Reading: a text in pieces that are kept whole or left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.vm.recall.text_pieces import (
    CHARS_MAX,
    PieceKind,
    bounded,
    looks_like_code,
    pieces,
    readable,
    runs_on,
    sentences,
    without_controls,
)

SENTENCES = [
    ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
    ("Pi is 3.14159 here. Next.", ["Pi is 3.14159 here.", "Next."]),
    ("See src/app.py for it. Done.", ["See src/app.py for it.", "Done."]),
    ("Version 1.2.3 is out. Update.", ["Version 1.2.3 is out.", "Update."]),
    ("Use e.g. Redis. Or not.", ["Use e.g. Redis.", "Or not."]),
    ("Ask Dr. Smith. He knows.", ["Ask Dr. Smith.", "He knows."]),
    ('He said "no." Then he left.', ['He said "no."', "Then he left."]),
    ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
    ("Open https://example.org/a.b?c=d.e now. Then go.", ["Open https://example.org/a.b?c=d.e now.", "Then go."]),
    ("今日は。元気？はい", ["今日は。", "元気？", "はい"]),
    ("ok. let's go! yes? fine", ["ok.", "let's go!", "yes?", "fine"]),
    ("The U.S. economy grew.", ["The U.S. economy grew."]),
    ("Hm... maybe so.", ["Hm... maybe so."]),
    ("...", ["..."]),
    ("", []),
]


@pytest.mark.parametrize(("text", "texts"), SENTENCES)
def test_sentences_end_where_they_end(text: str, texts: list[str]) -> None:
    """A point inside a number, path, address or abbreviation ends no sentence."""
    assert sentences(text) == texts


PAGE = """# Title

First sentence. Second one that is long enough to be wrapped
runs on.

- an item
  with a second line
1. another

> quoted
> twice

```python
x = 1

y = 2
```
def f(a):
    return a

    return b
After.
"""


def test_a_page_comes_apart_into_its_pieces() -> None:
    """Headings, sentences, items, quotations and code come as they stand, code with its blank lines."""
    assert [(piece.kind, piece.text, piece.line) for piece in pieces(PAGE)] == [
        (PieceKind.HEADING, "# Title", 0),
        (PieceKind.SENTENCE, "First sentence.", 2),
        (PieceKind.SENTENCE, "Second one that is long enough to be wrapped\nruns on.", 2),
        (PieceKind.ITEM, "- an item\n  with a second line", 5),
        (PieceKind.ITEM, "1. another", 7),
        (PieceKind.QUOTE, "> quoted\n> twice", 9),
        (PieceKind.CODE, "```python\nx = 1\n\ny = 2\n```", 12),
        (PieceKind.CODE, "def f(a):\n    return a\n\n    return b", 17),
        (PieceKind.SENTENCE, "After.", 21),
    ]


@given(st.text(st.sampled_from("ab .!?\n`>-#1{}();=\t\"'")), st.text(max_size=50))
def test_pieces_are_of_the_text(text: str, more: str) -> None:
    """Every piece stands in the text as it is, and nothing but spaces stands between two."""
    text = without_controls(text + more)
    at = 0
    for piece in pieces(text):
        actual = text.find(piece.text, at)
        assert actual >= 0 and not text[at:actual].strip(), (piece, text[at:actual])
        at = actual + len(piece.text)
    assert not text[at:].strip()


CODE = [
    "def f(x):",
    "import os",
    "from a.b import c",
    "const x = 1;",
    "x += 1",
    "    }",
    "</div>",
    "| a | b |",
    "$ ls -l",
    ">>> 1 + 1",
    "src/app.py:12: error",
    "12:    return x",
    "SELECT name FROM users",
    "Traceback (most recent call last):",
    "-rw-r--r-- 1 root root 42 a.txt",
    "@dataclass",
    "#include <stdio.h>",
    "x" * 3_000,
]
PROSE = [
    "Let me look at the file.",
    "For the cache we use Redis, from Monday on:",
    "if you like it, take it",
    "It costs 3.50 (or more) at the shop.",
    "class is over",
    "from the beginning to the end",
    "import everything that is needed and go on",
    "See section 4.2, page 7.",
    "",
]


@pytest.mark.parametrize("line", CODE, ids=[line[:20] for line in CODE])
def test_code_is_seen(line: str) -> None:
    """Lines of programs, tables, listings and prompts are told from prose."""
    assert looks_like_code(line)


@pytest.mark.parametrize("line", PROSE)
def test_prose_is_no_code(line: str) -> None:
    """Prose is not taken for code, though it may begin with a keyword."""
    assert not looks_like_code(line)


LINES = [
    ("The first half of a sentence that was wrapped by some editor", "goes on here", True),
    ("A sentence that was wrapped before a name that we all know as", "Ana goes on in the next line.", True),
    ("It ends here, though the line is long enough to be wrapped.", "and goes on", False),
    ("alpha.txt", "beta.txt", False),
    ("step 17 of 400: done with file number 17 and all its parts", "step 18 of 400: done with file", False),
    ("The first half of a sentence that was wrapped by some editor", "label: not of it", False),
    ("The first half of a sentence that was wrapped by some editor", "", False),
]


@pytest.mark.parametrize(("line", "following", "goes_on"), LINES)
def test_a_wrapped_line_runs_on(line: str, following: str, goes_on: bool) -> None:
    """A long line without its end goes on in the next; a line of a list does not."""
    assert runs_on(line, following) is goes_on


def test_controls_are_left_out() -> None:
    """Colours of terminals and control characters go, line ends of every system become one."""
    assert readable(b"\x1b[31mred\x1b[0m\x00\x07 a\r\nb\rc\td") == "red a\nb\nc\td"
    assert readable(b"\xff\xfe") is None


def test_a_long_text_is_read_at_its_ends() -> None:
    """Of a text over the limit the first three quarters of the limit and the last quarter are read."""
    text = "a" * CHARS_MAX + "b" * CHARS_MAX
    head, tail = bounded(text)
    assert (len(head), len(tail), set(tail)) == (CHARS_MAX * 3 // 4, CHARS_MAX // 4, {"b"})
    assert bounded("short") == ("short", "")
