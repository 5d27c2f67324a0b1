"""A session rewritten: its answers with ids and hashes of another log; what is hidden or erased is so at its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.cells.cell import Cell
from vmstore.core.asof import Head
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.erasure import ErasureReason
from vmstore.core.mutation import Compress, Create, Update
from vmstore.core.page import Level, Method
from vmstore.engine.transfer.ingest import CommitCollector
from vmstore.engine.transfer.rewrite import opening_of, rewrite_session
from vmstore.errors import CorruptError, ErasedError
from vmstore.log.memory import MemoryLog
from vmstore.store.store import Store, memory_store
from vmstore.transfer.sessions import portions_of
from vmstore.views.selection import commits_of

SECRET = "my word is Rumpelstiltskin, "
SHOWN = b"[X]"
Hide = Callable[[bytes], bytes]
Cells = dict[int, Cell]


def hide(content: bytes) -> bytes:
    """What is to be seen of a content."""
    return content.replace(SECRET.encode(), SHOWN)


def gathered(store: Store, raw: Cells | None = None) -> CommitCollector:
    """All sessions of a store; with `raw` cells as they lay there once."""
    collector = CommitCollector(MemoryLog())
    for portion in portions_of(store._ns, [session.session for session in store.sessions()], Head()):
        for commit in commits_of(store._ns.projection, portion):
            cells = commit.cells
            if raw is not None:
                cells = tuple(raw.get(commit.cell + at, cell) for at, cell in enumerate(cells))
            collector.take(portion.name, replace(commit, cells=cells))
    collector.settle()
    return collector


def retold(collector: CommitCollector, hide: Hide | None = None) -> Store:
    """A sound store in memory to which all that was gathered was rewritten."""
    new, keys = kept(), dict[bytes, int]()
    for foreign in collector.sessions():
        opening = opening_of(collector, foreign, keys, foreign.name, foreign.hash.hex())
        keys[foreign.uid] = rewrite_session(new._ns.engine, collector, foreign, opening, hide).session
    new.admin.follow()
    verdict = new.verify()
    assert verdict.ok, verdict.problems
    return new


def kept() -> Store:
    """An empty store whose clock and ids repeat."""
    return memory_store(clock=ManualClock(5_000_000), ids=SeededIds(3))


def rows(store: Store, sql: str) -> list[tuple[Any, ...]]:
    """Rows of the views."""
    store.admin.follow()
    return list(store.admin.views.execute(sql))


def sized(store: Store) -> list[tuple[int, int, bytes]]:
    """Each content that a page was given: its size as told, its tokens, its bytes."""
    store.admin.follow()
    return [
        (size, tokens, store.admin.log.cells([cell])[cell].content)
        for size, tokens, cell in store.admin.views.execute("SELECT size, tokens, cell FROM versions ORDER BY position")
    ]


def test_what_is_hidden_has_the_size_it_is_shown_with() -> None:
    """Sizes of new, changed and shorter contents are those of what is shown, tokens in proportion; others stay."""
    store = kept()
    session = store.session("s", create=True, user="ann")
    with session.batch() as batch:
        batch.add(Create(0, 0, 2, 0, 0, batch.cell(b"nothing of it"), 13, 4))
        page = batch.add(Create(0, 0, 2, 0, 0, batch.cell(SECRET.encode() * 9), 9 * len(SECRET), 63))
        batch.add(Update(page, 2, batch.cell(b"more " + SECRET.encode() * 5), 5 + 5 * len(SECRET), 37))
        batch.add(Compress(page, 2, Level.ABSTRACT, Method.SHORTENED, 1, batch.cell(SECRET.encode()), len(SECRET), 7))
    before, after = sized(store), sized(retold(gathered(store), hide))
    assert [content for _, _, content in after] == [hide(content) for _, _, content in before]
    for (size, tokens, _), (shown, left, content) in zip(before, after, strict=True):
        assert shown == len(content)
        assert left == (tokens if shown == size else -(-tokens * shown // size))
    assert sized(retold(gathered(store))) == before


def test_an_erased_content_keeps_its_size() -> None:
    """A content that was erased is as long as it was, also where a hidden one of that length stood at its place."""
    store = kept()
    for name in ("a", "b"):
        session = store.session(name, create=True)
        for word in (b"1", b"2"):
            with session.batch() as batch:
                batch.add(Create(0, 0, 2, 0, 0, batch.cell(SECRET.encode() + word), len(SECRET) + 1, 8))
    last = store.session("a").pages()[-1].page
    vmstore.erase(store, page=last, in_session="a")
    sizes = "SELECT size, tokens FROM versions ORDER BY session, position"
    shown = (len(SHOWN) + 1, -(-8 * (len(SHOWN) + 1) // (len(SECRET) + 1)))
    assert rows(retold(gathered(store), hide), sizes) == [shown, (len(SECRET) + 1, 8), shown, shown]


def test_request_ids_are_told_where_nothing_is_hidden() -> None:
    """A copy knows the request ids of its original; one with placeholders none, nor is an erased one told."""
    store = kept()
    store.record("s", chat("One."), answer("Yes."), request_id="r-1")
    store.record("s", chat("One.", "Yes.", "Two."), answer("No."), request_id="r-2")

    def ids(asked: Store) -> list[str]:
        return [item for (item,) in asked.query("MUTATIONS request_id", session="s") if item is not None]

    assert set(ids(store)) == set(ids(retold(gathered(store)))) == {"r-1", "r-2"}
    assert ids(retold(gathered(store), hide)) == []
    vmstore.erase(store, page=store.session("s").pages()[-1].page, in_session="s")
    copy = retold(gathered(store))
    assert "r-2" not in ids(copy) and "" not in ids(copy) and "r-1" in ids(copy)
    assert rows(copy, ERASURES) == rows(store, ERASURES)


def several() -> Store:
    """A session that lost contents of its last, a middle and its first commit, one after the other."""
    store = kept()
    store.record("s", chat("First of all."), answer("Yes."), request_id="r-1")
    session = store.session("s")
    for nth in range(5):
        with session.batch() as batch:
            for row in "ab":
                content = f"{row}{nth} {SECRET}".encode()
                batch.add(Create(0, 0, 2, 0, 0, batch.cell(content), len(content), 9))
    pages = [page.page for page in session.pages()]
    assert len(pages) == 13
    for at in (12, 6, 3, 1):
        vmstore.erase(store, page=pages[at], in_session="s", reason="secret")
    return store


ERASURES = "SELECT position, reason, cells FROM erasures ORDER BY position"
GONE = "SELECT v.position, e.position FROM versions v JOIN erased e ON e.cell = v.cell ORDER BY v.position"


@pytest.mark.parametrize("hiding", [None, hide])
def test_each_erasure_names_what_it_named(hiding: Hide | None) -> None:
    """Erasures stand where they stood, with their reasons, each with the contents that it took and no others."""
    store = several()
    copy = retold(gathered(store), hiding)
    assert rows(copy, ERASURES) == rows(store, ERASURES) and len(rows(store, ERASURES)) == 4
    assert rows(copy, GONE) == rows(store, GONE)


def test_a_session_erased_whole_is_told_so() -> None:
    """Of a session that was erased nothing is left but how it went; what it was opened with is told to nobody."""
    store = kept()
    store.session("s", create=True, user="ann", title="a secret title")
    store.record("s", chat("One."), answer("Yes."), at_us=1_000_000)
    vmstore.erase(store, session="s")
    copy = retold(gathered(store))
    (info,) = copy.sessions()
    assert (info.user, info.title, info.calls) == (None, None, 1)
    assert rows(copy, ERASURES) == rows(store, ERASURES)
    assert (
        copy.session(info.session).context(call=1).messages() == store.session(info.session).context(call=1).messages()
    )


def test_what_is_erased_elsewhere_ends_the_session() -> None:
    """Where the record of an erasure is not told, one stands at the end, at the time of the last commit."""
    store = kept()
    for at, texts in enumerate((["One."], ["One.", "Yes.", SECRET], ["One.", "Yes.", SECRET, "Hm.", "Four."]), 1):
        store.record("s", chat(*texts), answer(("Yes.", "Hm.", "Well.")[at - 1]), at_us=at * 1_000_000)
    store.session("s").annotate("p4", importance=0.5, at_us=9_000_000)
    end = store.session("s").info().position
    page = next(
        page.page for page in store.session("s").pages() if SECRET.encode() in store.session("s").content(page.page)
    )
    vmstore.erase(store, page=page, in_session="s")
    collector = CommitCollector(MemoryLog())
    collector.log.erased = {}  # type: ignore[attr-defined]
    (portion,) = portions_of(store._ns, ["s"], vmstore.Position(end))
    number = 0
    for commit in commits_of(store._ns.projection, portion):
        for cell in commit.cells:
            number += 1
            if cell.erased:
                collector.log.erased[number] = end + 1  # type: ignore[index]
        collector.take("s", commit)
    collector.settle()
    copy = retold(collector)
    ((position, reason, cells),) = rows(copy, ERASURES)
    assert (position, ErasureReason(reason).word, cells) == (end + 1, "restored", 1)
    times = [entry.at for entry in copy.tail()]
    assert times[-1] == times[-2] == 9_000_000 > times[-3]


def test_an_erasure_of_nothing_is_no_story() -> None:
    """A record of an erasure whose contents are all there is refused."""
    store = kept()
    store.record("s", chat("One."), answer("Yes."))
    store.admin.follow()
    raw = dict(store.admin.log.cells(range(1, store.admin.log.last_cell + 1)))
    vmstore.erase(store, page=store.session("s").pages()[0].page, in_session="s")
    with refused("nothing-erased", ErasedError):
        retold(gathered(store, raw))


@pytest.mark.parametrize("damage", ["its own is another", "an earlier one is another", "an earlier one is missing"])
def test_a_damaged_content_is_told_to_nobody(damage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A content that is not there, or is another than was sealed, ends the telling and is named."""
    store = kept()
    store.record("s", chat("One."), answer("Yes."))
    with store.session("s").batch() as batch:  # names what the call before brought
        batch.add(Create(0, 0, 2, 0, 0, batch.cell(b"One."), 4, 1))
    collector = gathered(store)
    real = collector.log.cells

    def damaged(numbers: Any, *, archived: bool = True) -> Cells:
        cells = dict(real(numbers, archived=archived))
        for number, cell in list(cells.items()):
            if cell.content == b"One." and isinstance(numbers, list) == ("earlier" in damage):
                cells[number] = Cell(cell.salt, b"Three")
                if "missing" in damage:
                    del cells[number]
        return cells

    monkeypatch.setattr(collector.log, "cells", damaged)
    with refused("cell-damaged", CorruptError):
        retold(collector)


def test_a_fork_inherits_what_stood_at_its_fork() -> None:
    """A fork rewritten shows the pages of its past with their levels and ranks, and adds its own to them."""
    store = kept()
    store.record("s", chat("One.", "Yes.", "Two. " * 90), answer("No."))
    store.record("s", chat("One.", "Yes.", "[cut]", "No.", "Three."), answer("Hm."))
    for call in (1, 2):
        fork = store.session("s").fork(f"b{call}", call=call)
        fork.record(chat("One.", "Yes.", "[cut]", "No.", "Four."), answer("Four it is."))
    copy = retold(gathered(store))
    for name in ("s", "b1", "b2"):
        for call in store.session(name).calls():
            context, was = copy.session(name).context(call=call.call), store.session(name).context(call=call.call)
            assert context.messages() == was.messages() and context.tokens == was.tokens
            assert [(page.page, page.level, page.tokens) for page in context.pages] == [
                (page.page, page.level, page.tokens) for page in was.pages
            ]
