"""How many of the facts that a reader found in utterances the finder without a model finds too.

`python tools/fact_bench.py FILE.jsonl [--misses] [--wrong]`: a line is an utterance with `speaker`, `date`, `text` and
its `facts` (`subject`, `verb`, `what`), beside `optional_facts` that are neither right nor wrong, and for a `reversal`
the `context` of what was said before. Two facts are one where their subjects fit and they share half the terms of the
shorter one; what only says that an earlier fact is over is neither right nor wrong. Printed are recall, precision, the
reversals that end a fact of the `context` which the reader says is over (`supersedes`), and the ends of others.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from vmstore.core.text.stems import terms
from vmstore.core.times import microseconds
from vmstore.facts.addition import Addition, HeldFact, additions
from vmstore.facts.fact import StatedFact
from vmstore.facts.find import Utterance, find

SHARED_MIN = 0.5
SELF = frozenset(("i", "me", "user", "we"))


def telling(text: str) -> frozenset[str]:
    """The terms of a text."""
    return frozenset(terms(text))


def fits(found: StatedFact, wanted: dict[str, Any], speaker: str) -> bool:
    """Whether a fact that was found is one that a reader labelled."""
    mine, theirs = (telling(f"{subject} {what}") for subject, what in (
        (found.subject, f"{found.verb} {found.what}"), (wanted["subject"], f"{wanted['verb']} {wanted['what']}"),
    ))  # fmt: skip
    who = telling(speaker) | telling("user")
    shared = (mine & theirs) - who
    shorter = min(len(mine - who), len(theirs - who))
    objects = telling(f"{found.verb} {found.what}") & telling(f"{wanted['subject']} {wanted['what']} {wanted['verb']}")
    return bool(objects - who) and len(shared) >= SHARED_MIN * shorter


def found_in(row: dict[str, Any]) -> list[StatedFact]:
    """What the finder finds in an utterance."""
    at = microseconds(datetime.fromisoformat(row["date"]))
    return list(find(Utterance(1, row["speaker"], row["text"], at)))


def held_before(row: dict[str, Any]) -> list[HeldFact]:
    """What is known of what was said before an utterance."""
    known = [fact for said in row.get("context") or [] for fact in found_in(said)]
    return [HeldFact(fact, place + 1) for place, fact in enumerate(known)]


def ends(added: list[Addition], held: list[HeldFact], row: dict[str, Any]) -> tuple[int, int]:
    """How many facts of before an utterance ends: of those that a reader says are over, and of others."""
    gone = [other.fact for one in added for other in held if one.fact is not None and ended_by(one, other)]
    said = [one["supersedes"]["what"] for one in row["facts"] if one.get("supersedes")]
    right = sum(any(telling(f"{fact.verb} {fact.what}") & telling(what) for what in said) for fact in gone)
    return right, len(gone) - right


def ended_by(addition: Addition, other: HeldFact) -> bool:
    """Whether an addition replaces a fact, by name or as the next value at its address."""
    fact, old = addition.fact, other.fact
    assert fact is not None, "what only gains a source ends nothing"
    at_one = bool(fact.one and old.one) and (fact.subject, fact.attribute) == (old.subject, old.attribute)
    return addition.old == other or (at_one and fact.what.casefold() != old.what.casefold())


def main(arguments: list[str]) -> int:
    """Prints the figures of a file."""
    path = next(one for one in arguments if not one.startswith("--"))
    wanted = right = given = good = reversed_ = ended = wrong = 0
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        held = held_before(row)
        added = [one for one in additions(held, found_in(row)) if one.fact is not None]
        found = [one.fact for one in added if one.fact is not None]
        over, others = ends(added, held, row)
        reversed_, ended, wrong = reversed_ + row["reversal"], ended + bool(over), wrong + others
        if row["reversal"] and not over and "--misses" in arguments:
            print(f"< {row['id']} ends nothing   <- {row['text'][:200]!r} after {[one.fact.what for one in held]}")
        labelled, optional = row["facts"], row.get("optional_facts", [])
        hit = [any(fits(fact, one, row["speaker"]) for fact in found) for one in labelled]
        fit = [any(fits(fact, one, row["speaker"]) for one in labelled) for fact in found]
        extra = [
            not ok and (one.old is not None or any(fits(fact, each, row["speaker"]) for each in optional))
            for one, fact, ok in zip(added, found, fit, strict=True)
        ]
        wanted, right = wanted + len(labelled), right + sum(hit)
        given, good = given + len(found) - sum(extra), good + sum(fit)
        for one, ok in zip(labelled, hit, strict=True):
            if not ok and "--misses" in arguments:
                print(f"- {row['id']} {one['subject']} | {one['verb']} | {one['what']}   <- {row['text'][:300]!r}")
        for fact, ok, spare in zip(found, fit, extra, strict=True):
            if not ok and not spare and "--wrong" in arguments:
                print(f"+ {row['id']} {fact.subject} | {fact.verb} | {fact.what}   <- {fact.text[:200]!r}")
    print(f"recall {right}/{wanted} = {right / max(wanted, 1):.3f}")
    print(f"precision {good}/{given} = {good / max(given, 1):.3f}")
    print(f"reversals that end what was said before {ended}/{reversed_}, wrong ends {wrong}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
