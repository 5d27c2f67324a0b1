"""The language on one page."""

from __future__ import annotations

from pathlib import Path

CARD = Path(__file__).with_name("card.vmql")


def text() -> str:
    """The card, which is a script: what is no statement on it is a comment."""
    return CARD.read_text(encoding="utf-8")
