"""What a model is asked so that it finds facts: of one message, and of how the facts that are known hang together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from vmstore.core.facts import FACT_LINKS, FACT_STATUS, FactType
from vmstore.core.times import iso
from vmstore.facts.clause import TEXT_CHARS_MAX
from vmstore.facts.fact import StatedFact
from vmstore.facts.find import Utterance

KNOWN_MAX = 30  # facts shown with a message
BEFORE_CHARS_MAX = 1_500
_TYPES = ", ".join(one.word for one in FactType)
_STATUS = ", ".join(one.word for one in sorted(FACT_STATUS))
_LINKS = ", ".join(one.word for one in sorted(FACT_LINKS))

_SIGNALS = f"""List what the message below states that is worth remembering for months: who somebody is, what they \
like, do, own, plan or decided, with names, numbers and dates exactly as said. Leave out questions, suppositions, \
quotations, courtesies, and what is known already. Answer with a JSON list and nothing else; [] where there is nothing.
Each item: {{"subject": the speaker's name or what it is about, "verb", "what", "fact_type": one of {_TYPES}, \
"status": one of {_STATUS}, "attribute": a word like home or job where it gives a value of one, "valid_from" and \
"valid_to": dates like 2026-03-14 or 2026-03 where they are said, "source": the page, "supersedes": the page of a \
known fact that is over by it}}."""

_CONSOLIDATION = f"""Say how these facts hang together. Answer with a JSON list and nothing else; [] where nothing \
is to be said. Items are {{"from": page, "kind": one of {_LINKS}, "to": page}}, where a newer fact supersedes an older \
one of the same thing, or {{"page": page, "status": one of {_STATUS}}} where another fact changed how it stands."""

REPAIR = "\n\nYour last answer could not be read as JSON. Answer with the JSON list alone. It was:\n"


def signals_prompt(said: Utterance, known: Mapping[int, StatedFact], before: str = "") -> str:
    """What asks for the facts of a message, with the facts known already and what was said right before."""
    lines = [_SIGNALS, "", *_listed("Known already:", list(known.items())[-KNOWN_MAX:])]
    if before:
        lines += ["Said before (not a source):", before[-BEFORE_CHARS_MAX:], ""]
    lines += [f"The message, page p{said.page}, of {said.speaker}, at {iso(said.at_us)}:", said.text[:TEXT_CHARS_MAX]]
    return "\n".join(lines)


def links_prompt(facts: Mapping[int, StatedFact]) -> str:
    """What asks how facts hang together."""
    return "\n".join([_CONSOLIDATION, "", *_listed("Facts, the oldest first:", facts.items())])


def _listed(title: str, facts: Iterable[tuple[int, StatedFact]]) -> list[str]:
    lines = [f"p{page}: {fact.subject} | {fact.verb} | {fact.what} ({fact.status.word})" for page, fact in facts]
    return [title, *lines, ""] if lines else []
