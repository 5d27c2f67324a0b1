"""Texts are cut into statements and commands at the right places, whatever stands in quotes and comments."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vmstore.errors import InputError
from vmstore.shell.vmql.script import ScriptPiece, file_text, is_whole, open_quote, pieces, stretches

SIGNS = st.text(alphabet="ab ;'\"-\n\\.$1", max_size=40)


def pieces_of(text: str) -> list[tuple[str, bool, bool]]:
    """The pieces of a text: what each says, whether it is a command, whether it is closed."""
    return [(piece.text.strip(), piece.command, piece.closed) for piece in pieces(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("PAGES; CALLS;", [("PAGES", False, True), ("CALLS", False, True)]),
        ("PAGES\nWHERE x = 'a;''b';", [("PAGES\nWHERE x = 'a;''b'", False, True)]),
        ("PAGES -- a ; b\n;", [("PAGES -- a ; b", False, True)]),
        ('PAGES "a;b";', [('PAGES "a;b"', False, True)]),
        ("PAGES; CALLS", [("PAGES", False, True), ("CALLS", False, False)]),
        ("\\mode json\nPAGES;", [("\\mode json", True, True), ("PAGES", False, True)]),
        (" .mode json", [(".mode json", True, True)]),
        ("-- why\n\\mode json", [("\\mode json", True, True)]),
        ("PAGES WHERE\n.5 < x;", [("PAGES WHERE\n.5 < x", False, True)]),
        ("PAGES; .mode json", [("PAGES", False, True), (".mode json", False, False)]),
        ("quit\n", [("quit", True, True)]),
        ("Exit;", [("Exit;", True, True)]),
        ("help me;", [("help me", False, True)]),
        (";; -- nothing\n ;", []),
        ("PAGES 'open;", [("PAGES 'open;", False, False)]),
    ],
)
def test_a_text_is_cut_where_statements_end(text: str, wanted: list[tuple[str, bool, bool]]) -> None:
    """A `;` outside quotes and comments ends a statement, a line's end a command that begins it."""
    assert pieces_of(text) == wanted


@given(SIGNS)
def test_nothing_of_a_text_is_lost(text: str) -> None:
    """The stretches of any text are the text, and each piece stands where it says."""
    assert "".join(stretch.text for stretch in stretches(text)) == text
    for piece in pieces(text):
        assert text.startswith(piece.text, piece.start)


@given(SIGNS)
def test_a_whole_text_stays_whole(text: str) -> None:
    """A text whose statements are all closed is whole, and one more statement without its end is not."""
    assert is_whole(text) == all(piece.closed for piece in pieces(text))
    if is_whole(text):
        assert not is_whole(text + "\nPAGES")


@pytest.mark.parametrize(
    ("text", "quote"),
    [("a", ""), ("'a", "'"), ("'a'", ""), ("'a''", "'"), ("'", "'"), ("''", ""), ('"', '"'), ('"a"', ""), ("-- '", "")],
)
def test_an_open_quote_is_known(text: str, quote: str) -> None:
    """The quote that a text leaves open is named, one in a comment or doubled is not open."""
    assert open_quote(text) == quote


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 or hold a NUL, and paths that cannot be read, are refused with the reason."""
    for content in (b"\xff\xfe", b"PAGES\0;"):
        (tmp_path / "q").write_bytes(content)
        with pytest.raises(InputError, match="is no text"):
            file_text(tmp_path / "q")
    with pytest.raises(InputError, match="No such file"):
        file_text(tmp_path / "none")
    (tmp_path / "q").write_bytes(b"\xef\xbb\xbfPAGES;")
    assert file_text(tmp_path / "q") == "PAGES;"


def test_long_texts_are_cut() -> None:
    """Hundreds of thousands of statements on one line, or of quotes in one statement, are cut at once."""
    assert sum(1 for _ in pieces("a;" * 300_000)) == 300_000
    assert list(pieces("'" * 299_999)) == [ScriptPiece("'" * 299_999, 0, closed=False)]
