"""The panes that compare: two calls, two films, the versions of a page, where pages come from, what would have been."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from serving import served

import vmstore
from tests.debug.page.browsing import HOSTILE, Reader, content, reading
from tests.debug.page.conftest import hostile, managed
from vmstore.core.asof import Call
from vmstore.core.mutation import Update
from vmstore.shell.demo.demo import SHIPPED

PLAN = (
    "The plan:\n1. choose a database\n2. write the schema\n3. load the data\n",
    "The plan:\n1. choose a database: SQLite\n2. write the schema\n3. load the data\n4. ship it\n",
    "The plan:\n1. choose a database: PostgreSQL\n2. write the schema\n4. ship it twice\n",
)
FORKED = 12  # the turn after which the fork goes its own way


class Known(NamedTuple):
    """A store, and where its debugger is."""

    store: vmstore.Store
    url: str


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    """A server of sessions that can be compared, and the store that it reads."""
    path = tmp_path_factory.mktemp("panes") / "panes.vms"
    with vmstore.open(path) as store:
        store.import_file(SHIPPED)
        managed(store)
        forked(store)
        planned(store)
        recorded(store)
        hostile(store)
        with served(path) as url:
            yield Known(store, url)


@pytest.fixture(scope="module")
def address(known: Known) -> str:
    """Where the server is."""
    return known.url


def forked(store: vmstore.Store) -> None:
    """A fork of the managed session that is told other things."""
    fork = store.session("managed").fork("fork", turn=FORKED)
    for turn in range(FORKED, FORKED + 6):
        fork.user(f"Otherwise {turn}: " + f"what of matter {turn}? " * 10)
        fork.pack()
        fork.assistant(f"Then {turn}. " + f"Matter {turn} is open. " * 14)


def planned(store: vmstore.Store) -> None:
    """A session whose first page is changed twice."""
    session = store.live_session("plan", l0_tokens_max=4000, system="You keep a plan.")
    page = session.user(PLAN[0])[0]
    session.pack()
    for nth, text in enumerate(PLAN[1:], 2):
        with session.batch() as batch:
            other_content = text.encode()
            batch.add(
                Update(
                    session.lineage.position_of(page),
                    nth,
                    batch.cell(other_content),
                    len(other_content),
                    len(other_content) // 4,
                )
            )
        session.assistant("Noted.")
        session.user("Go on.")
        session.pack()


def recorded(store: vmstore.Store) -> None:
    """A session that never had a budget."""
    messages: list[dict[str, str]] = []
    for turn in range(24):
        messages.append({"role": "user", "content": f"Of topic {turn}: " + "what is known? " * 60})
        store.record("recorded", {"model": "m", "messages": messages}, None)
        messages.append({"role": "assistant", "content": f"Topic {turn}: " + "this is known. " * 60})


def changed(reader: Reader) -> set[tuple[str, str]]:
    """The changes in view, each with its page."""
    rows = reader.page.locator(".change").evaluate_all("rows => rows.map(r => [r.dataset.change, r.dataset.page])")
    return {(change, page) for change, page in rows}


class Shown(NamedTuple):
    """How a call was sent a page: its text and its level."""

    text: str
    level: int


def sent(known: Known, session: str, call: int) -> dict[str, Shown]:
    """The pages that a call was sent, in order."""
    rows = known.store.query("CONTEXT page, text, level AT CALL $call", session=session, call=call)
    return {page: Shown(text, level) for page, text, level in rows}


def differs(before: dict[str, Shown], after: dict[str, Shown]) -> set[tuple[str, str]]:
    """The changes between two contexts, by what their pages say, but for those of place alone."""
    rows = {("left", name) for name in before.keys() - after.keys()}
    rows |= {("entered", name) for name in after.keys() - before.keys()}
    for name in before.keys() & after.keys():
        was, now = before[name], after[name]
        if was != now:
            levels = {was.level < now.level: "shortened", was.level > now.level: "restored"}
            rows.add((levels.get(True, "edited"), name))
    return rows


def longest_rising(places: list[int]) -> int:
    """How many of some places stand in order, at most."""
    ends: list[int] = []
    for place in places:
        at = bisect_left(ends, place)
        ends[at : at + 1] = [place]
    return len(ends)


@pytest.fixture
def tall(reader: Reader) -> Iterator[Reader]:
    """Somebody before a window in which a long list is in view whole."""
    size = reader.page.viewport_size
    reader.page.set_viewport_size({"width": size["width"], "height": 3000})
    yield reader
    reader.page.set_viewport_size(size)


@pytest.mark.parametrize(("session", "before", "after"), [("managed", 5, 29), ("plan", 1, 3), ("managed", 20, 7)])
def test_two_calls_are_compared(tall: Reader, known: Known, session: str, before: int, after: int) -> None:
    """Between any two calls, in either order, the page lists what entered, left and changed, and the fewest moves."""
    tall.open(session=session, call=after, pane="diff", vs=before)
    was, now = sent(known, session, before), sent(known, session, after)
    wanted = differs(was, now)
    tall.until(lambda: {row for row in changed(tall) if row[0] != "moved"} == wanted)
    moved = {page for change, page in changed(tall) if change == "moved"}
    both, settled = list(was.keys() & now.keys()), {page for _, page in wanted} | moved
    assert moved <= set(both) - {page for _, page in wanted}
    assert [page for page in was if page in both and page not in settled] == [
        page for page in now if page in both and page not in settled
    ], "what is listed nowhere stands in the same order"
    places = list(was)
    assert len(moved) <= len(both) - longest_rising([places.index(page) for page in now if page in was])


def test_the_compaction_is_a_difference(reader: Reader, known: Known) -> None:
    """What the demo's compaction took is counted as the store's own diff counts it, and all of it can be read."""
    diff = known.store.session("planning-220").diff(Call(365), Call(366))
    kinds = [change.change for change in diff.changes]
    reader.open(session="planning-220", call=366)
    reader.press("d")
    reader.until(lambda: reader.page.locator(".changes .on:enabled").count() == 2)
    shown = reader.page.locator(".changes .on:enabled b").all_inner_texts()
    assert [int(item) for item in shown] == [kinds.count("entered"), kinds.count("left")]
    assert reader.page.locator(".change").count() < 60, "what is out of view is not in the document"


def test_keys_hold_swap_and_step_the_compared_call(reader: Reader) -> None:
    """D holds a call, z lets the two change places, comma and full stop move the one that is held."""
    reader.open(session="managed", call=10, pane="why")
    reader.press("D")
    reader.press("j", "j")
    value = reader.page.get_by_label("compare with call")
    reader.until(lambda: value.input_value() == "10" and "to call 12" in reader.text(".diff"))
    reader.press(".")
    reader.until(lambda: value.input_value() == "11")
    reader.press(",", ",", "z")
    reader.until(lambda: value.input_value() == "12" and "to call 9" in reader.text(".diff"))
    reader.until(lambda: {"vs=12", "call=9", "pane=diff"} <= set(reader.place.split("&")))


def test_an_edited_page_shows_its_words(reader: Reader) -> None:
    """An edit is shown by lines, and within lines by the words that differ; what is the same is not marked."""
    reader.open(session="plan", call=3, pane="diff", vs=2)
    reader.until(lambda: reader.page.locator('.change[data-change="edited"]').count() == 1)
    reader.press("ArrowDown", "Enter")
    reader.until(lambda: reader.page.locator(".line").count() > 0)
    lines = {kind: reader.page.locator(f".line-{kind} pre").all_inner_texts() for kind in ("gone", "came", "same")}
    assert lines["gone"] == ["1. choose a database: SQLite", "3. load the data", "4. ship it"]
    assert lines["came"] == ["1. choose a database: PostgreSQL", "4. ship it twice"]
    assert lines["same"][:1] == ["The plan:"]
    hot = reader.page.locator(".line-came b").all_inner_texts()
    assert [text.strip() for text in hot] == ["PostgreSQL", "twice"]


def first_apart(a: vmstore.Session, b: vmstore.Session) -> int:
    """The first call at which two sessions were sent other texts."""
    for call in range(1, min(a.info().calls, b.info().calls) + 1):
        first, second = (list(of.context(call=call).contents().values()) for of in (a, b))  # names of pages differ
        if first != second:
            return call
    raise AssertionError("they never part")


def test_a_what_if_beside_the_original(reader: Reader, known: Known, tmp_path: Path) -> None:
    """A what-if stands beside what happened; they part where their requests do, and v goes there on both sides."""
    with vmstore.open(tmp_path / "copy.vms") as copy:
        managed(copy)
        copy.session("managed").debug.replay(policy="lru", budget=4000, keep="other")
        parts = first_apart(copy.session("managed"), copy.session("other"))
    reader.open(session="managed", call=30, pane="sides", other="managed", opolicy="lru", obudget=4000)
    reader.until(lambda: reader.page.locator(f'[data-first="{parts}"]').count() == 1)
    assert reader.page.locator(".parting").count() == 2, "it is marked on both timelines"
    text = reader.text(".because-line")
    assert "left" in text and "evict" in text, "the original evicts where the larger budget does not"
    reader.press("v")
    for side in "ab":
        reader.until(lambda side=side: reader.text(f'[data-testid="side-{side}-call"]') == f"call {parts}")
    only = reader.page.locator('.change[data-change="entered"]').count()
    assert only > 0
    assert reader.page.locator(".change").count() == only, (
        "at the first difference the right side has more, and no less"
    )
    reader.press("ArrowDown", "Enter")
    reader.until(lambda: reader.page.locator(".change.chosen .content").count() == 1)


def test_sides_scrub_together_or_apart(reader: Reader) -> None:
    """Locked, both sides show one call; unlocked, each moves alone; locked again they meet; the URL keeps it."""
    reader.open(session="managed", call=8, pane="sides", other="fork")

    def at(left: int, right: int) -> bool:
        shown = [reader.page.locator(f'[data-testid="side-{side}-call"]').all_inner_texts() for side in "ab"]
        return shown == [[f"call {left}"], [f"call {right}"]]

    reader.until(lambda: at(8, 8))
    reader.press("j")
    reader.until(lambda: at(9, 9))
    reader.press("y", ".", ".")
    reader.until(lambda: at(9, 11))
    reader.press("k", "k", "k")
    reader.until(lambda: at(6, 11))
    reader.until(lambda: "ocall=11" in reader.place and "call=6" in reader.place)
    reader.page.reload()
    reader.until(lambda: at(6, 11))
    reader.press("y")
    reader.until(lambda: at(6, 6))


def test_a_fork_parts_where_it_was_made(reader: Reader, known: Known) -> None:
    """A fork shares all calls before its first own; what was told it after that is on its side alone."""
    parts = first_apart(known.store.session("managed"), known.store.session("fork"))
    assert parts == FORKED + 1
    reader.open(session="fork", call=2)
    reader.press("s")
    field = reader.page.get_by_label("find a session")
    field.fill("managed")
    field.press("Enter")
    reader.until(lambda: reader.page.locator(f'[data-first="{parts}"]').count() == 1)
    assert reader.page.locator(".change").count() == 0
    reader.press("V")
    reader.until(lambda: reader.text('[data-testid="side-b-call"]') == f"call {parts}")
    reader.until(lambda: all(reader.page.locator(".preview").all_inner_texts()))
    rows = reader.page.locator(".change").all()
    texts = [row.locator(".preview").all_inner_texts() for row in rows if row.locator(".preview").count() == 2]
    assert any(left.startswith("Otherwise 12") and right.startswith("Question 12") for left, right in texts)


def test_either_side_opens_on_its_own(reader: Reader) -> None:
    """The right side is opened alone, at its call and with its settings, and back leads to both."""
    reader.open(session="managed", call=9, pane="sides", other="managed", opolicy="lru", obudget=4000)
    reader.page.locator(".side-head a").last.click()
    reader.until(lambda: reader.page.locator(".top .whatif").count() == 1)
    reader.until(lambda: reader.call == 9)
    assert {"policy=lru", "budget=4000"} <= set(reader.place.split("&"))
    reader.page.go_back()
    reader.until(lambda: reader.page.locator(".side-head").count() == 2)
    reader.page.locator(".side-head a").first.click()
    reader.until(lambda: reader.page.locator(".context h2").count() == 1 and reader.call == 9)
    assert reader.page.locator(".top .whatif").count() == 0


def test_two_runs_are_aligned_by_what_they_say(reader: Reader, known: Known) -> None:
    """Runs of no common origin are the same as far as their texts are, whatever their pages are called."""
    begun = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Book a flight."}]
    for run, answer in (("first run", "To where?"), ("second run", "From where?")):
        call = {"id": f"call {run}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        asked = {"role": "assistant", "content": None, "tool_calls": [call]}
        shown = {"role": "tool", "tool_call_id": call["id"], "content": "12 flights"}
        known.store.record(run, {"model": "m-1", "messages": begun})
        known.store.record(run, {"model": "m-1", "messages": [*begun, asked, shown]})
        last = {"role": "user", "content": answer}
        known.store.record(run, {"model": "m-1", "messages": [*begun, asked, shown, last]})
    reader.open(session="first run", pane="sides", other="second run")
    reader.until(lambda: reader.page.locator(".shared").get_attribute("data-shared") == "4")
    reader.until(lambda: all(word in reader.text(".shared") for word in ("To where?", "From where?")))
    assert reader.page.locator(".change").count() == 1, "what differs stands in one row"
    assert "≠" in reader.text(".change")


def test_the_history_of_a_page(reader: Reader, known: Known) -> None:
    """A page's versions stand with their differences, its events lead to their calls."""
    page = known.store.session("plan").pages(role="user")[0].page
    reader.open(session="plan", page=page, pane="history")
    tabs = reader.page.locator('.contents [role="tab"]')
    reader.until(lambda: tabs.count() == 3)
    assert [all_inner_text.split()[1] for all_inner_text in tabs.all_inner_texts()] == ["1", "2", "3"]
    reader.until(lambda: reader.page.locator(".line-came b").all_inner_texts()[:1] == ["PostgreSQL"])
    reader.press(",")
    reader.until(lambda: "4. ship it" in reader.page.locator(".line-came pre").all_inner_texts())
    reader.press(",")
    reader.until(lambda: reader.page.locator(".history .content").inner_text().strip() == PLAN[0].strip())
    kinds = reader.page.locator(".moment").evaluate_all("rows => rows.map(row => row.dataset.kind)")
    assert [kind for kind in kinds if kind != "reference"] == ["create", "enter", "update", "shown", "update", "shown"]
    reader.page.locator('.moment[data-kind="shown"]').first.click()
    reader.until(lambda: reader.call == 2)


