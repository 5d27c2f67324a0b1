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


def fits(fact: StatedFact, wanted: dict[str, Any], speaker: str) -> bool:
    """Whether a fact that was found is one that a reader labelled."""
    mine, theirs = (telling(f"{subject} {what}") for subject, what in (
        (fact.subject, f"{fact.verb} {fact.what}"), (wanted["subject"], f"{wanted['verb']} {wanted['what']}"),
    ))  # fmt: skip
    who = telling(speaker) | telling("user")
    shared = (mine & theirs) - who
    shorter = min(len(mine - who), len(theirs - who))
    objects = telling(f"{fact.verb} {fact.what}") & telling(f"{wanted['subject']} {wanted['what']} {wanted['verb']}")
    return bool(objects - who) and len(shared) >= SHARED_MIN * shorter


def found_in(row: dict[str, Any]) -> list[StatedFact]:
    """What the finder finds in an utterance."""
    at = microseconds(datetime.fromisoformat(row["date"]))
    return list(find(Utterance(1, row["speaker"], row["text"], at)))


def held_before(row: dict[str, Any]) -> list[HeldFact]:
    """What is known of what was said before an utterance."""
    known = [fact for expected in row.get("context") or [] for fact in found_in(expected)]
    return [HeldFact(fact, place + 1) for place, fact in enumerate(known)]


def ends(added: list[Addition], facts: list[HeldFact], row: dict[str, Any]) -> tuple[int, int]:
    """How many facts of before an utterance ends: of those that a reader says are over, and of others."""
    gone = [
        other.fact for addition in added for other in facts if addition.fact is not None and ended_by(addition, other)
    ]
    value = [fact["supersedes"]["what"] for fact in row["facts"] if fact.get("supersedes")]
    who = telling(row["speaker"]) | telling("user")
    named = [telling(f"{fact.subject} {fact.verb} {fact.what}") - who for fact in gone]
    right = sum(any(words & telling(what) for what in value) for words in named)
    return right, len(gone) - right


def ended_by(addition: Addition, other: HeldFact) -> bool:
    """Whether an addition replaces a fact, by name or as the next value at its address."""
    fact, old = addition.fact, other.fact
    assert fact is not None, "what only gains a source ends nothing"
    at_one = bool(fact.one and old.one) and (fact.subject, fact.attribute) == (old.subject, old.attribute)
    return addition.old == other or (at_one and fact.what.casefold() != old.what.casefold())


def main(arguments: list[str]) -> int:
    """Prints the figures of a file."""
    path = next(argument for argument in arguments if not argument.startswith("--"))
    wanted = right = number = good = reversed_ = ended = wrong = 0
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        facts = held_before(row)
        added = [addition for addition in additions(facts, found_in(row)) if addition.fact is not None]
        actual_facts = [addition.fact for addition in added if addition.fact is not None]
        over, others = ends(added, facts, row)
        reversed_, ended, wrong = reversed_ + row["reversal"], ended + bool(over), wrong + others
        if row["reversal"] and not over and "--misses" in arguments:
            print(f"< {row['id']} ends nothing   <- {row['text'][:200]!r} after {[fact.fact.what for fact in facts]}")
        labelled, optional = row["facts"], row.get("optional_facts", [])
        hit = [any(fits(fact, entry, row["speaker"]) for fact in actual_facts) for entry in labelled]
        fit = [any(fits(fact, entry, row["speaker"]) for entry in labelled) for fact in actual_facts]
        extra = [
            not ok and (entry.old is not None or any(fits(fact, each, row["speaker"]) for each in optional))
            for entry, fact, ok in zip(added, actual_facts, fit, strict=True)
        ]
        wanted, right = wanted + len(labelled), right + sum(hit)
        number, good = number + len(actual_facts) - sum(extra), good + sum(fit)
        for item, ok in zip(labelled, hit, strict=True):
            if not ok and "--misses" in arguments:
                print(f"- {row['id']} {item['subject']} | {item['verb']} | {item['what']}   <- {row['text'][:300]!r}")
        for fact, ok, spare in zip(actual_facts, fit, extra, strict=True):
            if not ok and not spare and "--wrong" in arguments:
                print(f"+ {row['id']} {fact.subject} | {fact.verb} | {fact.what}   <- {fact.text[:200]!r}")
    print(f"recall {right}/{wanted} = {right / max(wanted, 1):.3f}")
    print(f"precision {good}/{number} = {good / max(number, 1):.3f}")
    print(f"reversals that end what was said before {ended}/{reversed_}, wrong ends {wrong}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
