"""How many of the facts that a reader found in utterances the finder without a model finds too.

`python tools/fact_bench.py FILE.jsonl [--misses] [--wrong]`: a line is an utterance with `speaker`, `date`, `text` and
its `facts` (`subject`, `verb`, `what`), beside `optional_facts` that are neither right nor wrong, and for a `reversal`
the `context` of what was said before. Two facts are one where their subjects fit and they share half the terms of the
shorter one. Printed are recall, precision and the share of reversals whose new fact replaces the old.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from vmstore.core.text.stems import terms
from vmstore.core.times import microseconds
from vmstore.facts.addition import HeldFact, additions
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


def replaces(row: dict[str, Any], found: list[StatedFact]) -> bool:
    """Whether what a reversal states ends something that was found in what was said before."""
    known = [fact for said in row["context"] for fact in found_in(said)]
    held = [HeldFact(fact, place + 1) for place, fact in enumerate(known)]
    ended = {(fact.subject, fact.attribute) for fact in known if fact.one}
    added = [addition for addition in additions(held, found) if addition.fact is not None]
    return any(one.old is not None or (one.fact.subject, one.fact.attribute) in ended for one in added if one.fact)


def main(arguments: list[str]) -> int:
    """Prints the figures of a file."""
    path = next(one for one in arguments if not one.startswith("--"))
    wanted = right = given = good = reversed_ = ended = 0
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found = found_in(row)
        if row["reversal"]:
            reversed_, ended = reversed_ + 1, ended + replaces(row, found)
        labelled, optional = row["facts"], row.get("optional_facts", [])
        hit = [any(fits(fact, one, row["speaker"]) for fact in found) for one in labelled]
        fit = [any(fits(fact, one, row["speaker"]) for one in labelled) for fact in found]
        extra = [
            not ok and any(fits(fact, one, row["speaker"]) for one in optional)
            for fact, ok in zip(found, fit, strict=True)
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
    print(f"reversals that end something {ended}/{reversed_}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
