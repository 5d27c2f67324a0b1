"""Texts that are made to begin like secrets, over and over: the time to read them grows as they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.growing import grows_at_most
from tests.lanes import tries
from vmstore.redact.find import KEYS, LOW, spans
from vmstore.redact.span import Literal, SecretKind

NIGHT = tries(1) > 1  # time is measured then, of longer texts
LITERALS = sorted(
    {key.literal for key in KEYS}
    | {literal for item in LOW for literal in ([item.literal] if isinstance(item, Literal) else item.needs)}
)
TAILS = ("", " ", "=", ": ", "\n", '="', "('", "x9", "/a", '"""')
ODD = ("aaaaaaaa", "xxxxxx-", "1a2B3c4D5e6F7g8H9", "----", "====", "(1", "AB12", "\\", '"', "\u00e9", "1111 ", "::")
WORST = (
    *(
        "snmp",
        "psexec",
        "palavra-passe=",
        "LS0tLS1CRUdJTi",
        "-----BEGIN PRIVATE KEY-----\n",
        "keytab: ",
        "token",
        "seed",
    ),
    *("jwt=", "default=", "sk-ant-xxxxxx-", "key-", "backup codes:\n1234 5\n", "a,password,b\n", "token: >\n  "),
)


def work(piece: str, length: int) -> Callable[[], object]:
    """Reads a text of a length that is one piece again and again."""
    text = (piece * (length // len(piece) + 1))[:length]
    return lambda: spans(text, set(SecretKind))


@pytest.mark.parametrize("piece", WORST)
def test_a_long_text_of_one_piece(piece: str) -> None:
    """Eight times the characters cost at most some twenty times as much, for the pieces that cost most."""
    length = 32_000 if NIGHT else 2_000
    assert grows_at_most(work(piece, length), work(piece, 8 * length), 20)


@pytest.mark.parametrize("tail", TAILS)
def test_every_literal_of_the_tables(tail: str) -> None:
    """So with each literal that anything is looked for at, whatever sign follows it; of each sign a share by day."""
    assert len(LITERALS) > 500
    for literal in LITERALS if NIGHT else LITERALS[TAILS.index(tail) :: 3 * len(TAILS)]:
        piece = literal + tail
        assert grows_at_most(work(piece, 500), work(piece, 4_000), 20), piece


@settings(max_examples=tries(20), deadline=None)
@given(st.lists(st.sampled_from((*LITERALS, *TAILS[1:], *ODD)), min_size=1, max_size=6).map("".join))
def test_pieces_of_literals(piece: str) -> None:
    """So with whatever pieces are made of several."""
    assert grows_at_most(work(piece, 500), work(piece, 4_000), 20)
