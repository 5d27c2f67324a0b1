"""Briefs of tasks: Markdown for people, a bundle of what it is made of, and a sidecar that names both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vmstore
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import ErasedError, InputError, StoreError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store
from vmstore.work.artifact import digest_of


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def session(store: Store, tmp_path: Path) -> Live:
    """A session with a task: a decision with its source, an open question, a file that waits for approval."""
    live = store.live_session("s1", user="ann", l0_tokens_max=8_000, artifacts="ask")
    (value,) = live.user("Acme asks for 7 percent, says ann@example.org.")
    live.work.plans.create("offers", goals=["a vendor"], steps=["read", "choose"])
    live.work.plans.done("offers", "read")
    live.work.plans.decide("offers", "Acme it is.", sources=[value])
    live.work.atoms.add("question", "Is 7 percent usual?", task="offers")
    (tmp_path / "acme.md").write_text("Seven percent.")
    live.work.artifacts.add("acme.md", root=tmp_path, task="offers")
    return live


def test_a_brief_says_what_was_decided_and_from_which_page(session: Live, tmp_path: Path) -> None:
    """Goals, steps, decisions with their sources, open questions and files stand in the Markdown under their heads."""
    brief = session.work.digests.report("offers", tmp_path, topic="Vendors: 2026")
    assert brief.markdown.relative_to(tmp_path).as_posix() == "storage/briefs/2026-11-21-vendors-2026.md"
    text = brief.markdown.read_text()
    for line in ("# offers", "- a vendor", "- [x] read", "- [ ] choose", "- Acme it is. [1]", "## Open questions"):
        assert line in text.splitlines(), line
    assert "1. vm://default/s1/p6: Acme asks for 7 percent" in text and digest_of(b"Seven percent.") in text


def test_the_sidecar_names_both_files_and_their_pages(session: Live, tmp_path: Path) -> None:
    """The digests in it are those of the files, and each page it names can be asked for."""
    brief = session.work.digests.report("offers", tmp_path, topic="arxiv")
    sidecar = json.loads(brief.sidecar.read_text())
    assert (sidecar["kind"], sidecar["task"]) == ("research_report", "vm://default/s1/p7")
    for name in ("markdown", "bundle"):
        file = brief.sidecar.parent / sidecar[name]
        assert sidecar[f"{name}_sha256"] == digest_of(file.read_bytes())
    assert sidecar["pages"] == brief.pages and [session.page(page).page for page in brief.pages]


def test_the_bundle_has_the_words_and_only_approved_files(session: Live, tmp_path: Path) -> None:
    """Every atom and source stands in it, of a file the text once somebody approved it."""
    brief = session.work.digests.report("offers", tmp_path, topic="one")
    bundle = json.loads(brief.bundle.read_text())
    assert [atom["text"] for atom in bundle["atoms"]] == ["Acme it is.", "Is 7 percent usual?"]
    assert bundle["atoms"][0]["sources"] == [bundle["sources"][0]["page"]] and bundle["files"][0]["text"] is None
    session.work.artifacts.approve("acme.md", who="Ann")
    again = session.work.digests.report("offers", tmp_path, topic="two")
    assert json.loads(again.bundle.read_text())["files"][0]["text"] == "Seven percent."


def test_a_brief_is_masked_unless_somebody_approved(store: Store, session: Live, tmp_path: Path) -> None:
    """An address of somebody is in none of the files, and in them where exports as markdown are approved."""
    brief = session.work.digests.report("offers", tmp_path, topic="one")
    files = (brief.markdown, brief.bundle, brief.sidecar)
    assert brief.masked == {"email": 1} and not [file for file in files if "ann@example" in file.read_text()]
    vmstore.approve(store, "markdown", "s1", who="Ada")
    brief = session.work.digests.report("offers", tmp_path, topic="two")
    assert (brief.masked, brief.approved) == ({}, ["Ada"]) and "ann@example" in brief.markdown.read_text()


def test_what_cannot_be_written_leaves_nothing(store: Store, session: Live, tmp_path: Path) -> None:
    """A topic of no letters, a task there is not or that was erased, a file that is there: refused, nothing written."""
    digests = session.work.digests
    with refused("not-a-text", InputError):
        digests.report("offers", tmp_path, topic="…")
    with refused("no-plan", UnknownError):
        digests.report("none", tmp_path)
    gone = session.work.plans.create("gone").page
    store.trust.erase(page=f"s1/{gone}")
    with refused("erased", ErasedError):
        digests.report(gone, tmp_path)
    assert not (tmp_path / "storage").exists()
    folder = tmp_path / "storage" / "briefs"
    folder.mkdir(parents=True)
    (folder / "2026-11-21-x.json").write_text("mine")
    with refused("path-taken", StoreError):
        digests.report("offers", tmp_path, topic="x")
    assert [file.name for file in folder.iterdir()] == ["2026-11-21-x.json"]
    assert (folder / "2026-11-21-x.json").read_text() == "mine"
