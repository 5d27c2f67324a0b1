"""Retraction: what falls with a cause, how it is marked, and what a person is told first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import vmstore
from tests.refusals import refused
from tests.store.kept import told_in_memory
from tests.store.webs import CITE, Web, superseded
from vmstore.core.mutation import Create, Message
from vmstore.core.page import LinkKind, Modality, PageType, Role, Slot
from vmstore.errors import InputError, ReadOnlyError, UnknownError
from vmstore.retraction.results import Retraction

DERIVES = int(LinkKind.DERIVES)


def kinds(retraction: Retraction) -> set[str]:
    """The kinds of conflicts that are named."""
    return {conflict.kind for conflict in retraction.conflicts}


def test_what_stands_on_a_page_is_marked_and_nothing_else() -> None:
    """A page, what was made from it at second hand and what cites it fall; what replaces or resembles it stands."""
    web = Web()
    web.session("s")
    root, sound = web.page("s"), web.page("s")
    made = web.page("s", (DERIVES, root))
    again = web.page("s", (int(LinkKind.REPRESENTS), made))
    cites = web.page("s")
    web.relate("s", cites, again, CITE)
    shown = web.page("s")
    web.relate("s", made, shown, LinkKind.HAS_CAPTION)
    for kind in (LinkKind.SUPERSEDES, LinkKind.CONTRADICTS, LinkKind.SAME_AS, LinkKind.REFERENCES):
        web.page("s", (int(kind), root))
    retraction = vmstore.retract(web.store, page=f"p{root}", reason="wrong")
    assert superseded(web.store, "s") == {root, made, again, cites, shown}
    assert sound not in superseded(web.store, "s")
    because = {page.page: page.because for page in retraction.sessions[0].pages}
    assert because[f"p{root}"] == "itself" and because[f"p{cites}"] == f"cites p{again}"
    assert web.store.verify().ok


def test_the_reason_is_told_and_the_past_stays() -> None:
    """History tells the cause, the reason and the step; a position before the mark answers as it did."""
    web = Web()
    web.session("s")
    root = web.page("s")
    made = web.page("s", (DERIVES, root))
    session = web.store.session("s")
    before, position = session.pages(), session.info().position
    vmstore.retract(web.store, page=f"p{root}", reason="poisoned")
    detail = session.lineage.history(f"p{made}")[-1].detail or ""
    assert "superseded" in detail and f"page p{root}" in detail and "poisoned" in detail
    assert f"derives p{root}" in detail
    assert session.pages(position=position) == before
    assert session.info().position == position + 2, "two marks in one commit"
    assert [edge.status for edge in session.lineage.ancestors(f"p{made}")] == ["superseded"]
    rows = web.store.query("PAGES page WHERE status = superseded", session="s").to_dicts()
    assert [row["page"] for row in rows] == [f"p{root}", f"p{made}"]


def test_asking_writes_nothing() -> None:
    """A dry run says what the real one does and leaves the log as it was."""
    web = Web()
    web.session("s")
    root = web.page("s")
    web.page("s", (DERIVES, root))
    ordinal = web.store.admin.log.ordinal
    dry = vmstore.retract(web.store, page=f"p{root}", dry_run=True)
    assert web.store.admin.log.ordinal == ordinal and not dry.done
    real = vmstore.retract(web.store, page=f"p{root}")
    assert real.done and real.sessions == dry.sessions and web.store.admin.log.ordinal == ordinal + 1


def test_marking_again_marks_nothing() -> None:
    """What is superseded already is counted, not written again; what came of it meanwhile is marked."""
    web = Web()
    web.session("s")
    root = web.page("s")
    vmstore.retract(web.store, page=f"p{root}")
    ordinal = web.store.admin.log.ordinal
    again = vmstore.retract(web.store, page=f"p{root}")
    assert web.store.admin.log.ordinal == ordinal and not again.work and again.sessions[0].already == 1
    assert kinds(again) == {"already"}
    later = web.page("s", (DERIVES, root))
    assert vmstore.retract(web.store, page=f"p{root}").pages == 1
    assert superseded(web.store, "s") == {root, later}


def test_every_conflict_is_named() -> None:
    """Pages that are partly sound, said something of, settled, or stand in the place of sound ones are named."""
    web = Web()
    web.session("s")
    root, sound = web.page("s"), web.page("s")
    partly = web.page("s", (DERIVES, root), (DERIVES, sound))
    noted = web.page("s", (DERIVES, root))
    web.store.session("s").annotate(f"p{noted}", status="completed")
    settled = web.page("s", (DERIVES, root), type_=PageType.CLAIM)
    newer = web.page("s", (int(LinkKind.SUPERSEDES), settled), type_=PageType.CLAIM)
    usurper = web.page("s", (DERIVES, root), (int(LinkKind.SUPERSEDES), sound))
    web.fork("s", "f")
    retraction = vmstore.retract(web.store, page=f"s/p{root}", dry_run=True)
    named = {(conflict.kind, conflict.session, conflict.page) for conflict in retraction.conflicts}
    assert {
        ("partly", "s", f"p{partly}"),
        ("annotated", "s", f"p{noted}"),
        ("settled", "s", f"p{settled}"),
        ("replaced", "s", f"p{usurper}"),
        ("shared", "f", None),
    } <= named
    assert ("partly", "s", f"p{noted}") not in named
    vmstore.retract(web.store, page=f"s/p{root}")
    assert superseded(web.store, "s") == {root, partly, noted, usurper} == superseded(web.store, "f")
    assert newer not in superseded(web.store, "s")


def test_a_fork_is_marked_as_it_sees_itself() -> None:
    """A fork's share falls in the fork too, and what a fork alone made of it falls in the fork alone."""
    web = Web()
    web.session("s")
    root, other = web.page("s"), web.page("s")
    web.fork("s", "f")
    mine = web.page("f", (DERIVES, root))
    web.relate("f", other, mine, DERIVES)
    late = web.page("s", (DERIVES, root))
    vmstore.retract(web.store, page=f"s/p{root}")
    assert superseded(web.store, "s") == {root, late}
    assert superseded(web.store, "f") == {root, mine, other}
    web.fork("s", "g")
    assert superseded(web.store, "g") == {root, late}, "a fork made later is born with the marks"


