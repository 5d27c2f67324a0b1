"""The texts of a moment: the index gives the same rows, postings and columns as reading every text."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vmstore
from tests.disasters.child import joined, start
from vmstore.core.mutation import Create, Message, Update
from vmstore.core.page import Modality, PageType, Role, Slot
from vmstore.erasure.erase import erase
from vmstore.namespace.storekey import new_store_key
from vmstore.search import index as index_module
from vmstore.search import segment as segment_module
from vmstore.search.folder import IndexFolder
from vmstore.search.naive import NaiveTexts
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.views.branch import Branch

WORDS = ("kyoto", "nara", "train", "trains", "the", "snake_case", "北京", "Ünder", "osaka", "is")
ENVELOPE = b'{"role":"user","content":{"\\u0000t":0}}'
CALL = '{"id":"c1","type":"function","function":{"name":"%s","arguments":"{}"}}'

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
n = st.integers(0, 30)
steps = st.one_of(
    st.tuples(st.just("say"), n, st.lists(texts, min_size=1, max_size=4), st.sampled_from((None, "Ann", "Ben"))),
    st.tuples(st.just("change"), n, n, st.one_of(texts, st.none())),
    st.tuples(st.just("call"), n, st.sampled_from(("grep", "bash"))),
    st.tuples(st.just("fork"), n, n),
    st.tuples(st.just("ask"), n, n, st.booleans()),
    st.tuples(st.just("everywhere")),
    st.tuples(st.just("erase"), n, n),
    st.tuples(st.just("reopen"), st.sampled_from(("", "delete", "cut", "version", "unmark", "drop"))),
    st.tuples(st.just("elsewhere"), n),
)


class Talk:
    """A store that is written to, asked, erased from and damaged."""

    def __init__(self, folder: Path, key: Path | None = None) -> None:
        self.path = folder / "a.vms"
        self.store = vmstore.open(self.path, key=key)
        self.names = [f"s{number}" for number in range(3)]
        for name in self.names:
            self.store.session(name, create=True)
        self.at = 0

    def play(self, step: tuple[Any, ...]) -> None:
        """Does a step."""
        getattr(self, step[0])(*step[1:])

    def _session(self, number: int) -> Session:
        return self.store.session(self.names[number % len(self.names)])

    def say(self, number: int, lines: Sequence[str], who: str | None) -> None:
        """Some messages of one commit."""
        self.at += 1_000_001
        with self._session(number).batch(at_us=self.at) as batch:
            for line in lines:
                message = batch.add(Message(Role.USER, Slot.MESSAGES, batch.cell(ENVELOPE), 0))
                labels = None if who is None else batch.cell(json.dumps({"actor": who}).encode())
                batch.add(_page(message, batch.cell(line.encode()), len(line.encode()), Role.USER, labels))

    def call(self, number: int, tool: str) -> None:
        """A tool is called, and answers."""
        self.at += 17
        with self._session(number).batch(at_us=self.at) as batch:
            for role, text, label in ((2, CALL % tool, "asks"), (3, f"{tool} says nara", "answers")):
                message = batch.add(Message(role, Slot.MESSAGES, batch.cell(ENVELOPE), 0))
                labels = batch.cell(json.dumps({label: f"c{self.at}"}).encode())
                batch.add(_page(message, batch.cell(text.encode()), len(text), role, labels))

    def change(self, number: int, page: int, text: str | None) -> None:
        """A page of a session, inherited or not, has another content; None is one that is no text."""
        session = self._session(number)
        pages = session.pages()
        if pages:
            actual_page = pages[page % len(pages)]
            content = b"\0\1" if text is None else text.encode()
            with session.batch(at_us=self.at) as batch:
                batch.add(
                    Update(int(actual_page.page[1:]), actual_page.version + 1, batch.cell(content), len(content), 0)
                )

    def fork(self, number: int, of: int) -> None:
        """A session begins where another stands."""
        if len(self.names) < 7:
            name = f"f{len(self.names)}"
            self._session(of).fork(name)
            self.names.append(name)

    def ask(self, number: int, back: int, alone: bool) -> None:
        """One session at some position, with all it inherits or alone."""
        info = self._session(number).info()
        branch = Branch(self.store._ns.views, self._key(info.session))
        position = max(1, info.position - back)
        same(self.store, [(branch.alone() if alone else branch, position)])

    def everywhere(self) -> None:
        """All sessions at once: what each wrote itself, and then with all it inherits, which counts again."""
        self.store.sessions()
        lanes = [(Branch(self.store._ns.views, self._key(name)), self._end(name)) for name in self.names]
        same(self.store, [(lane.alone(), end) for lane, end in lanes])
        same(self.store, lanes[::-1])

    def _key(self, name: str) -> int:
        key = self.store._ns.key(name)
        assert key is not None
        return key

    def _end(self, name: str) -> int:
        return self.store.session(name).info().position

    def erase(self, number: int, page: int) -> None:
        """A page is erased."""
        session = self._session(number)
        pages = session.pages()
        if pages:
            erase(self.store, in_session=session.name, page=pages[page % len(pages)].page)

    def reopen(self, damage: str) -> None:
        """The store is opened again, its index damaged in between."""
        self.store.close()
        folder = self.path / "default" / "text"
        files = sorted(folder.glob("*.seg"))
        mark = folder / "at.json"
        if damage == "delete" and folder.exists():
            shutil.rmtree(folder)
        elif damage == "cut" and files:
            files[0].write_bytes(files[0].read_bytes()[: files[0].stat().st_size // 2])
        elif damage == "drop" and files:
            files[-1].unlink()
        elif damage == "version" and mark.exists():
            mark.write_text(json.dumps({**json.loads(mark.read_text()), "version": 1}))
        elif damage == "unmark" and mark.exists():
            mark.unlink()
        self.store = vmstore.open(self.path)

    def elsewhere(self, number: int) -> None:
        """Another handle writes and asks, so that the index goes on without this one."""
        here = self.store
        with vmstore.open(self.path) as self.store:
            self.say(number, ["nara by train"] * 4, "Ann")
            self.ask(number, 0, False)
        self.store = here


def _page(message: int, cell: Any, size: int, role: int, labels: Any) -> Create:
    return Create(PageType.TRANSCRIPT, Modality.TEXT, role, message, 0, cell, size, 0, labels=labels)


def same(store: Store, moments: Sequence[tuple[Branch, int]]) -> None:
    """The index and every text read agree about some moments."""
    ns = store._ns
    with ns.asking():
        texts, right = ns.texts(moments), NaiveTexts(ns.log, ns.views, moments)
        assert isinstance(right, NaiveTexts) and not isinstance(texts, NaiveTexts)
        assert (texts.count, texts.words) == (right.count, right.words)
        terms = {term for row in right.rows for term in row.counts} | {"absent"}
        for term in sorted(terms):
            assert [each.tolist() for each in texts.postings(term)] == list(map(list, right.postings(term))), term
        rows = list(range(right.count))
        assert texts.texts(rows) == right.texts(rows)
        assert texts.lanes(rows).tolist() == right.lanes(rows)
        assert columns(texts, rows[::-1]) == columns(right, rows[::-1])
        assert texts.lengths(_array(rows)).tolist() == right.columns(rows).length
        for term in sorted(terms):
            assert texts.terms_from(term[:2], 3) == right.terms_from(term[:2], 3)
            assert texts.terms_like(term + "x", 3) == right.terms_like(term + "x", 3)


def columns(actual: Any, rows: list[int]) -> list[list[Any]]:
    """The columns of some rows, with names instead of their numbers."""
    asdict = actual.columns(_array(rows) if hasattr(actual, "lengths") else rows)._asdict()
    named = {kind: [actual.names(kind)[number] for number in asdict[kind]] for kind in ("speaker", "tool")}
    return [named.get(name) or [int(value) for value in asdict[name]] for name in sorted(asdict)]


def _array(rows: list[int]) -> Any:
    import numpy as np

    return np.array(rows, np.int32)


SIZES = ((0, 5), (3, 5), (3, 40), (12, 40))  # texts that are written down, and of a segment


@settings(max_examples=30, deadline=None)
@given(life=st.lists(steps, min_size=4, max_size=24), sizes=st.sampled_from(SIZES))
def test_the_index_says_what_reading_says(life: list[tuple[Any, ...]], sizes: tuple[int, int]) -> None:
    """Whatever is written, changed, forked, erased, damaged or done elsewhere, any moment has the same texts."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_module, "WRITTEN", sizes[0])
        patch.setattr(index_module, "DOCS_MAX", sizes[1])
        patch.setattr(segment_module, "BITS_MIN", 8)
        talk = Talk(Path(folder))
        for step in life:
            talk.play(step)
        talk.everywhere()
        talk.reopen("")
        talk.everywhere()
        talk.store.close()
        with vmstore.open(talk.path, "r") as talk.store:
            talk.everywhere()


