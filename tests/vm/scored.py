"""How well decisions are heard: talks that somebody wrote who had not seen the finder, and what is held in each.

`decisions.jsonl` has two halves. The finder was made with the half `tune`; of the half `test` only the totals
were looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from vmstore.core.page import Role
from vmstore.core.text.stems import terms
from vmstore.vm.claims.claims import Claim, ClaimKind, ClaimSource, KnownClaim, find

TALKS = Path(__file__).with_name("decisions.jsonl")


class Totals(NamedTuple):
    """What is held in some talks, how much of it was found, and what else was."""

    held: int
    found: int
    wrong: int

    @property
    def recall(self) -> float:
        """The share of what is held that was found."""
        return self.found / self.held if self.held else 1.0

    @property
    def precision(self) -> float:
        """The share of what was found that is held."""
        return self.found / (self.found + self.wrong) if self.found + self.wrong else 1.0


def talks(half: str) -> Iterator[dict[str, Any]]:
    """The talks of one half."""
    for line in TALKS.read_text("utf-8").splitlines():
        if (row := json.loads(line))["half"] == half:
            yield row


def heard(talk: list[dict[str, str]]) -> list[tuple[int, Claim]]:
    """The claims of a talk, each with the number of the message it came from."""
    said = [ClaimSource(number, Role[one["role"].upper()], one["text"]) for number, one in enumerate(talk)]
    known: dict[str, KnownClaim] = {}
    claims = []
    for number, one in enumerate(said):
        for claim in find([one], said[:number], list(known.values())):
            known.pop(claim.supersedes, None)
            known.pop(claim.name, None)
            known[claim.name] = KnownClaim(claim.name, claim.topic, claim.text)
            claims.append((number, claim))
    return claims


def score(row: dict[str, Any]) -> Totals:
    """What was found of one talk, with the subject and the value, where it is said; a change must supersede."""
    claims = heard(row["talk"])
    found = 0
    right: set[int] = set()
    for held in row["held"]:
        for number, (at, claim) in enumerate(claims):
            if at == held["at"] and number not in right and says(claim, held):
                found += 1
                right.add(number)
                break
    values = [value.casefold() for held in row["held"] for value in held.get("not", ())]
    before = min((held["at"] for held in row["held"]), default=0) if row["kind"] == "change" else 0
    wrong = 0
    for number, (at, claim) in enumerate(claims):
        earlier = at < before and any(value in claim.text.casefold() for value in values)
        wrong += number not in right and not earlier
    return Totals(len(row["held"]), found, wrong)


def says(claim: Claim, held: dict[str, Any]) -> bool:
    """Whether a claim says what is held: its value, of its subject; what it replaces only beside that."""
    text = claim.text.casefold()
    told = set(terms(f"{claim.text} {claim.topic}"))
    value = held["value"].casefold()
    if value not in text or not set(terms(held["subject"])) <= told:
        return False
    return claim.kind is ClaimKind.REVERSAL or all(
        old.casefold() not in text or old.casefold() in value for old in held.get("not", ())
    )


def total(rows: list[dict[str, Any]]) -> Totals:
    """Of all of them together."""
    scores = [score(row) for row in rows]
    return Totals(*(sum(part) for part in zip(*scores, strict=True))) if scores else Totals(0, 0, 0)


__all__ = ["ClaimKind", "Totals", "heard", "says", "score", "talks", "total"]
