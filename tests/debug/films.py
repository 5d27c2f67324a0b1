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
    pages = []
    for at, call in enumerate(film.calls.call):
        context = session.context(call=call)
        if shown(film, at) != [(page.page, page.level, page.tokens) for page in context.pages]:
            pages.append(f"the context of call {call}")
        if film.calls.tokens[at] != context.tokens:
            pages.append(f"the tokens of call {call}")
    infos = session.calls()
    if [
        (
            info.call,
            info.turn,
            info.position,
            info.at,
            info.tokens_reported,
            info.budget,
            info.cost,
            info.cost_estimated,
        )
        for info in infos
    ] != list(
        zip(
            *(getattr(film.calls, name) for name in ("call", "turn", "position", "at", "reported", "budget")),
            *(film.calls.cost, film.calls.cost_estimated),
            strict=True,
        )
    ):
        pages.append("the calls")
    if [(turn.turn, turn.position, turn.at) for turn in session.turns()] != list(
        zip(film.turns.turn, film.turns.position, film.turns.at, strict=True)
    ):
        pages.append("the turns")
    pages += _pages(film, session)
    return pages + _columns(film)


def _pages(film: SessionData, session: Session) -> list[str]:
    words, pages = film.words, film.pages
    rows = [
        (page, words[type], words[role], words[modality], words[hint], turn, call, versions, bool(pinned))
        for page, type, role, modality, hint, turn, call, versions, pinned in zip(
            *(pages.page, pages.type, pages.role, pages.modality, pages.hint, pages.turn, pages.call),
            *(pages.versions, pages.pinned),
            strict=True,
        )
    ]
    right = [
        (
            *(page.page, page.type, page.role, page.modality, page.hint or ""),
            *(page.created_turn, page.created_call, page.version, page.pinned),
        )
        for page in session.pages()
    ]
    return [] if rows == right else ["the pages"]


def _columns(film: SessionData) -> list[str]:
    """Tables whose columns differ in length, events out of order, and indexes that lead nowhere."""
    texts = []
    for name in ("turns", "calls", "pages", "stays", "events"):
        lengths = {len(column) for column in msgspec.structs.astuple(getattr(film, name))}
        texts += [f"the columns of {name}"] * (len(lengths) != 1)
    events, pages = film.events, len(film.pages.page)
    if events.position != sorted(events.position) or not all(-1 <= page < pages for page in events.page):
        texts.append("the events")
    if film.words[0] or len(set(film.words)) != len(film.words):
        texts.append("the words")
    if film.pages.page != [page_name(number) for number in film.pages.number]:
        texts.append("the names")
    return texts


def events(film: SessionData, kind: str) -> list[tuple[int, str | None, str]]:
    """Position, page and reason of the events of a kind."""
    other_events = film.events
    return [
        (
            other_events.position[n],
            film.pages.page[other_events.page[n]] if other_events.page[n] >= 0 else None,
            film.words[other_events.why[n]],
        )
        for n in range(len(other_events.kind))
        if film.words[other_events.kind[n]] == kind
    ]
