"""Finds what an utterance states, without a model: clause by clause, by the rules of its language.

Nothing is found in questions, suppositions, quotations, code and what is said of others' words; who speaks is `user`,
or the name the session has for the speaker.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vmstore.core.facts import CERTAIN, Precision
from vmstore.core.page import Standing
from vmstore.core.text.stems import terms
from vmstore.facts.address import attribute_name, has_one
from vmstore.facts.fact import WORD_CHARS_MAX, StatedFact
from vmstore.facts.reversal import is_against
from vmstore.facts.rule import FactRule, RuleSet, rules_of
from vmstore.relevance.time.times import TimeSpan, times_in

TEXT_CHARS_MAX = 6_000
CLAUSE_CHARS_MAX = 400
FACTS_MAX = 12  # of one utterance
CONFIDENCE = 700_000  # of what a pattern found, in parts per million
SAME = 0.8  # of the terms of two facts, where they state the same


class Utterance(NamedTuple):
    """What somebody said: the page, who (`user`, or a name), the text, when in microseconds since 1970."""

    page: int
    speaker: str
    text: str
    at_us: int


class SpokenClause(NamedTuple):
    """A clause and the sentence it stands in."""

    text: str
    sentence: str


def find(said: Utterance, language: str = "en") -> tuple[StatedFact, ...]:
    """The facts that an utterance states, in its order."""
    rules = rules_of(language)
    found: list[StatedFact] = []
    for clause in clauses(said.text, rules):
        for fact in _stated(said, clause, rules):
            if not any(same(fact, other) for other in found):
                found.append(fact)
    return tuple(found[:FACTS_MAX])


def same(one: StatedFact, other: StatedFact) -> bool:
    """Whether two facts state the same of the same subject."""
    if one.subject.casefold() != other.subject.casefold():
        return False
    if is_against(one) is not is_against(other):
        return False
    if one.attribute and one.attribute == other.attribute and one.one:
        return one.what.casefold() == other.what.casefold()
    mine, theirs = (frozenset(terms(f"{fact.verb} {fact.what}")) for fact in (one, other))
    together = mine | theirs
    return bool(together) and len(mine & theirs) / len(together) >= SAME


def clauses(text: str, rules: RuleSet) -> Iterable[SpokenClause]:
    """The clauses somebody says in a text that state something."""
    guards = rules.guards
    spoken = _NAME.sub(r"\1", text[:TEXT_CHARS_MAX].replace("’", "'"))
    spoken = _CODE.sub(" ", spoken)
    spoken = "\n".join(line for line in spoken.split("\n") if not _ASIDE.match(line))
    for sentence in _SENTENCE.findall(guards["quoted"].sub("…", spoken)):
        bare = " ".join(sentence.split())
        if not bare or len(bare) > CLAUSE_CHARS_MAX or guards["supposed"].search(bare):
            continue
        parts = guards["clause"].split(bare)
        if bare.rstrip(" )\"'").endswith("?"):  # what stands before the question may be stated
            parts = [] if guards["asks"].match(bare) else parts[:-1]
        for part in parts:
            clause = guards["led_in"].sub("", part.strip(" ,;:–—-").strip(), count=1)
            if clause and not guards["said"].search(clause):
                yield SpokenClause(clause, bare)


def _stated(said: Utterance, clause: SpokenClause, rules: RuleSet) -> Iterable[StatedFact]:
    for rule in rules.rules:
        match = rule.pattern.search(clause.text)
        if match is None or rules.guards["before"].search(clause.text[: match.start()]):
            continue
        fact = _fact(said, clause, rule, match, rules)
        if fact is not None:
            yield fact
            return


def _fact(
    said: Utterance, clause: SpokenClause, rule: FactRule, match: re.Match[str], rules: RuleSet
) -> StatedFact | None:
    groups = {name: (value or "").strip() for name, value in match.groupdict().items()}
    what = _object(groups.get("what") or groups.get("what2") or "", rules)
    if not _says_something(what, rules) or len(what) > WORD_CHARS_MAX:
        return None
    words = {**groups, "self": said.speaker, "verb": groups.get("verb", "").lower(), "what": what}
    verb, subject, gone = (" ".join(form.format_map(words).split()) for form in (rule.verb, rule.subject, rule.ends))
    attribute = attribute_name(rule.attribute.format_map(words)) if rule.attribute else None
    recurring = rule.status is Standing.ACTIVE and rules.guards["recurring"].search(clause.text) is not None
    status = Standing.RECURRING if recurring else rule.status
    span = _when(clause, said.at_us)
    begins, ends, precision = _validity(span, status)
    return StatedFact(
        subject=subject, verb=verb or rule.name, what=what, text=clause.text, attribute=attribute,
        one=bool(attribute) and (rule.one or has_one(attribute)), type=rule.type, status=status, valid_from=begins,
        valid_to=ends, precision=precision, confidence=CONFIDENCE, strength=rule.strength * CERTAIN // 1_000,
        method=rules.method, sources=(said.page,), ends=gone,
    )  # fmt: skip


def _object(text: str, rules: RuleSet) -> str:
    """The object of a clause without what only goes on from it."""
    cut = rules.guards["goes_on"].search(text)
    return (text[: cut.start()] if cut else text).strip(" ,.;:!–—-…\"'()")


def _says_something(what: str, rules: RuleSet) -> bool:
    """Whether an object can be understood alone: it has a word that tells, and is not said to who listens."""
    if not what or rules.guards["to_you"].match(what) or rules.guards["vague"].match(what):
        return False
    return any(not rules.guards["idle"].fullmatch(word) for word in re.findall(r"[\w@.'-]*\w", what.lower()))


def _when(clause: SpokenClause, at_us: int) -> TimeSpan | None:
    """The time that a clause names, else the sentence around it."""
    spans: Sequence[TimeSpan] = times_in(clause.text, at_us) or times_in(clause.sentence, at_us)
    return spans[0] if spans else None


def _validity(span: TimeSpan | None, status: Standing) -> tuple[int | None, int | None, Precision]:
    """Since when and until when a fact holds: an event and a plan in the time named, a state from then on."""
    if span is None:
        return None, None, Precision.UNKNOWN
    precision = Precision.__members__.get(span.precision.upper(), Precision.YEAR)
    ends = span.to_us if status in (Standing.COMPLETED, Standing.PLANNED) else None
    return span.from_us, ends, precision


_NAME = re.compile(r"(?<!`)`([\w.()\[\]/-]{1,60})`(?!`)")  # an identifier in code marks is a word
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|https?://\S+", re.DOTALL)
_ASIDE = re.compile(r"\s*(?:>|\||\$ |#|\d+\s{2,}|[-+]{3})")
_SENTENCE = re.compile(r"(?:[^.!?\n]|[.!?](?=[\w@]))+[.!?]*")
