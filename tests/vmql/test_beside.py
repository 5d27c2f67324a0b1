"""What a page that a row names has to say, as `page.type`, and the way from a page to another, read naively."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vmstore
from tests.against_model import model_of
from tests.engine.author import Deed
from tests.vmql.asked import COLUMNS, listed
from tests.vmql.facts import Naive, Row
from tests.vmql.naive import answer
from tests.vmql.test_differential import STORIES, same, scoped, written
from vmstore.core.page import LinkKind
from vmstore.shell.demo.demo import SHIPPED
from vmstore.vmql.syntax import nodes as s
from vmstore.vmql.syntax.errors import QueryError
from vmstore.vmql.syntax.printer import show

NAMING = {
    **dict.fromkeys(("FAULTS", "MOVES", "MUTATIONS", "RESIDENCIES", "VERSIONS"), ("page",)),
    "LINKS": ("source", "target"),
}
OF_PAGE = [name for name in COLUMNS["PAGES"] if name not in ("page", "session") and not listed("PAGES", name)]


def bare(tail: s.Tail) -> s.Tail:
    """A tail of the same sessions and moment."""
    return s.Tail(scope=tail.scope, as_of=tail.as_of)


def beside(store: vmstore.Store, tail: s.Tail, naive: Naive, rows: list[Row], column: str, of: str) -> list[Row]:
    """Rows with a column of the page that one of theirs names, found among all pages of the moment by name."""
    names = tuple(s.SelectItem(expr=s.Word(path=(name,))) for name in ("session", "page", of))
    pages = store.query(show(s.RelationQuery(name="PAGES", columns=names, tail=bare(tail))))
    known = {(session, page): value for session, page, value in pages}
    single = isinstance(tail.scope, s.InSession) and "%" not in str(tail.scope.name)
    records = []
    for row in rows:
        page = row[column]
        writer = None
        if page is not None:
            owners = [session for session, name in known if name == page]
            writer = (owners or [None])[0] if single else naive.writer(row["session"], int(page[1:]))
        records.append({**row, f"{column}.{of}": known.get((writer, page))})
    return records


@given(STORIES, st.data())
def test_a_column_of_a_named_page_is_that_of_the_page(story: list[Deed], data: st.DataObject) -> None:
    """Shown, grouped and ordered by, a column of a named page is what PAGES says of it at the moment asked."""
    store = written(story)
    model = model_of(store)
    naive = Naive(model)
    for _ in range(3):
        relation = data.draw(st.sampled_from(sorted(NAMING)), "relation")
        column, of = data.draw(st.sampled_from(NAMING[relation])), data.draw(st.sampled_from(OF_PAGE), "of")
        tail, rows = scoped(data, model, naive, relation, s.Tail())
        rows = beside(store, tail, naive, rows, column, of)
        path = s.Word(path=(column, of))
        columns: tuple[s.SelectItem, ...] = tuple(s.SelectItem(expr=expr) for expr in (s.Word(path=(column,)), path))
        grouped = data.draw(st.booleans(), "grouped")
        if grouped:
            columns = (s.SelectItem(expr=s.Apply(name="count", star=True)),)
        by = s.Tail(scope=tail.scope, as_of=tail.as_of, since=tail.since, until=tail.until, by=(path,) * grouped)
        text = show(s.RelationQuery(name=relation, columns=columns, tail=by))
        flat = [{**row, "x": row[f"{column}.{of}"]} for row in rows]
        x = s.Word(path=("x",))
        shown = columns if grouped else (columns[0], s.SelectItem(expr=x))
        wanted = answer(flat, shown, s.Tail(by=(x,) * grouped))
        results = list(store.query(text))
        if grouped:  # groups of words come in the order of their numbers, here of their letters
            results, wanted = sorted(results, key=repr), sorted(wanted, key=repr)
        assert same(results, wanted), (text, results, wanted)


# ---- from a page to another


def ways(links: list[tuple[str, str]], first: str, last: str) -> int | None:
    """The fewest links between two pages, by spreading over all links again and again."""
    reached, steps = {first}, 0
    while last not in reached:
        more = {b for a, b in links if a in reached} | {a for a, b in links if b in reached}
        if more <= reached:
            return None
        reached |= more
        steps += 1
    return steps


@given(STORIES, st.data())
def test_a_path_is_a_shortest_walk(story: list[Deed], data: st.DataObject) -> None:
    """PATH gives a walk over links that hold, from the one page to the other, and none is shorter."""
    store = written(story)
    naive = Naive(model := model_of(store))
    name = data.draw(st.sampled_from(sorted(model.names.values())), "session")
    position = data.draw(st.integers(1, model.last(name)[0]), "position")
    pages = [row["page"] for row in naive.rows("PAGES", name, position)]
    if not pages:
        return
    linked = naive.rows("LINKS", name, position)
    first, last = (data.draw(st.sampled_from(pages)) for _ in range(2))
    if linked and data.draw(st.booleans(), "by a link"):
        first, last = linked[0]["source"], linked[-1]["target"]
    kinds = data.draw(st.lists(st.sampled_from([kind.word for kind in LinkKind]), max_size=4, unique=True), "kinds")
    via = f" VIA {', '.join(kinds)}" if kinds else ""
    links = [(row["source"], row["target"], row["kind"]) for row in linked if not kinds or row["kind"] in kinds]
    text = f"PATH FROM {first} TO {last}{via} IN SESSION {name} AS OF POSITION {position}"
    walk = list(store.query(text))
    fewest = ways([link[:2] for link in links], first, last)
    assert len(walk) == (fewest or 0), text
    here = first
    for depth, (number, source, kind, target, *_) in enumerate(walk, 1):
        assert number == depth and (source, target, kind) in links and here in (source, target), text
        here = target if here == source else source
    assert here == last or not walk, text
    assert list(store.query(text.replace(" IN SESSION", f" DEPTH {len(walk)} IN SESSION"))) == walk
    if walk:
        assert list(store.query(text.replace(" IN SESSION", f" DEPTH {len(walk) - 1} IN SESSION"))) == []


@pytest.fixture(scope="module")
def demo() -> vmstore.Store:
    """The session that ships, in memory."""
    store = vmstore.memory_store()
    store.import_file(SHIPPED)
    return store


def test_a_named_page_is_asked_about_in_every_place(demo: vmstore.Store) -> None:
    """Its columns stand in conditions, sums, series and contexts, a message's beside a page."""
    claims = {page for (page,) in demo.query("PAGES page WHERE type = claim")}
    of_claims = demo.query("LINKS source WHERE source.type = claim")
    assert {page for (page,) in of_claims} <= claims
    total = list(demo.query("RESIDENCIES sum(page.tokens) WHERE page.role = tool"))
    tools = dict(demo.query("PAGES page, tokens WHERE role = tool"))
    assert total == [(sum(tools.get(page, 0) for (page,) in demo.query("RESIDENCIES page")),)]
    assert list(demo.query("MOVES count(*) PER TURN WHERE page.type = claim HAVING count(*) > 0"))
    for page, hint in demo.query("CONTEXT page, page.hint AT CALL 30"):
        assert list(demo.query("PAGES hint AS OF CALL 30 WHERE page = $page", page=page)) == [(hint,)]
    assert list(demo.query("PAGES count(*) WHERE message.role != role")) == [(0,)]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("FAULTS page.typ", "unknown-column"),
        ("FAULTS page.type.x", "no-path"),
        ("FAULTS turn.type", "no-path"),
        ("FAULTS WHERE page.type = clam", "unknown-word"),
        ("FAULTS sum(page.type)", "wrong-type"),
        ("PATH FROM p1 TO p99999999", "unknown-page"),
        ("PATH FROM p4 TO p8 VIA derive", "unknown-word"),
        ("PATH FROM p4", "unfinished"),
        ("PATH FROM p4 TO p8 ACROSS SESSIONS", "which-session"),
    ],
)
def test_what_is_not_beside_a_page_is_refused(demo: vmstore.Store, text: str, code: str) -> None:
    """A column that pages do not have, or a way that cannot be, is refused with its place."""
    with pytest.raises(QueryError) as refused:
        list(demo.query(text))
    assert refused.value.code == code and refused.value.pointed()


def test_a_page_has_a_way_to_itself_of_no_links(demo: vmstore.Store) -> None:
    """The way from a page to itself is empty, as is one where no links lead."""
    assert list(demo.query("PATH FROM p4 TO p4")) == []
    assert list(demo.query("PATH FROM p4 TO p8 VIA contradicts")) == []
