"""Every door there is to a store, asked one after the other: what raises, or says what is no JSON, is a fault."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import vmstore
from vmstore.core.asof import Call, Head
from vmstore.debug.api import DebugApi
from vmstore.debug.params import QueryParams
from vmstore.debug.session_data import film
from vmstore.errors import ErasedError, UnknownError
from vmstore.store.session import Session
from vmstore.vmql.relations.catalog import RELATIONS

Door = tuple[str, Callable[[], Any]]
FEW = 6  # pages and calls of a session, of each kind of question


def strictly(answer: Any) -> None:
    """Writes an answer as JSON; raises where it is none."""
    json.dumps(answer, allow_nan=False, default=msgspec.to_builtins)


def rows(result: Any) -> None:
    """Takes the rows of a VMQL answer, as values and as JSON."""
    strictly(result.to_dicts())


def of_store(store: vmstore.Store) -> Iterator[Door]:
    """Questions about all sessions at once."""
    yield "sessions", lambda: strictly(msgspec.to_builtins(store.sessions()))
    yield "info", lambda: strictly(msgspec.to_builtins(store.info()))
    yield "search", lambda: strictly([hit.to_dict() for hit in store.search("gate noon page")])
    yield "pages by tag", lambda: strictly(msgspec.to_builtins(store.pages(tag="a")))
    yield "SESSIONS", lambda: rows(store.query("SESSIONS"))
    for name in ("PAGES", "CALLS", "MESSAGES", "TURNS"):
        yield f"{name} across", lambda name=name: rows(store.query(f"{name} count(*) ACROSS SESSIONS"))
    yield "sums", lambda: rows(store.query("CALLS sum(tokens), avg(cost), max(latency_ms) ACROSS SESSIONS"))
    yield "jsonl", lambda: store.export(io.BytesIO(), redact=False)
    yield "jsonl without secrets", lambda: store.export(io.BytesIO())
    answers = DebugApi(store, "a.vms", "default")
    yield "debugger: store", lambda: answers.table["/api/store"](QueryParams({}))


def of_session(store: vmstore.Store, session: Session, chance: random.Random) -> Iterator[Door]:
    """Questions about one session."""
    name = session.name
    yield "info", lambda: strictly(msgspec.to_builtins(session.info()))
    for what, ask in (("pages", session.pages), ("turns", session.turns), ("calls", session.calls)):
        yield what, lambda ask=ask: strictly(msgspec.to_builtins(ask()))
    yield "faults", lambda: strictly(msgspec.to_builtins(session.debug.faults()))
    yield "search", lambda: strictly([hit.to_dict() for hit in session.search("gate one", limit=3)])
    for relation in RELATIONS:
        if relation not in ("SESSIONS",):
            yield relation, lambda relation=relation: rows(store.query(relation, session=name))
    yield "film", lambda: msgspec.json.encode(film(store, session))
    yield from _calls(store, session, chance)
    yield from _pages(store, session, chance)


def _calls(store: vmstore.Store, session: Session, chance: random.Random) -> Iterator[Door]:
    calls = [call.call for call in session.calls()]
    for call in {*calls[-2:], *chance.sample(calls, min(len(calls), FEW))}:
        yield (
            f"context of call {call}",
            lambda call=call: strictly(session.context(call=call).to_dict(messages=True, render=True)),
        )
        yield f"request of call {call}", lambda call=call: _request(session, call)
        for how in ("", " MESSAGES", " RENDER"):
            text = f"CONTEXT AT CALL {call}{how}"
            yield text, lambda text=text: rows(store.query(text, session=session.name))
    if len(calls) > 1:
        yield "diff", lambda: strictly(msgspec.to_builtins(session.diff(Call(calls[0]), Call(calls[-1]))))


def _request(session: Session, call: int) -> None:
    with suppress(UnknownError, ErasedError):  # derived, or not there any more
        session.wire.request(call=call)


def _pages(store: vmstore.Store, session: Session, chance: random.Random) -> Iterator[Door]:
    pages = [page.page for page in session.pages()]
    calls = len(session.calls())
    for page in {*pages[-3:], *chance.sample(pages, min(len(pages), FEW))}:
        lineage = session.lineage
        for ask in (lineage.history, lineage.affinity, lineage.ancestors, lineage.descendants, session.page):
            yield f"{ask.__name__} of {page}", lambda ask=ask, page=page: strictly(msgspec.to_builtins(ask(page)))
        yield f"versions of {page}", lambda page=page: msgspec.to_builtins(session.lineage.versions(page, delta=True))
        yield f"content of {page}", lambda page=page: _content(session, page)
        yield f"HISTORY OF {page}", lambda page=page: rows(store.query(f"HISTORY OF {page}", session=session.name))
        if calls:
            for word in ("WHY", "WHY NOT"):
                text = f"{word} {page} IN CONTEXT AT CALL {calls}"
                yield text, lambda text=text: _why(store, session, text)


def _content(session: Session, page: str) -> None:
    with suppress(UnknownError, ErasedError):  # the source never had it, or it is gone
        session.content(page, Head())


def _why(store: vmstore.Store, session: Session, text: str) -> None:
    try:
        rows(store.query(text, session=session.name))
    except vmstore.VmstoreError as error:
        if getattr(error, "code", "") not in ("is-in-context", "not-in-context", "no-such-page", "not-there"):
            raise


def of_folder(store: vmstore.Store, path: Path, folder: Path) -> Iterator[Door]:
    """What is done with a whole store on disk."""

    def verified() -> None:
        problems = store.verify().problems
        if problems:
            raise AssertionError(f"verify: {problems[0]}")

    def healthy() -> None:
        for full in (False, True):
            symptoms = [
                symptom
                for symptom in vmstore.doctor(path, full=full).symptoms
                if symptom.kind not in ("raw", "disk", "wal")
            ]
            if symptoms:
                raise AssertionError(f"doctor: {symptoms[0]}")

    def told_again() -> None:
        out = folder / "told.jsonl"
        store.export(out, redact=False)
        with vmstore.memory_store() as other:
            other.import_file(out)

    yield "verify", verified
    yield "rebuild", store.admin.rebuild
    yield "doctor", healthy
    yield "bundle rewritten", told_again
    yield "backup", lambda: store.backup(folder / "copy.vms")
