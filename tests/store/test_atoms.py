"""Atoms: pages that say one thing of the work, by kind, with the task they are a part of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import vmstore
from tests.refusals import refused
from tests.work.agents import failing, worked
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.errors import ErasedError, InputError, UnknownError
from vmstore.store.live.live_session import Live
from vmstore.store.store import Store


@pytest.fixture
def store() -> Store:
    """A store in memory whose runs are alike."""
    return vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5))


@pytest.fixture
def session(store: Store) -> Live:
    """A session of Ann's with a task."""
    live = store.live_session("s1", user="ann", l0_tokens_max=8_000, rules="short")
    live.user("Build us a login.")
    live.work.plans.create("login", steps=["design"])
    return live


def kinds(session: Live) -> list[tuple[str, str | None]]:
    """The kinds and texts of a session's atoms."""
    return [(atom.kind, atom.text) for atom in session.work.atoms.all()]


def test_each_kind_is_stated_and_asked_for(session: Live) -> None:
    """What is stated as a kind is told as that, with its task; of another kind or task it is none."""
    for kind in ("fact", "decision", "constraint", "question", "insight"):
        page = session.work.atoms.add(kind, f"A {kind}.", task="login")
        (atom,) = session.work.atoms.all(kind=kind)
        assert (atom.page, atom.text, atom.task) == (page, f"A {kind}.", session.work.plans.get("login").page)
    assert len(session.work.atoms.all(task="login")) == 5
    session.work.plans.create("other")
    assert session.work.atoms.all(task="other") == []


def test_what_is_there_already_is_an_atom_by_what_it_is(store: Store) -> None:
    """A decision that was said, a fact that was found, a warning that was logged: each of its kind, unstated."""
    live = store.live_session("s", user="ann", l0_tokens_max=8_000, facts=True)
    live.user("My name is Ann. Let's use Postgres for the orders.")
    assert ("fact", "My name is Ann.") in kinds(live)
    assert ("decision", "Decision: use Postgres for the orders") in kinds(live)
    worked(store, "r", failing(3), "ben")
    store.work.learn()
    assert [atom.kind for atom in store.session("r").work.atoms.all()] == ["insight"]


def test_a_plan_is_no_atom(session: Live) -> None:
    """A task's own page says many things; its decisions are atoms."""
    session.work.plans.decide("login", "We use JWT.")
    assert kinds(session) == [("decision", "We use JWT.")]


def test_an_answer_takes_the_place_of_its_question(session: Live) -> None:
    """What is replaced holds no more from there on, leaves the prompt, and is told as of before."""
    question = session.work.atoms.add("question", "Which vendor?", task="login")
    position = session.info().position
    answer = session.work.atoms.add("decision", "Acme is the vendor.", task="login", replaces=question)
    assert kinds(session) == [("decision", "Acme is the vendor.")]
    assert [atom.page for atom in session.work.atoms.all(position=position)] == [question]
    assert [atom.status for atom in session.work.atoms.all(ever=True)] == ["abandoned", "active"]
    request = json.dumps(session.pack().request)
    assert "Acme is the vendor." in request and "Which vendor?" not in request
    with refused("not-a-claim", InputError, question):
        session.work.atoms.add("fact", "Again.", replaces=question)
    assert (answer, "supersedes", question) in [
        (link.source, link.kind, link.target) for link in session.lineage.ancestors(answer)
    ]


def test_bad_atoms_are_refused_with_nothing_written(store: Store, session: Live) -> None:
    """A kind there is not, no text, one too long, a task or a source there is not."""
    before = session.info().position
    atoms = session.work.atoms
    with refused("no-kind", UnknownError, "constraint"):
        atoms.add("rule", "x")
    for text in ("", "x" * 1_001, 7):
        with refused("not-a-text", InputError):
            atoms.add("fact", text)  # type: ignore[arg-type]
    with refused("no-plan", UnknownError):
        atoms.add("fact", "x", task="none")
    with refused("no-page", UnknownError):
        atoms.add("fact", "x", sources=["p999"])
    assert session.info().position == before


