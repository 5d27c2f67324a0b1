"""Exchanges of decisions, changes and what only looks so, by an author who had not read the finder, and their scores.

An exchange begins with `@` and its manner; `u` and `a` are what user and assistant say, a line that begins with none
of these goes on; `= subject | value | the value it replaces` says what the message before it decides, `=?` what it may
decide. Of several subjects one is enough.

The finder was made with `tune.txt`; of `test.txt` only totals were looked at.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from vmstore.core.page import Role
from vmstore.core.text.stems import terms
from vmstore.vm.claims.claims import Claim, ClaimSource, KnownClaim, find

HERE = Path(__file__).parent


class Label(NamedTuple):
    """What a message decides: its value for one of some subjects, in the place of an older value."""

    subjects: tuple[str, ...]
    value: str
    old: str = ""
    optional: bool = False

    def fits(self, claim: Claim) -> bool:
        """Whether a claim says it, with its subject."""
        text = f"{claim.text} {claim.topic}"
        named = self.value == "-" or self.value.casefold() in text.casefold()
        return named and any(set(terms(one)) <= set(terms(text)) for one in self.subjects)


class Said(NamedTuple):
    """A message of an exchange, with what it decides."""

    role: Role
    text: str
    labels: tuple[Label, ...] = ()


class Totals(NamedTuple):
    """Decisions there are, found and wrong; changes there are, found as such, and claims wrongly replaced."""

    decisions: int = 0
    found: int = 0
    wrong: int = 0
    changes: int = 0
    replaced: int = 0
    replacing: int = 0
    falsely: int = 0

    @property
    def recall(self) -> float:
        """The share of the decisions that was found."""
        return self.found / self.decisions

    @property
    def precision(self) -> float:
        """The share of what was found that is a decision."""
        return self.found / (self.found + self.wrong)

    @property
    def changes_heard(self) -> float:
        """The share of the changes whose claim replaced what they change."""
        return self.replaced / self.changes

    @property
    def replaced_rightly(self) -> float:
        """The share of the replacements of a claim that are changes of it."""
        return 1 - self.falsely / self.replacing


def exchanges(half: str) -> list[list[Said]]:
    """The exchanges of one half."""
    return [
        _exchange(block.split("\n")[1:]) for block in (HERE / f"{half}.txt").read_text("utf-8").strip().split("\n\n")
    ]


def _exchange(lines: list[str]) -> list[Said]:
    talk: list[Said] = []
    for line in lines:
        if told := re.match(r"=(\?)? (.*)", line):
            subjects, value, *old = told[2].split(" | ")
            label = Label(tuple(subjects.split(", ")), value, old[0] if old else "", bool(told[1]))
            talk[-1] = talk[-1]._replace(labels=(*talk[-1].labels, label))
        elif line.startswith(("u ", "a ")):
            talk.append(Said(Role.USER if line[0] == "u" else Role.ASSISTANT, line[2:]))
        else:
            talk[-1] = talk[-1]._replace(text=f"{talk[-1].text}\n{line}")
    return talk


def score(talk: list[Said]) -> Totals:
    """What the finder hears of an exchange; a claim may come with the assistant's answer that takes note of it."""
    sources = [ClaimSource(number, said.role, said.text) for number, said in enumerate(talk, 1)]
    known: dict[str, KnownClaim] = {}
    open_: list[Label] = []
    counts = dict.fromkeys(Totals._fields, 0)
    for number, said in enumerate(talk):
        claims = find([sources[number]], sources[:number], list(known.values()))
        before = {claim.name: known.get(claim.supersedes) for claim in claims}
        for claim in claims:
            known.pop(claim.supersedes, None)
            known[claim.name] = KnownClaim(claim.name, claim.topic, claim.text)
        labels = [*said.labels, *(open_ if said.role is Role.ASSISTANT else ())]
        due = [label for label in said.labels if not label.optional]
        counts["decisions"] += len(due)
        counts["changes"] += sum(bool(label.old) for label in due)
        left, open_ = list(claims), []
        for label in labels:
            hit = next((claim for claim in left if label.fits(claim)), None)
            if hit is not None:
                left.remove(hit)
            if label.optional:
                continue
            if hit is None:
                open_.append(label)
                continue
            counts["found"] += 1
            old = before[hit.name]
            counts["replaced"] += bool(label.old and old is not None and label.old.casefold() in old.text.casefold())
        counts["wrong"] += 0 if any(label.optional for label in labels) else len(left)
        for old in filter(None, before.values()):
            counts["replacing"] += 1
            text = old.text.casefold()
            counts["falsely"] += not any(
                label.optional or (label.old and label.old.casefold() in text) for label in labels
            )
    return Totals(**counts)


def total(half: str) -> Totals:
    """Of all exchanges of a half together."""
    return Totals(*(sum(part) for part in zip(*map(score, exchanges(half)), strict=True)))
