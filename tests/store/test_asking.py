"""Questions about pages: their bytes, their history, where they come from, what changed between calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.capture.words import LONG, NOTE, lines, model_text, request, system, user
from tests.inner import inner_batch
from tests.refusals import refused
from tests.store.kept import told_in_memory
from vmstore.core.asof import Call, Position, Turn
from vmstore.core.mutation import Compress, Create, Link, Pack, Unlink
from vmstore.core.page import Fidelity, Level, LinkKind, Method
from vmstore.errors import InputError, UnknownError
from vmstore.namespace.results import Page, to_json
from vmstore.store.session import Session
from vmstore.store.store import memory_store


@pytest.fixture
def session() -> Iterator[Session]:
    """The story's session."""
    with told_in_memory() as store:
        yield store.session("s")


def of_type(session: Session, kind: str) -> Page:
    """The one page of a type."""
    (page,) = [page for page in session.pages() if page.type == kind]
    return page


# ---- content


def test_content_is_the_exact_bytes_at_any_level(session: Session) -> None:
    """Level 0 is what was accepted, another level what it showed; tier and moment do not matter."""
    page = of_type(session, "artifact").page
    assert session.content(page) == session.content(page, level=0) == session.content(page, call=2) == LONG.encode()
    assert session.content(page, level=3) == NOTE.encode()


@pytest.mark.parametrize("level", [1, 2, 7, -1])
def test_a_level_nobody_made_is_an_error(session: Session, level: int) -> None:
    """A representation that is not there is told apart from an empty one."""
    with pytest.raises((UnknownError, InputError), match="level"):
        session.content(of_type(session, "artifact").page, level=level)


def test_content_of_every_version_stays(session: Session) -> None:
    """Each version's bytes are there as of when they held."""
    with memory_store() as store:
        for n in range(5):
            store.record("s", request([system(f"You are at version {n}."), user("q"), model_text("a")]))
        session = store.session("s")
        page = session.pages()[0].page
        assert [session.content(page, call=n + 1) for n in range(5)] == [
            f"You are at version {n}.".encode() for n in range(5)
        ]
        assert [session.page(page, call=n + 1).version for n in range(5)] == [1, 2, 3, 4, 5]


def test_empty_content_is_empty_and_there() -> None:
    """A page of no bytes gives no bytes, and no error."""
    with memory_store() as store:
        store.record("s", request([user("")]))
        page = store.session("s").pages()[0]
        assert (store.session("s").content(page.page), page.bytes) == (b"", 0)


def test_a_page_says_how_large_it_is(session: Session) -> None:
    """Bytes and tokens are those of what is shown."""
    for call in (2, 3):
        shown = {
            page.page: session.content(page.page, call=call, level=page.level) for page in session.pages(call=call)
        }
        assert all(page.bytes == len(shown[page.page]) for page in session.pages(call=call))


# ---- history


def test_a_history_tells_a_pages_life(session: Session) -> None:
    """Made, linked, shown, compressed, gone: each at its position, turn and call."""
    page = of_type(session, "artifact")
    events = session.lineage.history(page.page)
    assert [event.event for event in events] == ["create", "link", "enter", "compress", "shown", "leave"]
    assert [event.call for event in events] == [1, 1, 2, 2, 3, 4]
    assert [event.level for event in events] == [0, 0, 0, 3, 3, 3]
    assert events[3].method == "replaced"
    assert [event.position for event in events] == sorted(event.position for event in events)


def test_a_history_ends_where_it_is_asked_of(session: Session) -> None:
    """As of a moment a history is the beginning of the whole one."""
    page = of_type(session, "artifact").page
    whole = session.lineage.history(page)
    for event in whole:
        assert session.lineage.history(page, position=event.position) == [
            e for e in whole if e.position <= event.position
        ]


def test_a_return_is_another_stay() -> None:
    """A page that left and came back entered twice."""
    talk = [user("a"), model_text("b"), user("c")]
    with memory_store() as store:
        for items in (talk, talk[2:], talk, talk):
            store.record("s", request(items))
        session = store.session("s")
        rows = [(event.event, event.call) for event in session.lineage.history(session.pages()[1].page)]
        assert rows == [("create", 0), ("enter", 1), ("leave", 2), ("enter", 3)]


def test_what_replaces_a_page_is_in_its_history() -> None:
    """A history tells what superseded or contradicted the page and when that ended, in forks too, and no other link."""
    with memory_store() as store:
        store.record("s", request([user("Oslo"), model_text("Bergen"), user("Oslo, not Bergen")]))
        first, other, last = (int(page.page[1:]) for page in store.session("s").pages())
        fork = store.session("s").fork("f", call=1)
        for session in (store.session("s"), fork):
            with session.batch() as batch:
                batch.add(Link(last, first, LinkKind.RELATED_TO))
                batch.add(Link(last, other, LinkKind.SUPERSEDES))
                batch.add(Link(first, other, LinkKind.CONTRADICTS))
                batch.add(Unlink(last, other, LinkKind.SUPERSEDES))
            events = session.lineage.history(f"p{other}")
            assert [(event.event, event.detail) for event in events if event.position > last and event.detail] == [
                ("link", f"superseded by p{last}"),
                ("link", f"contradicted by p{first}"),
                ("unlink", f"superseded by p{last}"),
            ]
            assert not [event for event in session.lineage.history(f"p{first}") if "related" in (event.detail or "")]


