"""Finds what an utterance states, without a model: clause by clause, by the rules of its language.

Nothing is found in questions, suppositions, quotations, code and what is said of others' words; who speaks is `user`,
or the name the session has for the speaker.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from vmstore.core.facts import CERTAIN, FactType, Precision
from vmstore.core.page import Standing
from vmstore.core.text.stems import terms
from vmstore.facts.address import attribute_name, has_one
from vmstore.facts.antecedent import Antecedents, in_its_place, named_in
from vmstore.facts.choice import chosen
from vmstore.facts.clause import SpokenClause, clauses
from vmstore.facts.fact import WORD_CHARS_MAX, StatedFact
from vmstore.facts.predicate import ClausePredicate, ClauseSubject, read
from vmstore.facts.reversal import is_against
from vmstore.facts.rule import FactRule, RuleSet, rules_of
from vmstore.facts.statement import stated_by
from vmstore.relevance.time.times import TimeSpan, times_in

FACTS_MAX = 12  # of one utterance
CONFIDENCE = 700_000  # of what a pattern found, in parts per million
WHOLE = 0.8  # of a sentence, where a clause is taken for all of it
SAME = 0.8  # of the terms of two facts, where they state the same


class Utterance(NamedTuple):
    """What somebody said: the page, who (`user`, or a name), the text, when in microseconds since 1970.

    `offered` is what the model said right before, in which there may be a list to choose from.
    """

    page: int
    speaker: str
    text: str
    at_us: int
    offered: str = ""


def find(said: Utterance, language: str = "en") -> tuple[StatedFact, ...]:
    """The facts that an utterance states, in its order."""
    rules = rules_of(language)
    found: list[StatedFact] = []
    before: tuple[str, ClauseSubject | None] = "", None
    meant = Antecedents()
    for clause in clauses(said.text, rules):
        read_as = _predicate(clause, rules, before[1] if before[0] == clause.sentence else None, meant)
        fact = (
            _choice(said, clause, rules)
            or _by_rule(said, clause, rules)
            or _over(said, clause, rules, meant)
            or (read_as and _by_grammar(said, clause, read_as, rules, meant))
        )
        if fact is not None and not any(same(fact, other) for other in found):
            found.append(fact)
        if read_as is not None:
            before = clause.sentence, read_as.subject
            if read_as.subject.apposed:
                found.append(_apposition(said, clause, read_as.subject, rules))
        if read_as is not None and rules.grammar is not None:
            meant = named_in(read_as, _object(read_as.what, rules), meant, rules.grammar)
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


def _predicate(
    clause: SpokenClause, rules: RuleSet, before: ClauseSubject | None, meant: Antecedents
) -> ClausePredicate | None:
    """What a clause says; a pronoun in its first place is who or what the clause before it named."""
    if rules.grammar is None:
        return None
    first = clause.text.partition(" ")[0].partition("'")[0].lower()
    if rules.grammar.is_in(first, "it") or (rules.grammar.is_in(first, "he") and (before is None or not before.name)):
        before = meant.of(first, rules.grammar)
    owner = meant.of(_OWNERS.get(first, ""), rules.grammar)
    text = clause.text
    if owner is not None:  # `her name is Luna`, after `I have a cat`
        text = f"{'my' if owner.is_own else 'the'} {owner.name.removeprefix('a ')}'s{text[len(first) :]}"
    read_as = read(text, rules.grammar, before)
    is_bare = read_as is not None and before is None and first.endswith("ing") and not read_as.subject.name
    return None if is_bare and len(clause.text) < WHOLE * len(clause.sentence) else read_as  # `Seeing them, I cried`


def _choice(said: Utterance, clause: SpokenClause, rules: RuleSet) -> StatedFact | None:
    """The item of an offered list that a clause chooses."""
    item = chosen(clause.text, said.offered) if said.offered else ""
    if not item:
        return None
    return StatedFact(
        subject=said.speaker, verb="chose", what=item, text=f"{clause.text} ({item})", type=FactType.DECISION,
        confidence=CONFIDENCE, method=rules.method, sources=(said.page,),
    )  # fmt: skip


def _by_rule(said: Utterance, clause: SpokenClause, rules: RuleSet) -> StatedFact | None:
    """What the first rule that fits a clause states of it."""
    for rule in rules.rules:
        match = rule.pattern.search(clause.text)
        if match is None or rules.guards["before"].search(clause.text[: match.start()]):
            continue
        fact = _fact(said, clause, rule, match, rules)
        if fact is not None:
            return fact
    return None


def _over(said: Utterance, clause: SpokenClause, rules: RuleSet, meant: Antecedents) -> StatedFact | None:
    """What a pronoun stands for, where a rule finds that it is no more: `that one is off the table`."""
    match = _THAT.match(clause.text)
    named = meant.it or meant.he
    if match is None or named is None:
        return None
    fact = _by_rule(said, clause._replace(text=f"{named.name} is{clause.text[match.end() :]}"), rules)
    return msgspec.structs.replace(fact, text=clause.text) if fact is not None and fact.ends else None


def _by_grammar(
    said: Utterance, clause: SpokenClause, read_as: ClausePredicate, rules: RuleSet, meant: Antecedents
) -> StatedFact | None:
    """What the predicate of a clause states."""
    assert rules.grammar is not None, "a predicate is read by a grammar"
    what = in_its_place(_object(read_as.what, rules), meant, rules.grammar)
    if read_as.subject.name and not _says_something(what, rules):
        stated = stated_by(read_as, "", rules.grammar)
        if stated is None or not stated.ends:
            return None
        read_as, what = read_as._replace(words="has"), f"{read_as.words} {what}".strip()  # `Rex died.`
    elif not _says_something(what, rules, read_as.words) or len(what) > WORD_CHARS_MAX:
        return None
    stated = stated_by(read_as, what, rules.grammar)
    if stated is None:
        return None
    subject = _subject(said, read_as.subject)
    status = stated.status
    if status is Standing.ACTIVE and rules.guards["recurring"].search(clause.text):
        status = Standing.RECURRING
    begins, ends, precision = _validity(_when(clause, said.at_us), status)
    what = stated.what or what
    if stated.attribute:  # the next value is told from this one by what it is, not by when it began
        what = _without_time(what, said.at_us)
    return StatedFact(
        subject=subject, verb=stated.verb, what=what, text=clause.text, attribute=stated.attribute or None,
        one=bool(stated.attribute), type=stated.type, status=status, valid_from=begins, valid_to=ends,
        precision=precision, confidence=CONFIDENCE, method=rules.method, sources=(said.page,), ends=stated.ends,
    )  # fmt: skip


def _apposition(said: Utterance, clause: SpokenClause, who: ClauseSubject, rules: RuleSet) -> StatedFact:
    """What stands between two commas after a subject says who or what that is."""
    return StatedFact(
        subject=_subject(said, who), verb="is", what=who.apposed, text=clause.text,
        type=FactType.RELATIONSHIP if who.is_own else FactType.GENERAL, confidence=CONFIDENCE, method=rules.method,
        sources=(said.page,),
    )  # fmt: skip


def _subject(said: Utterance, who: ClauseSubject) -> str:
    """Who a fact is about, as it is stored."""
    return said.speaker if not who.name else f"{said.speaker}'s {who.name}" if who.is_own else who.name


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
    whole = (text[: cut.start()] if cut else text).strip(_SIGNS)
    return rules.guards["lately"].sub("", whole).strip(_SIGNS) or whole


def _without_time(what: str, at_us: int) -> str:
    """A value without the time or length of time at its end: `Kyoto since last week` is `Kyoto`."""
    whole, spans = what, times_in(what, at_us)
    if spans and spans[-1].end == len(what):
        what = _TO_TIME.sub("", what[: spans[-1].start])
    return _LENGTH.sub("", what).strip(_SIGNS) or whole


def _says_something(what: str, rules: RuleSet, verb: str = "") -> bool:
    """Whether an object can be understood alone: it has a word that tells, and is not said to who listens.

    Of an object that begins with what is to be done the rest is looked at.
    """
    if not what or rules.guards["to_you"].match(what) or rules.guards["vague"].match(what):
        return False
    if verb.endswith(" to") and " " in what and what[0].islower():
        what = what.partition(" ")[2]
        if rules.guards["vague"].match(what):
            return False
    if "pointing" in rules.guards and (head := rules.guards["pointing"].match(what)):
        what = rules.guards["when"].sub("", what[head.end() :])
    return any(not rules.guards["idle"].fullmatch(word) for word in re.findall(r"[\w@./'-]*\w", what.lower()))


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


_TO_TIME = re.compile(
    r"(?:\b(?:in|on|at|since|from|around|about|by|the|early|late|back|just|only)\b\W*)+$", re.IGNORECASE
)
_LENGTH = re.compile(r"\bfor (?:[\w'-]+ ){1,4}(?:years?|months?|weeks?|days?)(?: now)?$", re.IGNORECASE)
_OWNERS = {"his": "he", "her": "he", "its": "it", "their": "they"}
_THAT = re.compile(r"(?:so )?(?:that one|this one|it|that|this)(?:'s| is| was)\b", re.IGNORECASE)
_SIGNS = " ,.;:!–—-…\"'()"
