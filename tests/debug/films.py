"""Holds a film against the session it was made of."""

from __future__ import annotations

import msgspec

from vmstore.core.address import page_name
from vmstore.debug.session_data import SessionData
from vmstore.store.session import Session

Row = tuple[str, int, int]


def shown(film: SessionData, at: int) -> list[Row]:
    """Page, level and tokens of the context of a call's index, in order, as the film has it."""
    stays = film.stays
    here = [n for n in range(len(stays.page)) if stays.begin[n] <= at < stays.end[n]]
    here.sort(key=stays.rank.__getitem__)
    return [(film.pages.page[stays.page[n]], stays.level[n], stays.tokens[n]) for n in here]


def faults(film: SessionData, session: Session) -> list[str]:
    """What a film says otherwise than its session: contexts, sums, tables, columns of unequal length."""
    found = []
    for at, call in enumerate(film.calls.call):
        context = session.context(call=call)
        if shown(film, at) != [(page.page, page.level, page.tokens) for page in context.pages]:
            found.append(f"the context of call {call}")
        if film.calls.tokens[at] != context.tokens:
            found.append(f"the tokens of call {call}")
    infos = session.calls()
    if [
        (one.call, one.turn, one.position, one.at, one.tokens_reported, one.budget, one.cost, one.cost_estimated)
        for one in infos
    ] != list(
        zip(
            *(getattr(film.calls, name) for name in ("call", "turn", "position", "at", "reported", "budget")),
            *(film.calls.cost, film.calls.cost_estimated),
            strict=True,
        )
    ):
        found.append("the calls")
    if [(one.turn, one.position, one.at) for one in session.turns()] != list(
        zip(film.turns.turn, film.turns.position, film.turns.at, strict=True)
    ):
        found.append("the turns")
    found += _pages(film, session)
    return found + _columns(film)


def _pages(film: SessionData, session: Session) -> list[str]:
    words, pages = film.words, film.pages
    told = [
        (page, words[type], words[role], words[modality], words[hint], turn, call, versions, bool(pinned))
        for page, type, role, modality, hint, turn, call, versions, pinned in zip(
            *(pages.page, pages.type, pages.role, pages.modality, pages.hint, pages.turn, pages.call),
            *(pages.versions, pages.pinned),
            strict=True,
        )
    ]
    right = [
        (
            *(one.page, one.type, one.role, one.modality, one.hint or ""),
            *(one.created_turn, one.created_call, one.version, one.pinned),
        )
        for one in session.pages()
    ]
    return [] if told == right else ["the pages"]


def _columns(film: SessionData) -> list[str]:
    """Tables whose columns differ in length, events out of order, and indexes that lead nowhere."""
    found = []
    for name in ("turns", "calls", "pages", "stays", "events"):
        lengths = {len(column) for column in msgspec.structs.astuple(getattr(film, name))}
        found += [f"the columns of {name}"] * (len(lengths) != 1)
    events, pages = film.events, len(film.pages.page)
    if events.position != sorted(events.position) or not all(-1 <= page < pages for page in events.page):
        found.append("the events")
    if film.words[0] or len(set(film.words)) != len(film.words):
        found.append("the words")
    if film.pages.page != [page_name(number) for number in film.pages.number]:
        found.append("the names")
    return found


def events(film: SessionData, kind: str) -> list[tuple[int, str | None, str]]:
    """Position, page and reason of the events of a kind."""
    told = film.events
    return [
        (told.position[n], film.pages.page[told.page[n]] if told.page[n] >= 0 else None, film.words[told.why[n]])
        for n in range(len(told.kind))
        if film.words[told.kind[n]] == kind
    ]