# ---- links


CHAIN = [
    {"role": "user", "content": "What of the database?", "vm": {"id": "q"}},
    {"role": "assistant", "content": "Postgres.", "vm": {"id": "one", "type": "claim", "derives": ["q"]}},
    {"role": "user", "content": "Sure?", "vm": {"id": "q2"}},
    {
        "role": "assistant",
        "content": "SQLite.",
        "vm": {"id": "two", "type": "claim", "supersedes": ["one"], "derives": ["q2"]},
    },
    {"role": "user", "content": "And then?"},
    {"role": "assistant", "content": "Both.", "vm": {"id": "three", "derives": ["one", "two"], "references": ["q"]}},
]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Session]:
    """A session whose messages name where they come from."""
    with memory_store() as store:
        store.import_file(lines(tmp_path / "chain.jsonl", CHAIN))
        yield store.session("chain")


def walked(session: Session, start: str, **more: object) -> set[tuple[int, str, str, str]]:
    """The links met on a walk, by depth, with the pages' own names."""
    name = {page.page: page.hint or page.page for page in session.pages()}
    descendants = session.lineage.descendants if more.pop("down", False) else session.lineage.ancestors
    links = descendants(start, **more)  # type: ignore[arg-type]
    return {(link.depth, name[link.source], link.kind, name[link.target]) for link in links}


def test_sources_are_walked_to_their_end(chain: Session) -> None:
    """Without a depth the walk goes all the way, each link once, at its smallest depth."""
    assert walked(chain, "three") == {
        (1, "three", "derives", "one"),
        (1, "three", "derives", "two"),
        (1, "three", "references", "q"),
        (2, "one", "derives", "q"),
        (2, "two", "supersedes", "one"),
        (2, "two", "derives", "q2"),
    }
    assert walked(chain, "q") == set()


def test_a_depth_ends_the_walk(chain: Session) -> None:
    """Depth 1 are the page's own links, depth 2 those of what they name."""
    whole = walked(chain, "three")
    for depth in (1, 2, 3, 99):
        assert walked(chain, "three", depth=depth) == {link for link in whole if link[0] <= depth}


def test_kinds_narrow_the_walk(chain: Session) -> None:
    """Only links of the kinds asked for are followed."""
    assert walked(chain, "two", kinds=["supersedes"]) == {(1, "two", "supersedes", "one")}
    assert walked(chain, "three", kinds=["references", "supersedes"]) == {(1, "three", "references", "q")}
    assert walked(chain, "three", kinds=[]) == set()
    with refused("no-kind-of-link", UnknownError, "'made_from'"):
        chain.lineage.ancestors("three", kinds=["made_from"])


def test_derived_is_the_same_links_from_the_other_end(chain: Session) -> None:
    """What came of a page is found by the links that lead to it."""
    assert walked(chain, "q", down=True, depth=1) == {(1, "one", "derives", "q"), (1, "three", "references", "q")}
    down = walked(chain, "one", down=True)
    assert down == {(1, "two", "supersedes", "one"), (1, "three", "derives", "one"), (2, "three", "derives", "two")}


@pytest.mark.parametrize("depth", [-1, "2", True, 1.5])
def test_a_depth_is_a_number_from_1(chain: Session, depth: object) -> None:
    """What is no depth is refused, not taken for none."""
    with refused("not-a-limit", InputError):
        chain.lineage.ancestors("three", depth=depth)  # type: ignore[arg-type]


def test_links_show_the_text_on_their_far_side(chain: Session) -> None:
    """A relation carries the beginning of the page it leads to."""
    texts = {relation.target: relation.text for relation in chain.lineage.ancestors("two", depth=1)}
    assert texts == {chain.page("one").page: "Postgres.", chain.page("q2").page: "Sure?"}
    assert next(r.text for r in chain.lineage.descendants("q2")) == "SQLite."


def test_a_link_to_what_no_one_is_called_is_reported(tmp_path: Path) -> None:
    """A message that names a source the file does not have is kept, and the import says so."""
    lost = {"role": "user", "content": "x", "vm": {"derives": ["lost"]}}
    with memory_store() as store:
        done = store.import_file(lines(tmp_path / "talk.jsonl", [lost]))
        assert [(problem.line, "'lost'" in problem.reason) for problem in done.problems] == [(1, True)]
        assert store.session("talk").info().messages == 1


# ---- differences


