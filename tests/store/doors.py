"""Every door of a namespace, tried with the words of another: what each answers, or how it refuses, as plain text."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec

import vmstore
from tests.engine.stories import answer, chat
from vmstore.core.asof import Call
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.debug.api import DebugApi
from vmstore.debug.params import QueryParams
from vmstore.errors import VmstoreError
from vmstore.namespace.signing_keys import SigningKey, new_key
from vmstore.shell.commands.completion import candidates
from vmstore.shell.main import main
from vmstore.store.completions import Candidates
from vmstore.vmql.syntax.errors import QueryError


class Words(NamedTuple):
    """What belongs to another namespace: its name, one of its sessions, a page there, a text, a user."""

    namespace: str
    session: str
    page: str
    text: str
    user: str

    @property
    def address(self) -> str:
        """The page's address in full."""
        return f"vm://{self.namespace}/{self.session}/{self.page}"

    @property
    def namesake(self) -> str:
        """The address of a page whose session both namespaces have one of."""
        return f"vm://{self.namespace}/own/{self.page}"


class Handle:
    """A namespace of a store, opened with a clock and ids that repeat, and what is done with it, by name."""

    def __init__(self, path: Path, namespace: str, other: Words) -> None:
        self.path, self.namespace = path, namespace
        self.clock, self.ids = ManualClock(1_700_000_000_000_000, 1_000), SeededIds(7)
        self.doors = {**reads(other), **writes(other)}
        self.open()

    def open(self) -> None:
        """Opens it, the first time or again."""
        self.store = vmstore.open(self.path, namespace=self.namespace, clock=self.clock, ids=self.ids)

    def do(self, what: str, *arguments: Any) -> str:
        """Does something by its name: one of the methods below, or a door."""
        return self.answer_to(self.doors[what] if what in self.doors else lambda _: getattr(self, what)(*arguments))

    def record(self, session: str, user: str, text: str) -> Any:
        """A call is recorded, of a user's session where it is the first."""
        self.store.session(session, create=True, user=user)
        return self.store.record(session, chat(text), answer(f"so: {text}"))

    def speak(self, user: str, text: str) -> Any:
        """A live session hears something, packs and answers."""
        live = self.store.live_session("alive", l0_tokens_max=4_000, user=user)
        return [live.user(text), live.pack().pages, live.assistant(f"We decided: {text}.")]

    def open_again(self, forget: bool) -> None:
        """Closes it and opens it again, some with the views gone."""
        self.store.close()
        for file in (self.path / self.namespace).glob("views-*") if forget else ():
            file.unlink()
        self.open()

    def close(self) -> None:
        """Lets go of the files."""
        self.store.close()

    def answer_to(self, ask: Callable[[Handle], Any]) -> str:
        """What an asking gives, or how it is refused; the place of the store left out."""
        try:
            text = ask(self)
        except (VmstoreError, QueryError) as error:
            text = f"{type(error).__name__}: {error}"
        return plain(text).replace(str(self.path), "STORE")


def plain(value: Any) -> str:
    """Anything as text, every field of it."""
    return json.dumps(msgspec.to_builtins(value, enc_hook=_fields), default=repr, sort_keys=True)


def _fields(value: Any) -> Any:
    if hasattr(value, "__dict__"):
        return {name: field for name, field in vars(value).items() if not name.startswith("_")}
    return list(value) if isinstance(value, Iterable) else repr(value)


Doors = dict[str, Callable[[Handle], Any]]


def reads(w: Words) -> Doors:
    """Doors that write nothing, by name."""
    return {**_asked(w), **_queried(w), **_handed(w), **_commanded(w), **_debugged(w)}


