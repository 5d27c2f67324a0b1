"""Sessions: opened, named, listed; what they say of themselves, and answers that repeat."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.capture.words import answer, model_text, request, system, user
from tests.refusals import refused
from tests.store.kept import FULL, HEAD, told_at, told_in_memory
from vmstore.core.asof import Call, Head, Position, Turn
from vmstore.errors import CorruptError, InputError, RefusedError, UnknownError
from vmstore.store.store import memory_store, open_store


def test_a_session_is_opened_at_first_use() -> None:
    """Recording under a new name opens the session; asking for a name never does."""
    with memory_store() as store:
        with refused("no-session", UnknownError):
            store.session("s")
        store.record("s", request(HEAD))
        assert [info.session for info in store.sessions()] == ["s"]


def test_a_session_may_be_opened_before_its_first_call(store_path: Path) -> None:
    """`create` opens a session with its user, agent and title, once; a second time it is the one there is."""
    with open_store(store_path) as store:
        made = store.session("s", create=True, user="ann", agent="coder", title="A garden")
        info = made.info()
        assert (info.user, info.agent, info.title) == ("ann", "coder", "A garden")
        assert (info.turns, info.calls, info.pages, info.origin) == (0, 0, 0, "new")
        again = store.session("s", create=True, user="bob")
        assert again.info() == info
        assert store.info().commits == 1
    with open_store(store_path) as store:
        store.record("s", request(HEAD))
        assert (store.session("s").info().user, store.session("s").info().calls) == ("ann", 1)


def test_a_session_without_a_call_has_no_context() -> None:
    """Nothing there is said as such: no pages is an empty list, no context an error."""
    with memory_store() as store:
        session = store.session("s", create=True)
        assert (session.pages(), session.calls(), session.turns()) == ([], [], [])
        for moment in (Head(), Call(1), Turn(0), Turn(1), Position(1)):
            with pytest.raises(UnknownError, match=r"no call yet|nearest is turn 0|no model call at or before"):
                session.context(moment)


def test_an_unknown_session_names_the_nearest() -> None:
    """A name nobody opened is an error with the closest name there is."""
    with memory_store() as store:
        for name in ("planner", "critic"):
            store.record(name, request(HEAD))
        with refused("no-session", UnknownError, "'planner'"):
            store.session("planer")
        with refused("no-session", UnknownError, "'zzz'"):
            store.session("zzz")


def test_sessions_are_listed_by_name_with_their_counts() -> None:
    """The list says of each session how much it holds."""
    with told_in_memory() as store:
        store.record("a", request(HEAD), answer(model_text("x")))
        first, second = store.sessions()
        assert (first.session, first.turns, first.calls, first.messages, first.pages) == ("a", 1, 1, 3, 3)
        assert (second.session, second.turns, second.calls) == ("s", 2, 4)
        assert (second.messages, second.pages, second.raw, second.fidelity) == (9, 9, 0, "recorded")
        assert second.tokens == sum(page.tokens for page in store.session("s").pages())
        assert second.position == second.mutations == len([e for e in store.tail() if e.session == "s"])


def test_a_session_object_records_under_its_name() -> None:
    """Recording through a session, by its object or by its name is the same session."""
    with memory_store() as store:
        session = store.session("s", create=True)
        assert session.record(request(HEAD)).call == 1
        assert store.record(session, request(FULL)).call == 2
        assert store.record("s", request(FULL), at_us=7, latency_us=3, cost=0.1).call == 3
        assert repr(session) == "<Session 's'>"


def test_an_answer_names_the_moment_it_holds_for() -> None:
    """The basis of an answer, given back, repeats it, also after more was recorded."""
    with told_in_memory() as store:
        session = store.session("s")
        before = [session.context(call=n) for n in (1, 2, 3, 4)]
        store.record("s", request([*HEAD, model_text("more"), user("and more")]))
        for was in before:
            basis = was.basis
            for again in (session.context(position=basis.position), session.context(Call(basis.call))):
                assert (again.basis, again.root) == (basis, was.root)
                assert again.to_dict(messages=True, render=True) == was.to_dict(messages=True, render=True)


def test_the_past_does_not_move() -> None:
    """Pages, calls and histories as of a position are the same when asked then and when asked later."""
    with memory_store() as store:
        asked = []
        for n in range(1, 9):
            store.record("s", request([system(f"v{n}"), user("q"), *[model_text(f"a{k}") for k in range(n)]]))
            session = store.session("s")
            end = session.info().position
            asked.append(
                (end, session.pages(), session.lineage.history(session.pages()[0].page), session.context().text())
            )
        for end, pages, history, text in asked:
            assert session.pages(position=end) == pages
            assert session.lineage.history(pages[0].page, position=end) == history
            assert session.context(Position(end)).text() == text


def test_contexts_are_read_by_many_threads_at_once() -> None:
    """Pages, messages and text of contexts asked for by several threads are those that one alone reads."""
    with memory_store() as store:
        for call in range(1, 13):
            store.record("s", request([user(f"line {n} " * 40) for n in range(call * 3)]))
        session = store.session("s")

        def read(call: int) -> tuple[object, ...]:
            context = session.context(call=call)
            return context.messages(), context.pages, context.text()

        alone = [read(call) for call in range(1, 13)]
        with ThreadPoolExecutor(6) as pool:
            for _ in range(5):
                assert list(pool.map(read, range(1, 13))) == alone


def test_one_question_names_one_moment() -> None:
    """Two moments at once, or a moment that is none, are refused with the reason."""
    with told_in_memory() as store:
        session = store.session("s")
        with refused("two-moments", InputError):
            session.context(turn=1, call=1)
        with refused("two-moments", InputError):
            session.context(Call(1), turn=1)
        for wrong in (-1, "1", 1.5, True):
            with refused("not-a-moment", InputError):
                session.context(call=wrong)
        with pytest.raises(TypeError):
            session.context(moment=1)


@pytest.mark.parametrize("name", ["s", "a\nb", "", "x" * 501])
def test_a_fork_needs_a_name_of_its_own(name: str) -> None:
    """A taken or impossible name is refused, and no session is left of it."""
    with told_in_memory() as store:
        with pytest.raises((RefusedError, InputError), match="name"):
            store.session("s").fork(name)
        assert len(store.sessions()) == 1 and store.verify().ok


def test_info_counts_the_whole_namespace(store_path: Path) -> None:
    """Sessions, commits, mutations and pages are counts over all; sizes are those of the files."""
    with told_at(store_path) as store:
        store.record("t", request(HEAD))
        info = store.info()
        infos = store.sessions()
        assert (info.sessions, info.pages) == (2, sum(info.pages for info in infos))
        assert info.mutations == sum(info.mutations for info in infos) == len(list(store.tail()))
        folder = store_path / "default"
        assert info.bytes_log == sum(f.stat().st_size for f in folder.glob("log.sqlite*") if f.suffix != ".sqlite-shm")
        assert info.bytes_views > 0 == info.bytes_blobs
        assert set(info.positions) >= {"pages", "messages", "turns", "calls", "residency", "lineage", "sessions"}
        assert set(info.positions.values()) == {info.commits}


@pytest.mark.parametrize("length", [10, 65_536, 65_537, 700_000])
def test_a_content_is_read_in_pieces(store_path: Path, length: int) -> None:
    """A page's content, however long, is opened as a file, equal to its bytes from any place."""
    text = "".join(f"{n} " for n in range(length))[:length]
    with open_store(store_path) as store:
        store.record("s", request([user(text)]))
        session = store.session("s")
        page = next(p for p in session.pages() if p.bytes == length)
        with session.open_content(page.page) as file:
            assert file.read() == session.content(page.page) == text.encode()
            file.seek(length - 4)
            assert file.read(2) == text[-4:-2].encode()
        assert store.info().bytes_blobs == (length if length > 65_536 else 0)
        assert store.verify().ok