def test_a_diff_names_what_entered_left_and_changed(session: Session) -> None:
    """Between two calls: pages in, out, shorter; tokens on both sides; the rest counted."""
    artifact, summary = of_type(session, "artifact").page, of_type(session, "summary").page
    shorter = session.diff(Call(2), Call(3))
    assert [(c.change, c.level_before, c.level_after) for c in shorter.changes if c.page == artifact] == [
        ("compressed", 0, 3)
    ]
    assert [c.change for c in shorter.changes].count("entered") == 2
    assert (shorter.unchanged, shorter.before.call, shorter.after.call) == (3, 2, 3)
    assert (shorter.tokens_before, shorter.tokens_after) == tuple(session.context(call=n).tokens for n in (2, 3))
    summed = session.diff(Call(3), Call(4))
    changes = {change.page: change.change for change in summed.changes}
    assert changes.pop(summary) == "entered"
    assert set(changes.values()) == {"left"} and len(changes) == 4


def test_a_diff_turned_round_is_its_opposite(session: Session) -> None:
    """Back from a later call, what entered left; shown in full again is a change, not a compression."""
    there, back = session.diff(Call(2), Call(3)), session.diff(Call(3), Call(2))
    assert {c.page for c in there.changes if c.change == "entered"} == {
        c.page for c in back.changes if c.change == "left"
    }
    (again,) = [c for c in back.changes if c.level_before == 3]
    assert (again.change, again.level_after) == ("changed", 0)
    assert again.tokens_after > again.tokens_before


def test_a_diff_takes_any_moments(session: Session) -> None:
    """Turns and positions stand for their contexts; the same moment twice differs in nothing."""
    assert session.diff(Turn(1), Turn(2)) == session.diff(Call(2), Call(4))
    assert session.diff(Position(session.info().position), Call(4)).changes == []
    with refused("no-call", UnknownError, "nearest is call 4"):
        session.diff(Call(1), Call(5))


def test_a_moved_page_is_told_alike_by_all() -> None:
    """A page in another place alone is one that moved: to a diff, to MOVES, to its history and its residencies."""
    with memory_store() as store:
        store.record("s", request([model_text("a"), model_text("b"), model_text("c")]))
        store.record("s", request([model_text("c"), model_text("a"), model_text("b")]))
        diff = store.session("s").diff(Call(1), Call(2))
        (moved,) = diff.changes
        assert (diff.unchanged, moved.change, moved.text) == (2, "moved", "c")
        assert (moved.tokens_before, moved.level_before) == (moved.tokens_after, moved.level_after)
        rows = store.query("MOVES page, level_before, level_after WHERE call = 2")
        assert list(rows) == [(moved.page, 0, 0)]
        history = [row["event"] for row in store.query(f"HISTORY OF {moved.page}").to_dicts()]
        assert history == ["create", "enter", "shown"]
        assert len(list(store.query(f"RESIDENCIES OF {moved.page}"))) == 2
        other_rows = store.query("DIFF CONTEXT CALL 1 TO CALL 2").to_dicts()
        assert [(row["page"], row["change"]) for row in other_rows] == [(moved.page, "moved")]


def test_a_page_at_another_level_differs_whatever_its_bytes() -> None:
    """A page shown at another level is one that was compressed, or changed back, also where its bytes are the same."""
    with memory_store() as store:
        session = store.session("s", create=True)
        with inner_batch(session, 1) as batch:
            page = batch.add(Create(0, 0, 1, 0, 0, batch.cell(b"a"), 1, 1))
        with inner_batch(session, 2) as batch:
            short = batch.add(Compress(page, 1, Level.REDUCED, Method.CLIPPED, 0, batch.cell(b"a"), 1, 1))
        for content, level in ((page, Level.FULL), (short, Level.REDUCED), (page, Level.FULL)):
            with inner_batch(session, 3) as batch:
                came = ((page, content, level, 1),)
                totals = batch.head.foresee(came, ())
                batch.add(Pack(batch.head.call + 1, Fidelity.RECORDED, *totals, came, ()))
        for calls, change, levels in (((1, 2), "compressed", (0, 1)), ((2, 3), "changed", (1, 0))):
            (actual_change,) = session.diff(*map(Call, calls)).changes
            assert (actual_change.change, actual_change.level_before, actual_change.level_after) == (change, *levels)
            moves = store.query("MOVES level_before, level_after WHERE call = $call", params={"call": calls[1]})
            assert list(moves) == [levels]


def test_answers_are_plain_values(session: Session) -> None:
    """Every answer becomes dicts and lists, pages in the shape the command prints."""
    context = session.context(call=3)
    fields = context.to_dict(messages=True, render=True)
    assert list(fields)[:5] == ["basis", "fidelity", "tokens", "tokens_reported", "pages"]
    keys = ["order", "page", "message", "role", "type", "level", "tokens", "pinned", "since_turn", "since_call"]
    assert list(fields["pages"][0]) == keys
    assert [page["order"] for page in fields["pages"]] == [1, 2, 3, 4, 5, 6]
    assert fields["messages"] == session.wire.request(call=3)["messages"]
    assert to_json(session.info())["session"] == "s"
    assert to_json(session.pages())[0]["role"] == "system"