def lines(count: int, word: str) -> list[str]:
    """So many lines, each with a word and one of its own."""
    return [f"{word} number{n} {word}{n}" for n in range(count)]


@pytest.fixture
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """A store of three sessions whose index has a segment for each."""
    monkeypatch.setattr(index_module, "WRITTEN", 4)
    monkeypatch.setattr(index_module, "DOCS_MAX", 10)
    talk = Talk(tmp_path)
    for number, word in enumerate(("kyoto", "nara", "osaka")):
        talk.say(number, lines(9, word), "Ann")
        assert talk.store.search(word)
    return talk


def files(talk: Talk) -> set[str]:
    """The files of the index."""
    return {file.name for file in (talk.path / "default" / "text").glob("*.seg")}


def test_an_erasure_leaves_other_segments_as_they_are(talk: Talk) -> None:
    """Only the segment with something of the session is rewritten, in the erasure itself, without its words."""
    before = files(talk)
    page = next(page.page for page in talk.store.session("s1").pages() if page.hint is None)
    text = talk.store.session("s1").content(page).decode().split()[-1]
    erase(talk.store, page=page, in_session="s1")
    assert len(before & files(talk)) == 2 and len(files(talk)) == 3
    actual_text = b"".join(file.read_bytes() for file in (talk.path / "default" / "text").iterdir())
    assert b"nara1" in actual_text and text.encode() + b"\n" not in actual_text
    talk.everywhere()
    talk.store.close()


