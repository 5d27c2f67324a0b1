"""Reads facts out of what a model answered: a pure function with a version, so that a recorded answer reads the same.

Models think aloud, wrap JSON in fences and prose, break off in the middle, and name pages and numbers that they never
saw. What can be read is taken; each thing that cannot be taken is refused with a reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec

from vmstore.core.facts import CERTAIN, FACT_LINKS, FACT_STATUS, FactType, Precision
from vmstore.core.page import LinkKind, Standing
from vmstore.core.text.stems import terms
from vmstore.core.times import microseconds
from vmstore.errors import InputError
from vmstore.facts.fact import StatedFact, checked
from vmstore.facts.find import FACTS_MAX, Utterance

PARSER = "facts-json@1"
ANSWER_CHARS_MAX = 100_000
STARTS_MAX = 500  # places at which JSON may begin, looked at in one answer
CONFIDENCE = 800_000  # of what a model found and gave no share, in parts per million
SELF = frozenset(("i", "me", "user", "the user", "speaker", "self"))


class ParsedFacts(NamedTuple):
    """The facts of an answer, what was refused and why, and whether there was JSON at all."""

    facts: tuple[StatedFact, ...]
    refused: tuple[str, ...]
    is_json: bool


class ParsedLinks(NamedTuple):
    """Links between facts, each (from, kind, to), how some stand now, what was refused, and whether it was JSON."""

    links: tuple[tuple[int, LinkKind, int], ...]
    stands: tuple[tuple[int, Standing], ...]
    refused: tuple[str, ...]
    is_json: bool


def parse_facts(
    answer: str, shown: Sequence[Utterance], known: Mapping[int, StatedFact], before: str = ""
) -> ParsedFacts:
    """The facts that an answer states of the pages that were shown, `known` those it may replace.

    `before` was shown too, so that its words may be used, but nothing of it is a source.
    """
    is_json, rows = _rows(answer)
    facts: list[StatedFact] = []
    refused: list[str] = []
    for row in rows:
        if not {"what", "object", "value"} & row.keys() or "verb" not in row:
            refused.append(f"an object of {', '.join(map(str, row))[:80]} is no fact")
            continue
        try:
            facts.append(_fact(row, shown, known, before, refused))
        except (InputError, TypeError, ValueError, OverflowError) as error:
            refused.append(f"{str(row.get('what') or row.get('object'))[:60]!r}: {error!s:.160}")
    refused += [f"{fact.what[:60]!r}: more than {FACTS_MAX} of one message" for fact in facts[FACTS_MAX:]]
    return ParsedFacts(tuple(facts[:FACTS_MAX]), tuple(refused), is_json)


def parse_links(answer: str, known: Mapping[int, StatedFact]) -> ParsedLinks:
    """How an answer says that known facts hang together and stand."""
    is_json, rows = _rows(answer)
    links: dict[tuple[int, LinkKind, int], None] = {}
    stands: dict[int, Standing] = {}
    refused: list[str] = []
    for row in rows:
        page, source, target = (_page(row.get(name)) or 0 for name in ("page", "from", "to"))
        kind, status = (_named(words, row.get(name)) for words, name in ((LinkKind, "kind"), (Standing, "status")))
        if source in known and target in known and source != target and isinstance(kind, LinkKind):
            if kind not in FACT_LINKS or (kind is LinkKind.SUPERSEDES and not _of_one(known[source], known[target])):
                refused.append(f"p{source} {kind.word} p{target}: the two state nothing of one thing")
            else:
                links[source, kind, target] = None
        elif page in known and status in FACT_STATUS and isinstance(status, Standing):
            stands[page] = status
        else:
            refused.append(f"{json.dumps(row, ensure_ascii=False, default=str)[:80]} names no facts that were shown")
    return ParsedLinks(tuple(links), tuple(stands.items()), tuple(refused), is_json)


def _fact(
    row: dict[str, Any], shown: Sequence[Utterance], known: Mapping[int, StatedFact], before: str, refused: list[str]
) -> StatedFact:
    sources = _sources(row, shown)
    said = [one for one in shown if one.page in sources]
    what = _text(row, "what", "object", "value")
    _said_there(what, " ".join([*(one.text for one in said), before]))
    subject = _text(row, "subject") if row.get("subject") else said[0].speaker
    begins, precision = _date(row.get("valid_from"))
    ends, _ = _date(row.get("valid_to"))
    fact = StatedFact(
        subject=said[0].speaker if subject.casefold() in SELF else subject, verb=_text(row, "verb"), what=what,
        text=row["text"] if isinstance(row.get("text"), str) and row["text"].strip() else "",
        attribute=row["attribute"] if isinstance(row.get("attribute"), str) and row["attribute"].strip() else None,
        type=_of(FactType, row.get("fact_type", row.get("type")), FactType.GENERAL),
        status=_of(Standing, row.get("status"), Standing.ACTIVE), valid_from=begins, valid_to=ends,
        precision=precision, confidence=_share(row.get("confidence")), method=PARSER, sources=sources,
    )  # fmt: skip
    replaced = row.get("supersedes")
    old = _page(replaced)
    if old is not None and old in known and _of_one(fact, known[old]):
        fact = _replacing(fact, old)
    elif replaced:
        refused.append(f"{what[:60]!r} cannot replace {replaced!r:.20}: no fact of the same thing that was shown")
    return checked(fact)


def _replacing(fact: StatedFact, old: int) -> StatedFact:
    return msgspec.structs.replace(fact, links=((int(LinkKind.SUPERSEDES), old),))


def _sources(row: dict[str, Any], shown: Sequence[Utterance]) -> tuple[int, ...]:
    """The pages a fact was found on; of one that names none the one page that was shown."""
    given = row.get("sources", row.get("source"))
    listed = given if isinstance(given, list) else [] if given is None else [given]
    pages = {one.page for one in shown}
    if not listed and len(pages) == 1:
        return tuple(pages)
    named = [_page(one) for one in listed]
    if not named or not pages.issuperset(named):
        raise InputError(f"its source {given!r:.40} is none of the pages that were shown")
    return tuple(dict.fromkeys(page for page in named if page is not None))


def _said_there(what: str, text: str) -> None:
    """Refuses an object that was made up: none of its words, or a number, that nobody said."""
    wanted, there = frozenset(terms(what)), frozenset(terms(text))
    if wanted and not wanted & there:
        raise InputError("no word of it was said")
    numbers = set(_NUMBER.findall(what)) - set(_NUMBER.findall(text))
    if numbers:
        raise InputError(f"nobody said {min(numbers)}")


def _of_one(fact: StatedFact, other: StatedFact) -> bool:
    """Whether a fact can replace another: of one subject, and of one attribute or with a word in common."""
    if fact.subject.casefold() != other.subject.casefold():
        return False
    if fact.attribute and fact.attribute == other.attribute:
        return True
    return bool(frozenset(terms(f"{fact.verb} {fact.what}")) & frozenset(terms(f"{other.verb} {other.what}")))


def _rows(answer: str) -> tuple[bool, list[dict[str, Any]]]:
    """The objects of an answer, those of its lists one by one, and whether it held JSON at all."""
    is_json, rows = False, []
    for value in _values(_THOUGHT.sub(" ", answer[:ANSWER_CHARS_MAX])):
        is_json = True
        if isinstance(value, dict):
            inner = [one for one in value.values() if isinstance(one, list)]
            nested = [one for each in inner for one in each if isinstance(one, dict)]
            rows += nested if nested or not value or "facts" in value or "links" in value else [value]
        else:
            rows += [one for one in value if isinstance(one, dict)]
    return is_json, rows


def _values(text: str) -> Iterator[Any]:
    """The JSON values in a text, whatever stands around them; of a list that breaks off its whole objects."""
    decoder = json.JSONDecoder()
    place = tried = 0
    while tried < STARTS_MAX and (begins := _BEGINS.search(text, place)) is not None:
        tried, place = tried + 1, begins.start() + 1
        try:
            value, place = decoder.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) or not value or any(isinstance(one, dict) for one in value):
            yield value


def _text(row: dict[str, Any], *names: str) -> str:
    text = next((row[name] for name in names if name in row), None)
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = str(text)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"its {names[0]} is no text")
    return " ".join(text.split())


def _page(named: object) -> int | None:
    """The number of a page by its name, as `p4`, or by the number itself."""
    if isinstance(named, str) and (match := _PAGE.fullmatch(named.strip())) is not None:
        return int(match[1])
    return named if type(named) is int else None


def _named(words: type[Any], given: object) -> Any:
    return words.of(given.strip().casefold().replace(" ", "_")) if isinstance(given, str) else None


def _of(words: type[Any], given: object, other: Any) -> Any:
    return other if given is None else _named(words, given) or other


def _share(given: object) -> int:
    is_share = isinstance(given, int | float) and not isinstance(given, bool) and 0 <= given <= 1
    return round(given * CERTAIN) if is_share else CONFIDENCE  # type: ignore[operator]


def _date(given: object) -> tuple[int | None, Precision]:
    """The moment a date begins, as `2026`, `2026-03` or `2026-03-14`, and how exact it is."""
    match = _DATE.match(given.strip()) if isinstance(given, str) else None
    if match is None:
        return None, Precision.UNKNOWN
    year, month, day = (int(part) if part else 0 for part in match.groups())
    precision = Precision.DAY if day else Precision.MONTH if month else Precision.YEAR
    try:
        return microseconds(datetime(year, month or 1, day or 1, tzinfo=UTC)), precision
    except (ValueError, OverflowError):
        return None, Precision.UNKNOWN


_THOUGHT = re.compile(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)|\A.*</(?:think|thinking|reasoning)>", re.DOTALL)
_BEGINS = re.compile(r"[\[{]")
_PAGE = re.compile(r"\[?p?(\d{1,12})\]?")
_NUMBER = re.compile(r"\d+")
_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
