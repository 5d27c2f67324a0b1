"""Suggests the known name that was probably meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 0.6  # of difflib's ratio: for words of a closed vocabulary
LOOSE = 0.4  # names that people gave, which are longer and differ in their ends
ANY = 0.0  # whatever is nearest, where one is to be named


def suggest(name: str, names: Iterable[str], least: float = NEAR) -> str | None:
    """The name nearest to one that is not known; None where none is at `least` so near."""
    import difflib  # only a mistake needs it

    close = difflib.get_close_matches(name, list(names), 1, least)
    return close[0] if close else None
