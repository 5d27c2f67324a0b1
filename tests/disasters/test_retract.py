"""A retraction is overtaken, or killed half way: nothing is marked by half, and asking again finishes it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.child import kill, start
from tests.store.webs import superseded
from vmstore.core.mutation import Create
from vmstore.core.page import LinkKind, Modality, PageType, Role
from vmstore.retraction import retract
from vmstore.store.store import Store

SESSIONS = 12


def made(store: Store, session: str, *links: int) -> int:
    """A page of a session, made from others."""
    with store.session(session, create=True).batch() as batch:
        number = batch.position
        text = f"{session} {number}".encode()
        stands = tuple((int(LinkKind.DERIVES), far) for far in links)
        batch.add(
            Create(PageType.CLAIM, Modality.TEXT, Role.ASSISTANT, 0, 0, batch.cell(text), len(text), 4, links=stands)
        )
    return number


def test_who_is_overtaken_decides_again(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process that adds to a session meanwhile is seen: what it made of the page is marked too."""
    with vmstore.open(store_path) as store, vmstore.open(store_path) as other:
        root = made(store, "a")
        store.session("a").fork("b")
        late: list[int] = []
        mark = retract._mark

        def overtaken(asked: Any, part: Any) -> list[int]:
            if part.name == "b" and not late:
                late.append(made(other, "b", root))
            return mark(asked, part)

        monkeypatch.setattr(retract, "_mark", overtaken)
        retraction = vmstore.retract(store, page=f"a/p{root}", reason="wrong")
        assert retraction.again == 1 and [session.session for session in retraction.sessions] == ["a", "b"]
        assert superseded(store, "a") == {root} and superseded(store, "b") == {root, late[0]}
        assert {page.page for page in retraction.sessions[1].pages} == {f"p{root}", f"p{late[0]}"}
        assert len(retraction.sessions[0].pages) == 1, "what was marked before is told once"
        assert store.verify().ok


def half_way(path: Path, done: int, number: int) -> None:
    """Retracts until so many sessions are marked, says so and waits to be killed."""
    store = vmstore.open(path)
    mark, marked = retract._mark, [0]

    def counted(asked: Any, part: Any) -> list[int]:
        if marked[0] == done:
            os.write(number, b".")
            os.read(os.pipe()[0], 1)
        marked[0] += 1
        return mark(asked, part)

    retract._mark = counted
    vmstore.retract(store, session="main", reason="went wrong")


@pytest.mark.parametrize("done", [0, 1, SESSIONS // 2, SESSIONS])
def test_a_kill_half_way_is_finished_by_asking_again(store_path: Path, done: int) -> None:
    """Whatever had been marked when it died is there, whole sessions at a time; the same call marks the rest once."""
    with vmstore.open(store_path) as store:
        root = made(store, "main")
        made(store, "main", root)
        for n in range(SESSIONS):
            store.session("main").fork(f"fork-{n}")
            made(store, f"fork-{n}", root)
    reader, writer = os.pipe()
    pid = start(lambda: half_way(store_path, done, writer))
    assert os.read(reader, 1) == b"."
    kill(pid)
    with vmstore.open(store_path) as store:
        names = [info.session for info in store.sessions()]
        before = [name for name in names if superseded(store, name)]
        assert len(before) == done and all(len(superseded(store, name)) in (2, 3) for name in before)
        retraction = vmstore.retract(store, session="main", reason="went wrong")
        assert sum(bool(session.pages) for session in retraction.sessions) == SESSIONS + 1 - done
        assert all(len(superseded(store, name)) == 2 + name.startswith("fork") for name in names)
        value = [note for name in names for note in notes(store, name)]
        assert len(value) == len(set(value)), "no page of a session is marked twice"
        assert not vmstore.retract(store, session="main").work and store.verify().ok
    os.close(reader)
    os.close(writer)


def notes(store: Store, session: str) -> list[tuple[str, str]]:
    """Each mark a session has of its own, by page."""
    key = store._ns.key(session)
    rows: Any = store.admin.views.execute("SELECT page FROM notes WHERE session = ?", (key,)).fetchall()
    return [(session, f"p{page}") for (page,) in rows]
