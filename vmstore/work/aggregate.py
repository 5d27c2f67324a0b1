"""One form of several observations: what was done in a row is told once, with how often, and what came of all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from vmstore.work.observation import TOKENS_MAX as ALONE_MAX
from vmstore.work.observation import (
    CompressedObservation,
    KeyFact,
    Observation,
    chosen,
    compressed,
    facts_of,
    family_of,
    heaviest,
    tokens,
)

RATIO = 0.08  # of the tokens, by itself
TOKENS_MIN, TOKENS_MAX = 32, 400  # of a form, whatever its share
LOOKING = ("read", "search")  # take turns where something is looked for


def runs_of(seen: Iterable[Observation]) -> list[list[Observation]]:
    """Observations in their order, those that did the same kind of thing in a row of one turn together."""
    return [list(run) for _, run in groupby(seen, key=_run)]


def _run(of: Observation) -> tuple[str, int, str]:
    family = family_of(of)
    return of.session, of.turn, "look" if family in LOOKING else family


def aggregated(
    seen: Sequence[Observation], *, target_ratio: float = RATIO, tokens_max: int = TOKENS_MAX,
    facts: Sequence[Sequence[KeyFact]] | None = None,
) -> CompressedObservation:  # fmt: skip
    """One form of some observations: how many calls of which tools, then the heaviest of their facts in order.

    A fact of several is told once, with how many have it. `facts` are those of each, where they are at hand. One
    observation alone has its own form; where nothing is shorter they are told whole. ValueError of none.
    """
    if not seen:
        raise ValueError("a form is of one observation or more")
    own = [facts_of(of) for of in seen] if facts is None else facts
    if len(seen) == 1:
        return compressed(seen[0], tokens_max=min(tokens_max, ALONE_MAX), facts=own[0])
    whole = sum(of.tokens for of in seen)
    head, gathered = _counted(seen), _together(seen, own)
    room = min(max(int(whole * target_ratio), TOKENS_MIN), tokens_max)
    kept = chosen(gathered, room - tokens(head) - 1)
    summary = "; ".join([head, *(kept[place] for place in sorted(kept))])
    spent = tokens(summary)
    listed = tuple(fact.text for fact in heaviest(gathered))
    if spent >= whole:
        return CompressedObservation(
            "\n".join(of.text for of in seen), listed, whole, whole, 1.0, "verbatim", False, True
        )
    return CompressedObservation(summary, listed, whole, spent, round(spent / whole, 3), "aggregated", True, True)


def _counted(seen: Sequence[Observation]) -> str:
    """How many calls of which tools, and how many failed."""
    tools = Counter(of.tool for of in seen)
    failed = sum(bool(of.failed) for of in seen)
    said = ", ".join(f"{count} × {tool}" if count > 1 else tool for tool, count in tools.most_common())
    return f"{said}, {failed} failed" if failed else said


def _together(seen: Sequence[Observation], facts: Sequence[Sequence[KeyFact]]) -> list[KeyFact]:
    """The facts of all, each once where it stood first, without the tool where all are of one."""
    tool = seen[0].tool if len({of.tool for of in seen}) == 1 else None
    weights: dict[str, int] = {}
    times = Counter[str]()
    for own in facts:
        for fact in own:
            text = fact.text.removeprefix(f"{tool} ") if tool else fact.text
            weights[text] = max(weights.get(text, 0), fact.weight)
            times[text] += 1
    return [KeyFact(f"{text} (×{times[text]})" if times[text] > 1 else text, weights[text]) for text in weights]