def test_what_a_call_spawned_falls_with_it() -> None:
    """The session that a fallen page spawned falls as a whole."""
    web = Web()
    web.session("s")
    call = web.page("s")
    web.spawn("s", call, "child")
    inside = {web.page("child"), web.page("child")}
    retraction = vmstore.retract(web.store, page=f"s/p{call}")
    assert superseded(web.store, "child") == inside
    assert {
        page.because for session in retraction.sessions if session.session == "child" for page in session.pages
    } == {f"spawned p{call}"}


def test_the_answer_of_a_spawned_session_is_its_parents_result() -> None:
    """Where the last answer of a spawned session falls, the parent's result falls; where an earlier page does, not."""
    for last in (False, True):
        web = Web()
        web.session("s")
        call = web.page("s")
        web.spawn("s", call, "child")
        pages = []
        for text in (b"thinking aloud", b"the answer"):
            with web.store.session("child").batch() as batch:
                message = batch.add(Message(Role.ASSISTANT, Slot.MESSAGES, batch.cell(b'{"content":{"\\u0000t":0}}')))
                made = Create(
                    PageType.TRANSCRIPT, Modality.TEXT, Role.ASSISTANT, message, 0, batch.cell(text), len(text), 4
                )
                pages.append(batch.add(made))
        result = web.page("s", (int(LinkKind.CAUSED_BY), call))
        claim = web.page("s", (DERIVES, result))
        vmstore.retract(web.store, page=f"child/p{pages[last]}")
        assert superseded(web.store, "child") == {pages[last]}
        assert superseded(web.store, "s") == ({result, claim} if last else set())


def test_the_causes_find_their_pages() -> None:
    """A tool stands for its results, an actor for what they made, a session for all of its own."""
    store = told_in_memory()
    with refused("no-cause", UnknownError) as error:
        vmstore.retract(store, tool="no such tool", dry_run=True)
    name = str(error.value).split("'")[-2]
    results = vmstore.retract(store, tool=name, dry_run=True)
    roots = [page.page for page in results.sessions[0].pages if page.because == "itself"]
    session = store.session("s")
    assert roots and all(session.page(page).role == "tool" for page in roots)
    retraction = vmstore.retract(store, actor="user", dry_run=True)
    made = [page.page for page in retraction.sessions[0].pages if page.because == "itself"]
    assert made == [page.page for page in session.pages(role="user")]
    whole = vmstore.retract(store, session="s", dry_run=True)
    assert whole.pages == len(session.pages())