def test_an_erasure_of_much_removes_the_index(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more would have to be read again than an erasure should wait for, the next search rebuilds the index."""
    monkeypatch.setattr(index_module, "MENDED_MAX", 5)
    erase(talk.store, session="s1")
    talk.names.remove("s1")
    assert not (talk.path / "default" / "text").exists()
    talk.everywhere()
    assert files(talk)
    talk.store.close()


def test_a_search_goes_on_while_the_index_is_taken_away(talk: Talk) -> None:
    """A handle that has the index open answers the same where its files are cut, exchanged or deleted meanwhile."""
    folder = talk.path / "default" / "text"
    for damage in ("cut", "other", "delete"):
        for file in sorted(folder.glob("*.seg")):
            if damage == "cut":
                file.write_bytes(file.read_bytes()[:64])
            elif damage == "other":
                file.write_bytes(bytes(file.stat().st_size))
        if damage == "delete":
            shutil.rmtree(folder)
        talk.everywhere()
        assert len(files(talk)) == 3
    talk.store.close()


def test_a_process_killed_while_it_writes_leaves_what_was_marked(talk: Talk) -> None:
    """Killed at any file it writes, be it a merged one, the next handle has the same texts and no file too many."""

    def work(at: int) -> None:
        left = [at]
        write = IndexFolder.write

        def killed(folder: IndexFolder, segment: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return write(folder, segment)

        IndexFolder.write = killed  # type: ignore[method-assign]
        with vmstore.open(talk.path) as store:
            store.search("kobe")

    for at in range(2):
        talk.say(at, lines(8, f"kobe{at}"), None)
        joined(start(lambda at=at: work(at)))
        talk.everywhere()
        mark = json.loads((talk.path / "default" / "text" / "at.json").read_text())
        assert {name for name, *_ in mark["segments"]} == files(talk)
    talk.store.close()


def test_two_processes_follow_one_index(talk: Talk) -> None:
    """Two processes that write and search in turns have the same texts at every step, no matter which wrote them."""

    def work() -> None:
        with vmstore.open(talk.path) as talk.store:
            for n in range(6):
                talk.say(2, lines(3, "there"), "Ben")
                talk.ask(n, 0, False)

    child = start(work)
    for n in range(6):
        talk.say(n % 2, lines(3, "here"), None)
        talk.ask(n, 0, False)
    assert joined(child) == 0
    talk.everywhere()
    talk.store.close()


def test_a_folder_that_may_only_be_read_is_searched(talk: Talk) -> None:
    """A reader takes the index from where it lies and keeps what is new in memory; nothing is written."""
    talk.say(0, lines(2, "kobe"), None)
    talk.store.close()
    folder = talk.path / "default" / "text"
    before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
    with vmstore.open(talk.path, "r") as talk.store:
        talk.everywhere()
        assert len(talk.store.session("s0").search("kobe")) == 2
        text_index = talk.store._ns.text_index
        assert text_index is not None and len(text_index._tail.segments) == 1
    assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before


def test_what_was_written_later_changes_no_postings(talk: Talk) -> None:
    """A moment's rows, postings and counts are the same before and after more is written, in any session."""
    ns = talk.store._ns
    moments = [(Branch(ns.views, talk._key("s1")), talk._end("s1"))]
    with ns.asking():
        before = ns.texts(moments)
        items = [before.count, before.words, *(each.tolist() for each in before.postings("nara"))]
    for n in range(9):
        talk.say(n, lines(5, "nara"), None)
    talk.everywhere()
    with ns.asking():
        after = ns.texts(moments)
        assert after is not before
        assert [after.count, after.words, *(each.tolist() for each in after.postings("nara"))] == items
    talk.store.close()


def test_a_rebuild_makes_the_index_anew(talk: Talk) -> None:
    """The text index is rebuilt by its name or with all views, into files that hold the same, whatever lay there."""
    folder = talk.path / "default" / "text"
    positions = talk.store.admin.rebuild("text")
    right = {file.name: file.read_bytes() for file in folder.glob("*.seg")}
    for file in folder.iterdir():
        file.write_bytes(b"")
    assert talk.store.admin.rebuild()["text"] == positions["text"] == talk.store.admin.log.ordinal
    assert {file.name: file.read_bytes() for file in folder.glob("*.seg")} == right
    talk.everywhere()
    talk.store.close()


def test_an_encrypted_store_keeps_its_index_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store under a key is searched by the same index, of which nothing lies in its folder, also after an erasure."""
    monkeypatch.setattr(index_module, "WRITTEN", 0)
    talk = Talk(tmp_path, new_store_key(tmp_path / "key"))
    talk.say(0, lines(6, "kyoto"), "Ann")
    talk.everywhere()
    assert talk.store.search("kyoto3")
    erase(talk.store, session="s0")
    talk.names.remove("s0")
    talk.everywhere()
    assert not list((talk.path / "default").glob("text*"))
    talk.store.close()