def places(reader: Reader) -> dict[str, tuple[float, float]]:
    """Where each box of the graph stands."""
    values = reader.page.locator(".box").evaluate_all("all => all.map(b => [b.dataset.box, b.offsetLeft, b.offsetTop])")
    return {name: (left, top) for name, left, top in values}


def test_provenance_is_the_stores(reader: Reader, known: Known) -> None:
    """Expanded, the graph has the very pages that the store's walks meet; aggregated, fewer boxes stand for them."""
    session = known.store.session("planning-220")
    wanted = {"p359"}
    for edge in [*session.lineage.ancestors("p359", depth=2), *session.lineage.descendants("p359", depth=2)]:
        wanted |= {edge.source, edge.target}
    reader.open(session="planning-220", page="p359", pane="lineage", depth=2, unfold="all")
    reader.until(lambda: set(places(reader)) == wanted)
    assert len(set(places(reader).values())) == len(wanted), "no two stand in one place"
    expanded = places(reader)
    reader.page.locator('.box[data-box="p147"]').click()
    reader.until(lambda: "page=p147" in reader.place)
    assert places(reader) == expanded, "a click moves nothing"
    reader.page.get_by_role("button", name="aggregated").click()
    reader.until(lambda: 1 < len(places(reader)) < len(wanted))
    reader.page.locator(".box.fold").first.click()
    reader.until(lambda: "unfold=" in reader.place)