def _queried(w: Words) -> Doors:
    statements = [
        "SESSIONS", "PAGES", "PAGES count(*), sum(tokens) ACROSS SESSIONS", f"PAGES IN SESSION '{w.session}'",
        f"PAGES ACROSS SESSIONS OF USER '{w.user}'", f"PAGES IN SESSION '{w.session[:2]}%'",
        "MUTATIONS ACROSS SESSIONS", "CALLS ACROSS SESSIONS", "TURNS ACROSS SESSIONS", "FAULTS ACROSS SESSIONS",
        f"SEARCH '{w.text}' ACROSS SESSIONS",
        f"CALLS ACROSS SESSIONS WHERE CONTEXT MATCHES '{w.text}'", f"CONTEXT AT CALL 1 IN SESSION '{w.session}'",
        f"HISTORY OF {w.namesake} IN SESSION own", f"SOURCES OF {w.namesake} IN SESSION own",
        f"WHY {w.namesake} IN CONTEXT AT CALL 1 IN SESSION own", f"RESIDENCIES OF {w.namesake} IN SESSION own",
        f"DERIVED FROM {w.address} IN SESSION own", f"PAGES IN SESSION own WHERE page = '{w.namesake}'",
        f"HISTORY OF {w.address}", f"SOURCES OF {w.address}", f"DERIVED FROM {w.address}",
        f"RESIDENCIES OF {w.address}",
        f"HISTORY OF {w.page} IN SESSION '{w.session}'", f"WHY {w.address} IN CONTEXT AT CALL 1",
        f"DIFF SESSION own TO '{w.session}' AT CALL 1", f"FORK SESSION '{w.session}' AT CALL 1 AS 'taken'",
        f"VERIFY SESSION '{w.session}'", "VERIFY", "EXPLAIN PAGES ACROSS SESSIONS", "SHOW SESSIONS",
        "MUTATIONS ACROSS SESSIONS LIMIT 3", f"PAGES WHERE hint = '{w.text}'",
    ]  # fmt: skip
    return {f"vmql {text}": partial(_rows, text) for text in statements}


def _asked(w: Words) -> Doors:
    return {
        "sessions": lambda h: h.store.sessions(hidden=True),
        "sessions of a user": lambda h: h.store.sessions(user=w.user),
        "pages": lambda h: h.store.pages(),
        "pages of a user": lambda h: h.store.pages(user=w.user),
        "pages after": lambda h: h.store.pages(after=f"{w.session}/{w.page}"),
        "search": lambda h: h.store.search(w.text),
        "session": lambda h: h.store.session(w.session),
        "find": lambda h: h.store.catalog.find_page(w.address),
        "find a tail": lambda h: h.store.catalog.find_page(f"{w.session}/{w.page}"),
        "find a page": lambda h: h.store.catalog.find_page(w.page),
        "page of a namesake": lambda h: h.store.session("own").page(w.namesake),
        "content of a namesake": lambda h: h.store.session("own").content(w.namesake),
        "find a namesake": lambda h: h.store.catalog.find_page(w.namesake),
        "page": lambda h: h.store.session("own").page(w.address),
        "content": lambda h: h.store.session("own").content(w.address),
        "open": lambda h: h.store.session("own").open_content(w.address),
        "history": lambda h: h.store.session("own").lineage.history(w.address),
        "versions": lambda h: h.store.session("own").lineage.versions(w.address),
        "affinity": lambda h: h.store.session("own").lineage.affinity(w.address),
        "diff": lambda h: h.store.session("own").diff(Call(1), Call(99)),
        "search one": lambda h: h.store.session("own").search(w.text),
        "prove": lambda h: h.store.trust.prove("own", w.address, call=1).proof,
        "prove own": lambda h: h.store.trust.prove("own", "p4", call=1).proof,
    }


def _handed(w: Words) -> Doors:
    return {
        "tail": lambda h: list(h.store.tail()),
        "tail beyond": lambda h: list(h.store.tail("999.1")),
        "info": lambda h: h.store.info(),
        "usage": lambda h: h.store.admin.usage(),
        "verify": lambda h: h.store.verify(),
        "export": lambda h: _exported(h.store, None),
        "export one": lambda h: _exported(h.store, [w.session]),
        "export sql": lambda h: h.store.export(h.path.parent / "out.db", [w.session], format="sqlite"),
        "backup": lambda h: _backup(h.store),
        "page table": lambda h: h.store.admin.page_table([w.session]),
        "replay": lambda h: h.store.session(w.session).debug.replay(),
        "candidates": lambda h: _candidates(h.store, w),
        "tab sessions": lambda h: candidates(["pages", str(h.path), "--namespace", h.namespace], ""),
        "tab pages": lambda h: candidates(["history", str(h.path), "own", "--namespace", h.namespace], ""),
        "tab their pages": lambda h: candidates(["history", str(h.path), w.session, "--namespace", h.namespace], ""),
        "tab namespaces": lambda h: candidates(["pages", str(h.path), "--namespace"], w.namespace[:1]),
        "no namespace": lambda h: vmstore.open(h.path, "r", namespace="nobody"),
        "awaited": lambda h: asyncio.run(_awaited(h, w)),
    }


