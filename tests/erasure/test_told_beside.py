"""What is told while another process erases: all of it or nothing, and nothing once it is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests import lanes
from tests.erasure.test_beside import BESIDE, LONG, SECRET, erasing, path
from vmstore import Call
from vmstore.debug.api import DebugApi
from vmstore.debug.export import exported
from vmstore.debug.params import QueryParams
from vmstore.errors import ErasedError, RefusedError
from vmstore.store.session import Session
from vmstore.store.store import Store

FORMS: dict[str, dict[str, Any]] = {
    "masked": {},
    "exact": {"exact": True},
    "parquet": {"format": "parquet", "redact": False},
    "sqlite": {"format": "sqlite", "redact": False},
}
RECORDED = [step for step in BESIDE if step != "marked"]
PLANTED = [SECRET.encode(), LONG[:60].encode(), b"violet-tag"]
__all__ = ["path"]


@pytest.mark.parametrize(("step", "form"), lanes.crossed(BESIDE, FORMS))
def test_an_export_is_whole(path: Path, step: str, form: str) -> None:
    """Wherever an erasure stands, what is exported beside it can be taken in, and nothing is said to be damaged."""
    out = path.with_name("out")
    with vmstore.open(path) as store, erasing(path, step):
        try:
            store.export(out, **FORMS[form])
        except RefusedError as refused:
            assert "erasure" in str(refused) and form == "exact" and not out.exists()
            store.export(out, **FORMS[form])
    if form in ("masked", "exact"):
        with vmstore.open(path.with_name("other.vms")) as other:
            other.import_file(out, exact=form == "exact")
            assert other.verify().ok and len(other.sessions()) == 2


def contents(_: Store, session: Session) -> Iterator[bytes]:
    """Each page, whole and as a file."""
    for page in session.pages():
        with suppress(ErasedError):
            yield session.content(page.page)
        with suppress(ErasedError), session.open_content(page.page) as file:
            yield file.read()


def shown(_: Store, session: Session) -> Iterator[bytes]:
    """What calls showed and sent."""
    for call in session.calls():
        yield session.context(call=call.call).text().encode()
        yield str(session.context(call=call.call).messages()).encode()
        with suppress(ErasedError):
            yield str(session.wire.request(call=call.call)).encode()


def asked(store: Store, session: Session) -> Iterator[bytes]:
    """What VMQL tells, and which pages it finds by their words."""
    for statement in ("PAGES page, text", "MESSAGES text", "VERSIONS text", "MUTATIONS"):
        yield from (str(row).encode() for row in store.query(statement, session=session.name))
    for text in ("PAGES page WHERE text MATCHES 'combination'", "CALLS call WHERE CONTEXT MATCHES 'combination'"):
        yield from (SECRET.encode() for _ in store.query(text, session=session.name))


def searched(store: Store, session: Session) -> Iterator[bytes]:
    """What the words find."""
    yield from (str(hit).encode() + SECRET.encode() for hit in store.search("combination"))
    yield from (str(hit).encode() + SECRET.encode() for hit in session.search("violet"))


def handed_on(store: Store, session: Session) -> Iterator[bytes]:
    """What leaves the store, in every form."""
    yield exported(store, session, redact=False).content
    for form, other_form in FORMS.items():
        folder = Path(store.folder or "").parent.parent / f"{form}-{session.name}"
        store.export(folder, session.name, **other_form)
        files = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
        yield from (file.read_bytes() for file in files)


def looked_up(store: Store, session: Session) -> Iterator[bytes]:
    """What stands beside contents: previews, differences, names, tags, and every other question of a session."""
    yield from (str(case).encode() for case in (session.turns(), session.calls(), session.wire.messages()))
    yield str(session.diff(Call(1), Call(2))).encode()
    for page in session.pages():
        asked = (
            session.page,
            session.lineage.versions,
            session.lineage.history,
            session.lineage.ancestors,
            session.lineage.descendants,
            session.lineage.affinity,
        )
        yield from (str(ask(page.page)).encode() for ask in asked)
        yield str(session.lineage.versions(page.page, delta=True)).encode()
    yield from (str(case).encode() for case in (*store.tail(), *store.pages(), store.admin.page_table()))


def served(store: Store, session: Session) -> Iterator[bytes]:
    """What the debugger hands a browser."""
    table = DebugApi(store, "a.vms", "default").table
    fields = {"session": session.name}
    pages = ",".join(page.page[1:] for page in session.pages())
    yield table["/api/store"](QueryParams({}))
    yield table["/api/film"](QueryParams(fields))
    yield table["/api/film"](QueryParams({**fields, "budget": "9000"}))
    yield table["/api/texts"](QueryParams({**fields, "at": pages}))
    yield table["/api/vmql"](QueryParams({**fields, "q": "PAGES page, text"}))
    with suppress(ErasedError):
        yield table["/api/request"](QueryParams({**fields, "call": "2"}))


Way = Callable[[Store, Session], Iterator[bytes]]
WAYS: list[Way] = [
    contents,
    shown,
    asked,
    searched,
    looked_up,
    handed_on,
    served,
]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_told_holds_it_before(path: Path, way: Way) -> None:
    """Each way of asking tells what was planted while nothing was erased."""
    with vmstore.open(path, "r") as store:
        assert any(planted in content for content in way(store, store.session("s")) for planted in PLANTED)


@pytest.mark.parametrize(("step", "way"), lanes.crossed(RECORDED, WAYS))
def test_what_is_recorded_is_told_to_nobody(path: Path, step: str, way: Way) -> None:
    """From the moment an erasure is in the log, nobody who asks hears of it, be its bytes still there or not."""
    with erasing(path, step), vmstore.open(path, "r") as store:
        (name,) = [session.session for session in store.sessions() if session.session != "t"]
        for content in way(store, store.session(name)):
            assert not any(planted in content for planted in PLANTED)


@pytest.mark.parametrize("way", WAYS)
def test_a_handle_that_told_it_before_tells_it_no_more(path: Path, way: Way) -> None:
    """Who held the store open, and was told what was planted, is told nothing of it once its erasure is in the log."""
    with vmstore.open(path) as store:
        session = store.session("s")
        assert any(planted in other_content for planted in PLANTED for other_content in way(store, session))
        with erasing(path, "recorded"):
            store.sessions()
            for content in way(store, store.session(session.info().session)):
                assert not any(planted in content for planted in PLANTED)