def test_evidence_stands_apart_from_links(reader: Reader, known: Known) -> None:
    """Where no link says what an answer was made of, the store's evidence is ranked below the graph, and only there."""
    session = known.store.session("managed")
    answer = session.pages(role="assistant")[1].page
    wanted = session.lineage.evidence(answer, limit=5)
    assert wanted and not session.lineage.ancestors(answer)
    reader.open(session="managed", page=answer, pane="lineage")
    reader.until(lambda: reader.page.locator(".evidence li").count() == len(wanted))
    rows = reader.page.locator(".evidence li").all_inner_texts()
    for row, evidence in zip(rows, wanted, strict=True):
        assert row.split()[:2] == [str(evidence.rank), evidence.page]
        assert (f"new in call {evidence.call}" in row) == evidence.new
        assert " · ".join(evidence.shared) in row
    assert "evidence, not logged" in reader.text(".evidence h3")
    assert not {row.page for row in wanted} & places(reader).keys()
    summary = known.store.session("planning-220").lineage.ancestors("p359")[0].source
    reader.open(session="planning-220", page=summary, pane="lineage")
    reader.until(lambda: len(places(reader)) > 1)
    assert reader.page.locator(".evidence").count() == 0, "a link says it"


def test_the_graph_stays_put_as_it_grows(chromium: Any, tmp_path: Path) -> None:
    """A page made later takes a place of its own, and no other moves."""
    path = tmp_path / "grows.vms"
    with vmstore.open(path) as store:
        session = store.live_session("s", l0_tokens_max=8000)
        source = session.user("The source of it all.")[0]
        first = session.claim("It has a source.", name="first", sources=[source])
        session.claim("And so on.", name="second", sources=[first])
        session.pack()
        with served(path) as url, reading(chromium, url) as reader:
            reader.open(session="s", page=first, pane="lineage", unfold="all", root=first)
            reader.until(lambda: len(places(reader)) == 3)
            before = places(reader)
            third = session.claim("Another thing.", name="third", sources=[first, source])
            reader.until(lambda: third in places(reader))
            after = places(reader)
            assert {name: after[name] for name in before} == before
            assert after[third] not in before.values()


