"""Suggests the known name that was probably meant by an unknown one."""

from __future__ import annotations

from collections.abc import Iterable

NEAR = 0.6  # of difflib's ratio: for words of a closed vocabulary
LOOSE = 0.4  # names that people gave, which are longer and differ in their ends
ANY = 0.0  # whatever is nearest, where one is to be named


def suggest(name: str, names: Iterable[str], least: float = NEAR) -> str | None:
    """The name nearest to one that is not known, else the first that ends with it; None where there is neither.

    So `reported` is answered by `tokens_reported`.
    """
    import difflib  # only a mistake needs it

    known = list(names)
    close = difflib.get_close_matches(name, known, 1, least)
    if close:
        return close[0]
    return next((each for each in known if name and each.lower().endswith(f"_{name.lower()}")), None)