def test_a_changed_file_is_never_answered(store_path: Path) -> None:
    """A long content whose file was changed, cut or deleted is an error that names its cell, however it is asked."""
    with open_store(store_path) as store:
        store.record("s", request([user("x" * 70_000)]))
        session = store.session("s")
        page = next(p.page for p in session.pages() if p.bytes == 70_000)
        assert store.folder is not None
        file = next(store.folder.glob("blobs/*/*"))
        for damage in (b"y" * 70_000, b"x" * 69_999, b""):
            file.write_bytes(damage)
            for ask in (session.content, session.open_content):
                with pytest.raises(CorruptError, match=r"cell \d+ does not match its commitment"):
                    ask(page)
            assert [problem.kind for problem in store.verify().problems] == ["cell"]
        file.unlink()
        for ask in (session.content, session.open_content):
            with refused("cell-missing", CorruptError):
                ask(page)


def test_memory_keeps_long_contents_too() -> None:
    """A store in memory opens long contents as one on disk does, and has nothing to pack or sweep."""
    with memory_store() as store:
        store.record("s", request([user("x" * 70_000)]))
        session = store.session("s")
        page = next(p.page for p in session.pages() if p.bytes == 70_000)
        with session.open_content(page) as file:
            assert file.read(4) == b"xxxx"
        assert store.admin.compact().frames_after == 0 and store.admin.collect_garbage().files == []
