"""Finds claims at the door: by a callback that was handed in, else by the patterns of `vmstore.vm.claims.claims`.

What it says is checked, written as claim pages and so recorded: a replay never asks it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from vmstore.errors import InputError
from vmstore.vm.claims.claims import NAME_CHARS_MAX, Claim, ClaimSource, KnownClaim, find, handed_in
from vmstore.vm.compressors.callback import TIMEOUT_S, Outcome, heard

Callback = Callable[[list[dict[str, Any]], list[dict[str, Any]]], Any]
"""The message just said and those before it, as `{"page", "role", "text"}`, to a list of claims or its JSON.

A claim is `{"text", "name", "topic", "sources"}` with the pages it came from, and may say `supersedes`,
the name of the claim it replaces.
"""


class ClaimFinder:
    """The patterns, and the callback that goes before them; `outcomes` counts what came of asking it."""

    def __init__(self, callback: Callback | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._callback = callback
        self._timeout_s = timeout_s
        self.outcomes: dict[Outcome, int] = {}

    def of(
        self, turn: Sequence[ClaimSource], before: Sequence[ClaimSource], known: Sequence[KnownClaim]
    ) -> tuple[Claim, ...]:
        """The claims of what was just said."""
        if self._callback is None:
            return find(turn, before, known)
        outcome, claims = self._asked(self._callback, turn, before)
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1
        return find(turn, before, known) if claims is None else claims

    def _asked(
        self, callback: Callback, turn: Sequence[ClaimSource], before: Sequence[ClaimSource]
    ) -> tuple[Outcome, tuple[Claim, ...] | None]:
        outcome, answer = heard(lambda: callback(_plain(turn), _plain(before)), self._timeout_s)
        if outcome is not Outcome.ANSWERED:
            return outcome, None
        try:
            text = answer if isinstance(answer, str | bytes) else msgspec.json.encode(answer)
            claims = handed_in(text, [source.page for source in (*before, *turn)])
            printable = all(claim.name.isprintable() and len(claim.name) <= NAME_CHARS_MAX for claim in claims)
            return (outcome, claims) if printable else (Outcome.WRONG_TYPE, None)
        except (InputError, TypeError, ValueError, OverflowError, RecursionError):
            return Outcome.WRONG_TYPE, None


def _plain(sources: Sequence[ClaimSource]) -> list[dict[str, Any]]:
    return [{"page": source.page, "role": source.role.word, "text": source.text} for source in sources]