def _commanded(w: Words) -> Doors:
    rows = (
        ["sessions"], ["info"], ["verify"], ["pages", w.session], ["history", "own", w.page],
        ["context", w.session], ["derived", "own", w.address], ["page", w.address], ["du"], ["tail"],
    )  # fmt: skip
    return {f"vmstore {' '.join(words)}": partial(_command, words) for words in rows}


def _debugged(w: Words) -> Doors:
    asked = [
        ("/api/store", {}),
        ("/api/film", {"session": w.session}),
        ("/api/texts", {"session": w.session, "of": "1"}),
        ("/api/vmql", {"q": f"SEARCH '{w.text}'"}),
        ("/api/complete", {"q": f"PAGES IN SESSION {w.session[:1]}"}),
        ("/api/request", {"session": w.session, "call": "1"}),
        ("/api/until", {"session": w.session, "q": "p4 LEAVES L0"}),
    ]
    return {address: partial(_served, address, item) for address, item in asked}


def writes(w: Words) -> Doors:
    """Doors that may write to the namespace of the handle, by name: done in the same order everywhere."""
    return {
        "fork": lambda h: h.store.session(w.session).fork("taken"),
        "redrive": lambda h: h.store.admin.redrive(w.session, "taken", l0_tokens_max=4_000),
        "annotate": lambda h: h.store.session("own").annotate(w.address, tags=["seen"]),
        "fault": lambda h: _live(h.store).page_fault(w.address),
        "fault a page": lambda h: _live(h.store).page_fault(w.page),
        "fault a namesake": lambda h: _live(h.store).page_fault(w.address.replace(w.session, "alive")),
        "annotate a namesake": lambda h: h.store.session("own").annotate(w.namesake, tags=["seen"]),
        "pin": lambda h: _live(h.store).pin(w.address),
        "search alive": lambda h: _live(h.store).search(w.text),
        "claim": lambda h: _live(h.store).claim("It holds.", sources=[w.address]),
        "seal": lambda h: vmstore.seal(h.store, key(), clock=h.clock),
        "compact": lambda h: h.store.admin.compact(),
        "rebuild": lambda h: h.store.admin.rebuild(),
        "sweep": lambda h: h.store.admin.collect_garbage(),
    }


def key() -> SigningKey:
    """A key to seal with, the same every time."""
    if not _KEYS:
        with TemporaryDirectory() as folder:
            _KEYS.append(new_key(Path(folder) / "key", ids=SeededIds(1)))
    return _KEYS[0]


_KEYS: list[SigningKey] = []


def _live(store: vmstore.Store) -> vmstore.Live:
    return store.live_session("alive", l0_tokens_max=4_000)


def _rows(text: str, h: Handle) -> Any:
    result = h.store.query(text)
    return [list(result), list(result.columns), result.basis]


def _exported(store: vmstore.Store, names: list[str] | None) -> str:
    out = io.BytesIO()
    store.export(out, names)
    return out.getvalue().decode()


def _backup(store: vmstore.Store) -> Any:
    with TemporaryDirectory() as folder:
        namespaces = store.backup(Path(folder) / "copy").namespaces
        return [namespaces, sorted(path.relative_to(folder).as_posix() for path in Path(folder).rglob("*"))]


def _candidates(store: vmstore.Store, w: Words) -> Any:
    offered = Candidates(lambda statement, begins: store.query(statement, begins=begins))
    texts = ("PAGES IN SESSION ", f"PAGES IN SESSION '{w.session[:1]}", "HISTORY OF ", f"HISTORY OF {w.page[:1]}",
             "PAGES ACROSS SESSIONS OF USER ", "PAGES WHERE hint = ", "PAGES WHERE user = ")  # fmt: skip
    return [[item._asdict() for item in _offered(offered, text)] for text in texts]


def _offered(offered: Candidates, text: str) -> Any:
    try:
        return offered.of(text)
    except (QueryError, VmstoreError):
        return []


async def _awaited(h: Handle, w: Words) -> Any:
    async with vmstore.aio.open(h.path, "r", namespace=h.namespace) as store:
        items: list[Any] = [await store.sessions(), await store.search(w.text)]
        try:
            await store.session(w.session)
        except VmstoreError as error:
            items.append(str(error))
        return items


def _command(words: list[str], h: Handle) -> str:
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(out):
        code = main([words[0], str(h.path), *words[1:], "--namespace", h.namespace, "--json"])
    return f"{code}: {out.getvalue()}"


def _served(address: str, fields: dict[str, str], h: Handle) -> str:
    answers = DebugApi(h.store, "STORE", h.namespace)
    return answers.table[address](QueryParams(fields)).decode("utf-8", "replace")