def test_a_user_and_an_agent_are_actors() -> None:
    """The user of a session made what users said in it, also in a fork of it; another session's stays."""
    store = vmstore.memory_store()
    chat: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hello."}]}
    for name, user in (("a", "ann"), ("b", "bob")):
        store.session(name, create=True, user=user, agent="planner")
        store.record(name, chat, {"choices": [{"message": {"role": "assistant", "content": "Hi."}}]})
    store.session("a").fork("c")
    assert [session.session for session in vmstore.retract(store, actor="ann", dry_run=True).sessions] == ["a", "c"]
    planner = vmstore.retract(store, actor="planner", dry_run=True)
    assert {session.session for session in planner.sessions} == {"a", "b", "c"}
    assert all(page.type == "transcript" for session in planner.sessions for page in session.pages)
    within = vmstore.retract(store, actor="planner", in_session="b", dry_run=True)
    assert [session.session for session in within.sessions] == ["b"]


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({}, InputError, "name one"),
        ({"page": "p2", "tool": "x"}, InputError, "page and tool"),
        ({"session": "s", "in_session": "s"}, InputError, "leave in_session out"),
        ({"page": "p99"}, UnknownError, "p99"),
        ({"session": "t"}, UnknownError, "'s'"),
        ({"actor": "nobody"}, UnknownError, "nearest|only|there are"),
        ({"tool": "none"}, UnknownError, "none yet"),
        ({"page": "p2", "reason": ""}, InputError, "reason"),
        ({"page": "p2", "reason": "a\nb"}, InputError, "reason"),
    ],
)
def test_what_is_no_cause_is_refused(fields: dict[str, Any], error: type[Exception], words: str) -> None:
    """What names nothing, or too much, is refused with the remedy and writes nothing."""
    web = Web()
    web.session("s")
    web.page("s")
    ordinal = web.store.admin.log.ordinal
    with pytest.raises(error, match=words):
        vmstore.retract(web.store, **fields)
    assert web.store.admin.log.ordinal == ordinal


def test_a_handle_for_reading_only_looks(store_path: Path) -> None:
    """A handle for reading answers a dry run and refuses to mark."""
    with vmstore.open(store_path) as store:
        store.record("s", {"model": "m", "messages": [{"role": "user", "content": "Hello."}]})
    with vmstore.open(store_path, "r") as store:
        assert vmstore.retract(store, session="s", dry_run=True).pages == 1
        with pytest.raises(ReadOnlyError):
            vmstore.retract(store, session="s")


Deed = tuple[int, int, int, int]
DEEDS = st.lists(st.tuples(st.integers(0, 6), *[st.integers(0, 1 << 16)] * 3), min_size=1, max_size=24)


@settings(max_examples=40, deadline=None)
@given(DEEDS, st.integers(0, 1 << 16), st.integers(0, 1 << 16))
@example([(0, 0, 0, 0)] * 6 + [(4, 0, 0, 0)] + [(0, 0, 0, 0)] * 2 + [(0, 1, 0, 0)], 0, 8)  # two pages of one number
@example([(4, 0, 0, 0), (0, 0, 0, 0), (0, 0, 0, 0), (0, 1, 0, 0)], 1, 1)  # and the fork's is the one that is named
def test_it_is_what_a_plain_reading_finds(deeds: list[Deed], where: int, which: int) -> None:
    """Over random webs of links, forks and spawned sessions the marks are those of a closure over plain lists."""
    web = Web()
    web.session("s0")
    web.page("s0")
    for deed in deeds:
        _do(web, *deed)
    names = [name for name, pages in web.pages.items() if pages]
    session = names[where % len(names)]
    root = web.pages[session][which % len(web.pages[session])]
    expected = web.fallen({_maker(web, root, session): {root}})
    retraction = vmstore.retract(web.store, page=f"{session}/p{root}")
    assert {
        session.session: {int(page.page[1:]) for page in session.pages} for session in retraction.sessions
    } == expected
    for name in web.pages:
        assert superseded(web.store, name) == expected.get(name, set())
    assert not vmstore.retract(web.store, page=f"{session}/p{root}").work
    assert web.store.verify().ok


def _maker(web: Web, page: int, seen_from: str) -> str:
    """The session that made a page another sees: up the chain of forks while the page was there before the fork."""
    parents = {child: parent for parent, child in web.forks}
    while page in web.shared.get(seen_from, ()):
        seen_from = parents[seen_from]
    return seen_from


def _do(web: Web, what: int, a: int, b: int, c: int) -> None:
    names = list(web.pages)
    name = names[a % len(names)]
    pages = web.pages[name]
    kind = (*map(int, (LinkKind.DERIVES, LinkKind.REPRESENTS, LinkKind.PART_OF, LinkKind.HAS_CAPTION)), 3, 8, CITE)[
        c % 7
    ]
    if what <= 2 or not pages:
        links = [(kind, pages[b % len(pages)])] if pages and kind >= 0 and what else []
        web.page(name, *links)
    elif what == 3:
        near, far = pages[b % len(pages)], pages[c % len(pages)]
        if near != far:
            web.relate(name, near, far, kind)
    elif what == 4 and len(names) < 6:
        web.fork(name, f"s{len(names)}")
    elif what == 5 and len(names) < 6:
        web.spawn(name, pages[b % len(pages)], f"s{len(names)}")
