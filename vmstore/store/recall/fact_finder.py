"""Finds facts in what was said in a session, without a model, and states those that are new."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from vmstore.core.address import page_position
from vmstore.core.asof import Head
from vmstore.core.erasure import is_gone
from vmstore.core.facts import FactType, Precision
from vmstore.core.page import Standing
from vmstore.core.times import microseconds
from vmstore.errors import InputError
from vmstore.facts.addition import HeldFact, additions
from vmstore.facts.fact import StatedFact, checked
from vmstore.facts.find import Utterance, find
from vmstore.facts.rule import DEFAULT, LANGUAGES
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_reads import engine_of, known
from vmstore.store.recall.results import KnownFact

HUMAN = "user"
BEFORE = 400  # positions before a message, in which what was offered right before it is looked for
_SAID = """PAGES page, role, actor, created_at, text WHERE type = transcript AND modality = text
 AND role IN (user, assistant) AND position > $after ORDER BY position"""


def utterances(session: SessionHost, after: int = 0) -> list[Utterance]:
    """What people say in a session: its human, and speakers it has names for; what the model says is never a fact."""
    answer = engine_of(session._ns).ask(_SAID, session=session.name, params={"after": max(0, after - BEFORE)})
    rows: list[Any] = list(answer)
    untold = session._untold([page_position(row[0]) or 0 for row in rows])
    said, offered = [], ""
    for name, role, actor, at, text in rows:
        page = page_position(name) or 0
        named = actor not in (None, "user", "assistant")
        if role == "assistant" and not named:
            offered = "" if text is None or is_gone(text) else text
        elif page > after and text and not is_gone(text) and page not in untold and (role == "user" or named):
            speaker = actor if named else HUMAN
            said.append(Utterance(page, speaker, text, microseconds(datetime.fromisoformat(at)), offered))
    return said


def find_facts(session: SessionHost, language: str | None = None, after: int = 0) -> list[int]:
    """States the facts that are new in what was said after a position; their pages. Again, it finds nothing new."""
    language = language_of(session, language)
    every = known(session._ns, session.name, None, Head(), ever=True)
    used = {source for fact in every for source in fact.sources}
    said = [one for one in utterances(session, after) if f"p{one.page}" not in used]
    found = [fact for one in said for fact in found_in(one, language)]
    return session._add_facts(additions(held(every), found)) if found else []


def language_of(session: SessionHost, language: str | None) -> str:
    """The language whose patterns are used: the one named, else that of the namespace's texts, else English."""
    if language is None:
        declared = session._ns.languages.of(session._key)
        return declared if declared in LANGUAGES else DEFAULT
    checked_language(language)
    return language


def checked_language(language: str) -> None:
    """Refuses a language that has no patterns."""
    if language not in LANGUAGES:
        raise InputError(f"there are no patterns of {language!r:.40}; there are of {', '.join(LANGUAGES)}")


def found_in(said: Utterance, language: str) -> list[StatedFact]:
    """What the patterns find in an utterance, with since when it holds."""
    return [dated(fact, said.at_us) for fact in find(said, language)]


def held(every: Sequence[KnownFact]) -> list[HeldFact]:
    """The facts that nothing replaced."""
    return [_held(fact) for fact in every if fact.superseded_by is None]


def dated(fact: StatedFact, at_us: int) -> StatedFact:
    """A fact with since when it holds: from when it was said, where nothing else was."""
    begins = at_us if fact.valid_from is None else fact.valid_from
    ahead = begins > at_us and fact.status is Standing.ACTIVE
    status = Standing.PLANNED if ahead else fact.status
    if status is Standing.PLANNED and fact.valid_from is not None and fact.valid_to is not None:
        begins = min(begins, fact.valid_to)
    return checked(msgspec.structs.replace(fact, valid_from=begins, status=status))


def _held(fact: KnownFact) -> HeldFact:
    stated = StatedFact(
        subject=fact.subject, verb=fact.verb, what=fact.what, text=fact.text or "", attribute=fact.attribute,
        type=FactType[fact.type.upper()], status=Standing[fact.status.upper()], one=fact.one,
        valid_from=fact.valid_from_us, precision=Precision[fact.precision.upper()], method=fact.method,
        sources=tuple(page_position(page) or 0 for page in fact.sources),
    )  # fmt: skip
    return HeldFact(stated, page_position(fact.page) or 0)
