"""The page asks: why, VMQL, search, and the very messages of a call."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import vmstore
from tests.debug.page.browsing import Reader, reading
from tests.debug.page.conftest import managed


def test_why_and_why_not(reader: Reader) -> None:
    """A page of the context is told why it is in; one that left, why it is out, with its reasons from the log."""
    reader.open(session="planning-220", call=400, page="claim_storage_4")
    reader.until(lambda: "no page claim_storage_4" in reader.text(".pane"))
    reader.open(session="planning-220", call=400, page="p359")
    reader.until(lambda: "left at call 366: a compaction replaced" in reader.text(".because"))
    assert reader.text(".verdict") == "not in call 400"
    reader.open(session="planning-220", call=100, page="p359")
    reader.until(lambda: "p359 is in call 100" in reader.text(".because"))


def test_why_tells_the_contest(reader: Reader) -> None:
    """Where a kernel decided, the page shows who lost and by how much, against which budget: what the rules leave."""
    reader.open(session="managed", show="out")
    reader.press("e")
    reader.press("Home", "e")
    reader.until(lambda: reader.page.locator('.event.now[data-kind="evict"]').count() > 0)
    reader.page.locator('.event.now[data-kind="evict"]').first.click()
    reader.until(lambda: reader.page.locator(".contest").count() > 0)
    text = reader.text(".contest")
    used, budget = (
        int(each_text.replace(",", "")) for each_text in re.findall(r"([\d,]+) of ([\d,]+) tokens used", text)[0]
    )
    assert 0 < used <= budget < 3000
    assert "the cutoff" in text
    assert reader.page.locator(".scores tr").count() >= 3


def test_vmql_answers_lead_somewhere(reader: Reader) -> None:
    """A query is answered as a table; its calls and pages can be clicked; a mistake says where it is."""
    reader.open(session="planning-220", pane="vmql")
    field = reader.page.get_by_role("textbox", name="VMQL")
    field.fill("CALLS call, tokens ORDER BY tokens DESC LIMIT 3")
    field.press("Enter")
    reader.until(lambda: reader.page.locator(".table-row").count() == 3)
    first = reader.page.locator(".table-row").first.locator("button").first
    call = int(first.inner_text())
    first.click()
    reader.until(lambda: reader.call == call)
    field.fill("PAGES WHERE typ = claim")
    field.press("Enter")
    reader.until(lambda: reader.page.locator(".pane .problem").count() == 1)
    assert reader.text(".wrong mark") == "typ"
    reader.complaints.clear()  # the browser tells of every answer that is an error


def test_vmql_completes(reader: Reader) -> None:
    """What is begun is completed from what the store knows."""
    reader.open(session="planning-220", pane="vmql")
    field = reader.page.get_by_role("textbox", name="VMQL")
    field.press_sequentially("PAG")
    reader.until(lambda: reader.page.locator(".offer li", has_text="PAGES").count() > 0)
    field.press("Tab")
    reader.until(lambda: field.input_value().strip() == "PAGES")


def test_search_finds_by_words_and_by_name(reader: Reader) -> None:
    """Pages are found by their names at once, by their words through the store."""
    reader.open(session="planning-220")
    reader.press("/")
    field = reader.page.get_by_label("search", exact=True)
    reader.until(lambda: bool(field.evaluate("e => e === document.activeElement")))
    field.fill("claim_storage_4")
    reader.until(lambda: reader.page.locator(".hit b").first.inner_text() == "p359")
    field.fill("Cassandra")
    field.press("Enter")
    reader.until(lambda: "best first" in reader.text(".pane"))
    reader.until(lambda: reader.page.locator(".hit").count() > 0)
    reader.page.locator(".hit").first.click()
    reader.press("Escape")


def test_a_hit_tells_why_it_was_found(reader: Reader, demo: vmstore.Session) -> None:
    """Hits go by the arrows; the one in hand has its words and, as bars, the features that its score is the sum of."""
    hits = demo.search("postgres decision", limit=None, explain=True)[:50]
    reader.open(session="planning-220", pane="search", find="postgres decision")
    reader.until(lambda: reader.page.locator(".hit").count() == len(hits))
    shown = reader.page.locator(".hit").evaluate_all("rows => rows.map(row => row.dataset.page)")
    assert shown == [hit.page for hit in hits]
    assert reader.text(".hit-text mark") == "Decision" and "score@5 of 1,295 texts" in reader.text(".looked-for")
    reader.press("ArrowDown", "ArrowDown")
    reader.until(lambda: reader.page.locator(".hit.chosen .shares tr").count() == len(hits[1].features))
    assert reader.page.locator(".hit.chosen").get_attribute("data-page") == hits[1].page
    assert reader.page.locator(".shares th").all_inner_texts() == list(hits[1].features)
    assert "decision stem decis" in reader.text(".hit.chosen .why-found")
    reader.press("ArrowUp")
    reader.until(lambda: reader.page.locator(".hit.chosen").get_attribute("data-page") == hits[0].page)
    reader.page.get_by_label("search", exact=True).press("ArrowDown")
    reader.press("ArrowDown")
    reader.until(lambda: reader.page.locator(".hit.chosen").get_attribute("data-page") == hits[1].page)
    reader.page.get_by_label("in all sessions").check()
    reader.until(lambda: "planning-220" in reader.text(".hit em"))


def test_messages_are_copied_exactly(reader: Reader, demo: vmstore.Session) -> None:
    """The messages of the call are copied with one click, equal to what the store says."""
    reader.open(session="planning-220", call=40, pane="request")
    reader.page.get_by_role("button", name="Copy JSON").first.click()
    reader.until(lambda: reader.page.locator(".said").count() > 0)
    assert json.loads(reader.clipboard) == demo.wire.messages(call=40)


def test_a_live_request_is_copied_as_it_was_sent(reader: Reader) -> None:
    """Of a live session the request is copied as `pack` gave it, in every field and their order."""
    with vmstore.memory_store() as store:
        sent = managed(store)
    for call in (20, 3):
        reader.open(session="managed", call=call, pane="request")
        reader.page.get_by_role("button", name="Copy JSON").first.click()
        reader.until(lambda: reader.page.locator(".said").count() > 0)
        assert reader.text(".messages .pane-head").startswith(f"The request of call {call}")
        assert json.dumps(json.loads(reader.clipboard)) == json.dumps(sent[call - 1])


def test_it_stops_when_something_holds(reader: Reader) -> None:
    """A breakpoint puts the cursor on the call that shows the moment, the next one on the next moment."""
    reader.open(session="planning-220", call=300, pane="until")
    field = reader.page.get_by_role("textbox", name="stop when")
    field.fill("p216 LEAVES L0")
    field.press("Enter")
    reader.until(lambda: reader.call == 366)
    assert "p216 leaves L0" in reader.text(".until .because")
    assert reader.page.locator(".event.chosen").count() >= 1
    reader.page.get_by_role("button", name="Next", exact=True).click()
    reader.until(lambda: "does not hold" in reader.text(".until p"))
    assert reader.call == 366


def test_a_session_is_handed_out_as_a_file(reader: Reader, chromium: Any, tmp_path: Path) -> None:
    """The export opens from disk with no network: it scrubs, says why, searches, and shows messages."""
    reader.open(session="managed")
    with reader.page.expect_download() as download:
        reader.page.get_by_role("link", name="export").click()
    file = tmp_path / "managed.html"
    download.value.save_as(file)
    with reading(chromium, file.as_uri(), offline=True) as alone:
        alone.open(call=5)
        alone.press("j", "E", "e")
        alone.until(lambda: alone.page.locator('.event.now[data-kind="evict"]').count() > 0)
        alone.page.locator('.event.now[data-kind="evict"]').first.click()
        alone.until(lambda: alone.page.locator(".contest").count() > 0)
        assert " the context of call " in alone.text(".because"), "the answer comes first"
        alone.press("r")
        alone.until(lambda: "You are brief." in alone.text(".messages"))
        alone.press("i")
        alone.until(lambda: "this is an exported file" in alone.text(".pane"))
        alone.press("/")
        field = alone.page.get_by_label("search", exact=True)
        field.fill("Topic 7 is settled")
        field.press("Enter")
        alone.until(lambda: alone.page.locator(".hit").count() > 0)
        assert "topic" in {text.lower() for text in alone.page.locator(".hit-text mark").all_inner_texts()}


def test_what_was_known_at_a_call(reader: Reader) -> None:
    """Facts stand as they were known at the call; one in hand leads to its source and to what its attribute was."""
    reader.open(session="acquainted", pane="known", call=2)
    reader.until(lambda: "1 of 1 hold" in reader.text(".known h3"))
    assert "Berlin" in reader.text(".fact")
    assert reader.text(".topics").split() == ["berlin", "1", "turn"]
    reader.open(session="acquainted", pane="known")
    reader.until(lambda: "1 of 2 hold" in reader.text(".known h3"))
    assert "Lisbon" in reader.text(".fact")
    reader.page.get_by_label("also those that no longer hold").check()
    reader.until(lambda: reader.page.locator(".fact").count() == 2)
    assert "Berlin" in reader.text(".fact.over")
    reader.page.locator(".fact.over .fact-line").click()
    reader.until(lambda: reader.page.locator(".fact-more tr").count() == 2)
    assert reader.page.locator(".fact-more .page-name").first.inner_text() == "p4"
    reader.page.locator(".topic svg").last.click(position={"x": 3, "y": 5})
    reader.until(lambda: reader.call == 1)


def test_a_request_is_read_as_it_was_said(reader: Reader) -> None:
    """The request stands as words, tool calls as a line and results under their tool's name; J shows its JSON."""
    reader.open(session="tooled", call=2, pane="request")
    reader.until(lambda: reader.page.locator(".message").count() >= 5)
    shown = [block.inner_text() for block in reader.page.locator(".message").all()]
    assert "model m-1 · temperature 0" in shown[0] and "tools: read, edit" in shown[0]
    assert any("Be brief." in block and block.startswith("system") for block in shown)
    assert any('→ read({"path":"theme.md"})' in block for block in shown)
    assert any(block.startswith("read →") and "# Theme" in block for block in shown)
    assert not any('"content"' in block for block in shown)
    reader.page.locator(".messages .asked", has_text="→ read(").click()
    reader.until(lambda: '"path": "theme.md"' in reader.text(".message > pre.code"))
    reader.press("J")
    reader.until(lambda: '"temperature": 0' in reader.text(".message pre"))