def test_what_would_have_been(reader: Reader, known: Known) -> None:
    """A sweep shows the store's own numbers, its best run is marked, and a key sets one beside what happened."""
    session = known.store.session("managed")
    runs = {
        (text, size): session.debug.replay(policy=text, budget=size)
        for text in ("lru", "demand")
        for size in (3000, 4000)
    }
    reader.open(session="managed")
    reader.press("i")
    for name in ("default", "demand", "lru"):
        reader.page.get_by_label(name, exact=True).set_checked(name != "default")
    reader.page.get_by_label("budgets").fill("3000, 4k")
    reader.page.get_by_role("button", name="Run").click()
    reader.until(lambda: reader.page.locator(".sweep tbody tr").count() == 5)
    for (_, budget), run in runs.items():
        row = reader.page.locator(f'tr[data-run="{run.policy} {budget}"]').last
        cells = row.locator("td").all_inner_texts()
        assert cells[1] == f"{budget:,}"
        texts = [item.inner_text() for item in reader.page.locator(".sweep th").all()]
        assert cells[texts.index("evictions")] == f"{run.measures.evictions:,}"
        assert cells[texts.index("faults")] == f"{run.measures.faults:,}"
    assert reader.page.locator(".sweep .best").count() == 1
    least = min(
        [session.debug.replay(), *runs.values()],
        key=lambda run: (run.measures.faults, run.measures.prefix_voided, run.budget),
    )
    assert reader.page.locator(".sweep .best").get_attribute("data-run") == f"{least.policy} {least.budget}"
    reader.press("ArrowDown", "ArrowDown", "Enter")
    reader.until(lambda: reader.page.locator(".side-head").count() == 2)
    assert "other=managed" in reader.place


