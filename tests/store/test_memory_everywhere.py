"""What a session remembers, carried everywhere: bundles, masked exports, regions, forks, the past, rewind, erasure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.store.test_assembled_why import QUESTION, live, lost, recorded, searches
from vmstore.core.asof import Position
from vmstore.core.clock import ManualClock
from vmstore.erasure.erase import erase
from vmstore.shares.regions import share

NOW = 20_000 * 86_400_000_000
SECRET = "sk-ant-api03-" + "Zq8xW3vT" * 11 + "AA"


def remembered(session: Any) -> str:
    """Gives a session tags, an alias, a depth, a fact, and a prompt that was assembled; a page that lost in it."""
    loser, _ = lost(session.memory.assemble(QUESTION, tokens=900)).losers[0]
    session.memory.turns.tag()
    session.memory.tags.give(loser, "trains")
    session.memory.tags.alias("rail", "trains")
    session.memory.tags.expand("trains")
    session.memory.facts.state("user", "lives in", "Oslo", attribute="home")
    return loser


def memory_of(store: vmstore.Store, name: str, loser: str, **moment: Any) -> Any:
    """All that a session remembers, as of a moment."""
    memory = store.session(name).memory
    return (
        memory.tags.all(**moment),
        [(fact.what, fact.valid_from_us) for fact in memory.facts.all(**moment)],
        memory.segments.all(**moment),
        searches(store, loser, f"IN SESSION {name}") if not moment else None,
    )


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "masked"])
def test_a_bundle_carries_all_of_it(tmp_path: Path, exact: bool) -> None:
    """A bundle, exact or masked, brings tags, aliases, depths, facts and chosen prompts to another store."""
    with vmstore.open(tmp_path / "a.vms", clock=ManualClock(NOW, 1)) as store:
        loser = remembered(recorded(store))
        before = memory_of(store, "trip", loser)
        store.export(tmp_path / "out.jsonl", ["trip"], exact=exact)
    with vmstore.open(tmp_path / "b.vms", clock=ManualClock(NOW, 1)) as other:
        other.import_file(tmp_path / "out.jsonl", exact=exact)
        assert memory_of(other, "trip", loser) == before and other.verify().ok


def test_a_masked_export_hides_a_secret_in_tag_and_fact(tmp_path: Path) -> None:
    """A secret that somebody made a tag or a fact of leaves in no masked export."""
    with vmstore.open(tmp_path / "a.vms", clock=ManualClock(NOW, 1)) as store:
        session = recorded(store, 2)
        session.memory.tags.give("p4", f"key {SECRET}")
        session.memory.tags.alias(f"name {SECRET}", f"key {SECRET}")
        session.memory.facts.state("user", "has the key", SECRET)
        session.memory.assemble(f"What of {SECRET}?", tokens=900)
        for format in ("jsonl", "parquet", "sqlite", "markdown", "chat"):
            out = tmp_path / f"out-{format}"
            store.export(out, ["trip"], format=format)
            files = [out] if out.is_file() else [file for file in out.rglob("*") if file.is_file()]
            assert files and not [file for file in files if SECRET.encode() in file.read_bytes()], format


def test_a_fork_has_it_and_goes_its_own_way() -> None:
    """A fork begins with all of it, and what it is given does not come to its parent."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 1))
    session = recorded(store)
    loser = remembered(session)
    child = session.fork("child")
    before = memory_of(store, "trip", loser)
    assert memory_of(store, "child", loser)[0] == before[0]
    child.memory.tags.collapse("trains", "none")
    child.memory.tags.give(loser, "ferries")
    assert memory_of(store, "trip", loser) == before
    assert "ferries" in {tag.tag for tag in child.memory.tags.all()}


def test_the_past_stays_as_it_was_known() -> None:
    """As of a position tags, depths, facts and segments are those of then, whatever was said since."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 1))
    session = recorded(store)
    loser = remembered(session)
    then = session.info().position
    before = memory_of(store, "trip", loser, position=then)
    session.memory.tags.give(loser, remove=["trains"])
    session.memory.tags.alias("rail", None)
    session.memory.facts.state("user", "lives in", "Rome", attribute="home")
    assert memory_of(store, "trip", loser, position=then) == before
    assert memory_of(store, "trip", loser)[:2] != before[:2]


def test_rewind_restores_tags_names_and_depths() -> None:
    """Set back to a moment a live session has the tags, aliases and depths of then."""
    store = vmstore.memory_store(clock=ManualClock(NOW, 1))
    session = live(store)
    loser = remembered(session)
    then = session.info().position
    before = {(tag.tag, tag.canonical, tuple(tag.aliases), tag.pages, tag.depth) for tag in session.memory.tags.all()}
    session.memory.tags.collapse("trains", "none")
    session.memory.tags.alias("rail", None)
    session.memory.tags.give(loser, "ferries", remove=["trains"])
    session.rewind(Position(then))
    after = {(tag.tag, tag.canonical, tuple(tag.aliases), tag.pages, tag.depth) for tag in session.memory.tags.all()}
    assert after == before and store.verify().ok


def test_an_erased_user_leaves_nothing_that_was_remembered(tmp_path: Path) -> None:
    """After a user is erased neither tags nor questions, facts or chosen prompts of the user are in any file."""
    with vmstore.open(tmp_path / "a.vms", clock=ManualClock(NOW, 1)) as store:
        session = store.live_session("trip", l0_tokens_max=8_000, user="ada")
        session.user("The zymurgist brews at Quillfeather.")
        session.pack()
        session.assistant("Noted.")
        session.memory.tags.give(
            "p4" if "p4" in {page.page for page in session.pages()} else session.pages()[0].page, "xylotomy"
        )
        session.memory.facts.state("user", "brews at", "Quillfeather")
        session.memory.assemble("Where does the zymurgist brew, and what of vexillology?", tokens=900)
        erase(store, user="ada")
    text = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()).lower()
    assert not [word for word in (b"xylotomy", b"quillfeather", b"zymurgist", b"vexillology") if word in text]


def test_who_may_only_read_a_region_has_it_and_logs_nothing(tmp_path: Path) -> None:
    """A reader of a shared region asks for all of it and gets prompts, and no question of the reader is written."""
    path = tmp_path / "a.vms"
    clock = ManualClock(NOW, 1)
    with vmstore.open(path, namespace="team-b", clock=clock) as keeper:
        loser = remembered(recorded(keeper))
        share(keeper, "team-a")
        before, end = memory_of(keeper, "trip", loser), keeper.session("trip").info().position
        with vmstore.open(path, namespace="team-a", clock=clock) as home:
            home.record("own", {"model": "m", "messages": [{"role": "user", "content": "Hello."}]})
            region = home.sharing.region("team-b")
            assert memory_of(region, "trip", loser) == before
            assert lost(region.session("trip").memory.assemble(QUESTION, tokens=900)).losers
        assert keeper.session("trip").info().position == end
