"""The versions of a page beside what they were made from, and the pages that stood together."""

from __future__ import annotations

import pytest

from tests.store.kept import told_in_memory
from tests.views.pen import Pen
from tests.views.test_alphabet import store_over
from vmstore.core.mutation import Compress, Create, Update
from vmstore.namespace.results import Version
from vmstore.store.reads import versions as room
from vmstore.store.session import Session
from vmstore.views.reads import page_calls


def revised() -> tuple[Session, int]:
    """A page with three versions and a shorter form of the second."""
    pen = Pen()
    page = pen.page("one\ntwo\n")
    pen.update(page, "one\nthree\n")
    batch = pen.engine.batch(pen.session)
    batch.add(Compress(page, 2, 1, 1, 1, batch.cell(b"one"), 3, 3))
    batch.commit(0)
    pen.update(page, "one\nthree\nfour")
    return store_over(pen.engine).session("s"), page


def short(version: Version) -> tuple[int | None, ...]:
    """A version's numbers."""
    return version.version, version.parent, version.level, version.bytes, version.bytes_added, version.tokens_added


def test_each_version_stands_beside_its_parent() -> None:
    """A version is measured against the one before, a shorter form against the version it stands for."""
    session, page = revised()
    versions = session.lineage.versions(page)
    assert [short(version) for version in versions] == [
        (1, None, 0, 8, 8, 8),
        (2, 1, 0, 10, 2, 2),
        (2, 2, 1, 3, -7, -7),
        (3, 2, 0, 14, 4, 4),
    ]
    assert [version.position for version in versions] == sorted(version.position for version in versions)
    assert [version.method for version in versions] == [None, None, "shortened", None]
    assert {version.actor for version in versions} == {"user"}
    assert session.lineage.versions(page, position=versions[1].position) == versions[:2]
    assert {version.delta for version in versions} == {None}


def test_a_delta_is_a_unified_diff() -> None:
    """The difference names both contents, takes nothing and adds nothing that was not there, and ends its lines."""
    session, page = revised()
    first, second, shorter, third = [version.delta for version in session.lineage.versions(page, delta=True)]
    assert first is None
    assert second is not None and second.splitlines()[-3:] == [" one", "-two", "+three"]
    assert second.splitlines()[0] == f"--- p{page}@position:{page}#level=0"
    assert shorter is not None and shorter.endswith("\n+one\n\\ no line end\n")
    assert third is not None and "+four\n\\ no line end\n" in third


def test_what_is_no_text_has_no_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes that are no text, an opaque page and texts too long to compare have no difference, and say their sizes."""
    pen = Pen()
    batch = pen.engine.batch(pen.session)
    image = batch.add(Create(0, 1, 1, 0, 0, batch.cell(b"\x89PNG\0"), 5, 1))
    batch.add(Update(image, 2, batch.cell(b"text"), 4, 1))
    batch.add(Update(image, 3, batch.cell(b"\xff\xfe"), 2, 1))
    opaque = batch.add(Create(0, 0, 1, 0, 0, None, 0, 7))
    batch.add(Update(opaque, 2, batch.cell(b"known now"), 9, 3))
    batch.commit(0)
    session = store_over(pen.engine).session("s")
    assert [version.delta for version in session.lineage.versions(image, delta=True)] == [None] * 3
    assert [(version.delta, version.tokens_added) for version in session.lineage.versions(opaque, delta=True)] == [
        (None, 7),
        (None, -4),
    ]
    session, page = revised()
    monkeypatch.setattr(room, "DIFF_LINES_MAX", 3)
    assert [bool(version.delta) for version in session.lineage.versions(page, delta=True)] == [
        False,
        False,
        True,
        False,
    ]


def test_a_fork_goes_on_from_its_parents_versions() -> None:
    """A fork's version is made from its parent's last before the fork, and the parent's later ones are not seen."""
    pen = Pen()
    page = pen.page("one")
    parent = pen.fork(pen.update(page, "one two"))
    pen.update(page, "one three")
    fork = pen.session
    pen.session = parent
    pen.update(page, "one four five")
    pen.engine.follow()
    store = store_over(pen.engine)
    name = next(info.session for info in store.sessions() if info.origin == "fork")
    assert [(version.version, version.bytes) for version in store.session(name).lineage.versions(page)] == [
        (1, 3),
        (2, 7),
        (3, 9),
    ]
    assert [(version.version, version.bytes) for version in store.session("s").lineage.versions(page)] == [
        (1, 3),
        (2, 7),
        (3, 13),
    ]
    assert fork != parent


def test_a_call_shared_is_a_call_that_saw_both() -> None:
    """Affinity is the calls that saw both among those that saw either, nearest first, a page with none left out."""
    pen = Pen()
    a, b, c, d = (pen.page(text) for text in "abcd")
    pen.pack(a, b)
    pen.pack(a, b, c)
    pen.pack(a)
    pen.pack(b, d)
    session = store_over(pen.engine).session("s")
    rows = [
        (affinity.page, affinity.shared, affinity.calls, affinity.affinity)
        for affinity in session.lineage.affinity(f"p{a}")
    ]
    assert rows == [(f"p{b}", 2, 3, 2 / 4), (f"p{c}", 1, 1, 1 / 3)]
    assert [item.text for item in session.lineage.affinity(a, limit=1)] == ["b"]
    assert [row.page for row in session.lineage.affinity(a, call=1)] == [f"p{b}"]
    assert session.lineage.affinity(d, call=2) == []


def test_a_fork_counts_what_it_inherited() -> None:
    """A fork's affinities count the calls before the fork and its own, and none of its parent's after."""
    pen = Pen()
    a, b, c = (pen.page(text) for text in "abc")
    end = pen.pack(a, b)
    parent = pen.fork(end)
    pen.pack(a, b, c)
    pen.pack(a, c)
    pen.session = parent
    pen.pack(b)
    store = store_over(pen.engine)
    name = next(info.session for info in store.sessions() if info.origin == "fork")
    assert [(calls.page, calls.shared, calls.calls) for calls in store.session(name).lineage.affinity(a)] == [
        (f"p{b}", 2, 2),
        (f"p{c}", 2, 2),
    ]
    assert [(calls.page, calls.shared, calls.calls) for calls in store.session("s").lineage.affinity(a)] == [
        (f"p{b}", 1, 2)
    ]


@pytest.mark.parametrize("whole", [1, 1_000_000])
def test_affinities_are_what_the_contexts_say(whole: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a recorded session each affinity is what comparing the pages of all contexts gives, few calls or many."""
    monkeypatch.setattr(page_calls, "WHOLE_MIN", whole)
    session = told_in_memory().session("s")
    contexts = [set(session.context(call=call.call).page_ids) for call in session.calls()]
    for page in session.pages():
        position = page.position
        expected = {}
        for other in session.pages():
            shared = sum({position, other.position} <= context for context in contexts)
            if shared and other.position != position:
                either = sum(bool({position, other.position} & context) for context in contexts)
                expected[other.page] = shared / either
        assert {near.page: near.affinity for near in session.lineage.affinity(position, limit=None)} == expected