def test_what_if_of_a_session_without_a_budget(reader: Reader) -> None:
    """A session that never had a budget is redriven into a memory that has one, which is said, and opens beside it."""
    reader.open(session="recorded", pane="whatif", policies="lru", budgets="3000,6000")
    reader.until(lambda: reader.page.locator(".sweep tbody tr").count() == 2)
    assert "ran without a token budget" in reader.text(".whatif-pane")
    reader.page.locator(".sweep tbody tr").first.click()
    reader.until(lambda: reader.page.locator(".side-head").count() == 2)
    assert "no budget" in reader.text(".side-head")
    reader.press("v")
    reader.until(lambda: reader.page.locator(".change").count() > 0)


def test_a_budget_that_cannot_be_says_why(reader: Reader) -> None:
    """A budget too small for what is pinned gives the store's own words, and the form stays."""
    reader.open(session="managed", pane="whatif", policies="lru", budgets="10")
    reader.until(lambda: reader.page.locator(".pane .problem").count() == 1)
    assert "a budget of 10 tokens cannot hold p4" in reader.text(".pane .problem")
    assert "give a larger one" in reader.text(".pane .problem")
    assert reader.page.get_by_role("button", name="Run").count() == 1
    reader.complaints.clear()  # the browser tells of every answer that is an error


def test_hostile_texts_are_only_compared(chromium: Any, address: str) -> None:
    """Scripts inside contents, models and settings are compared as text, and never run."""
    with reading(chromium, address) as reader:
        for place in (
            {"pane": "diff", "call": 2, "vs": 1, "changes": "same,entered,left", "open": "p4,p5,p6,p7,p8,p9"},
            {"pane": "history", "page": "p4"},
            {"pane": "sides", "other": "plan", "all": 1, "open": "p4,p5,p6,p7,p8"},
            {"pane": "lineage", "page": "p4"},
        ):
            reader.open(session="hostile", **place)
            if place["pane"] in ("diff", "history", "sides"):
                reader.until(lambda: "window.ran" in reader.page.inner_text(".pane"))
            reader.page.wait_for_timeout(200)
            assert reader.page.evaluate("window.ran") is None
            assert reader.page.locator(".pane img, main script").count() == 0
        assert HOSTILE.startswith("<script>")
        content(reader)