def test_an_erased_source_takes_its_task_and_its_atom_is_gone(store: Store, session: Live) -> None:
    """Of an erased atom no text is told; of an erased task the atoms stay and the task is refused by name."""
    page = session.work.atoms.add("fact", "The rate is 7 percent.", task="login")
    store.trust.erase(page=f"s1/{page}")
    assert session.work.atoms.all() == []
    plan = session.work.plans.get("login").page
    store.trust.erase(page=f"s1/{plan}")
    with refused("erased", ErasedError):
        session.work.atoms.all(task=plan)


def test_a_recorded_session_is_told_and_given_atoms(store: Store) -> None:
    """Without a kernel an atom is stated, replaced and found alike, and what is there verifies."""
    store.record("r", {"model": "m", "messages": [{"role": "user", "content": "Read it."}]})
    session = store.session("r")
    first = session.work.atoms.add("constraint", "Never log tokens.", sources=[session.pages()[0].page])
    session.work.atoms.add("constraint", "Never log secrets.", replaces=first)
    assert [atom.text for atom in session.work.atoms.all(kind="constraint")] == ["Never log secrets."]
    assert [hit.page for hit in store.search("tokens")] and store.verify().ok


def test_forks_and_other_sessions_have_their_own(store: Store, session: Live) -> None:
    """A fork has what was stated before it, and what is stated in one is in no other."""
    session.work.atoms.add("fact", "One.")
    fork = session.fork("f")
    fork.work.atoms.add("fact", "Two.")
    assert kinds(session) == [("fact", "One.")] and kinds(fork) == [("fact", "One."), ("fact", "Two.")]
    rows = store.query("ATOMS session, text ACROSS SESSIONS").to_dicts()
    assert rows == [{"session": "f", "text": "Two."}, {"session": "s1", "text": "One."}]


def test_tasks_are_told_with_their_times_by_session_and_user(store: Store, session: Live) -> None:
    """TASKS has what a plan says, when it was begun and changed, as of a moment too; a user's are theirs alone."""
    (task,) = session.work.digests.tasks()
    assert (task.title, task.status, task.steps, task.done) == ("login", "active", 1, 0)
    position = session.info().position
    session.work.plans.done("login", "design")
    (after,) = session.work.digests.tasks()
    assert (after.done, after.progress) == (1, 1.0) and after.updated_at > after.created_at == task.created_at
    assert session.work.digests.tasks(position=position) == [task]
    session.work.plans.complete("login")
    assert session.work.digests.tasks(status="active") == [] != session.work.digests.tasks(status="completed")
    other = store.live_session("o", user="ben", l0_tokens_max=8_000)
    other.work.plans.create("theirs")
    assert [task.title for task in store.work.tasks(user="ben")] == ["theirs"]
    assert [task.title for task in store.work.tasks()] == ["theirs", "login"]
    with refused("no-status", UnknownError):
        store.work.tasks(status="planned")


def test_relations_are_the_same_after_a_rebuild(tmp_path: Path) -> None:
    """TASKS, ATOMS and ARTIFACTS are folded from the log: rebuilt views give the same rows."""
    (tmp_path / "a.txt").write_text("Text.")
    with vmstore.open(tmp_path / "a.vms") as store:
        live = store.live_session("s", user="ann", l0_tokens_max=8_000)
        live.user("Let's use Postgres.")
        live.work.plans.create("login", steps=["a", "b"])
        live.work.plans.done("login", "a")
        live.work.atoms.add("question", "Why?", task="login")
        live.work.artifacts.add("a.txt", root=tmp_path, task="login")
        asked = ("TASKS", "ATOMS", "ARTIFACTS")
        before = [store.query(f"{name} ACROSS SESSIONS").to_dicts() for name in asked]
        store.admin.rebuild()
        assert all(before) and [store.query(f"{name} ACROSS SESSIONS").to_dicts() for name in asked] == before
