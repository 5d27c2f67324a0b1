"""A process is killed as it erases by rules, or takes in what was erased elsewhere: who comes next finishes it."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.disasters.child import start
from tests.engine.stories import answer, chat
from tests.erasure.found import found_in
from tests.erasure.test_kills import STEPS, dying
from vmstore.core.clock import ManualClock
from vmstore.erasure.certificates import beside, certificates
from vmstore.erasure.erase import erase
from vmstore.errors import ErasedError
from vmstore.retention import apply
from vmstore.store.store import Store
from vmstore.transfer import merge

START, DAY = 1_795_301_701_000_000, 86_400_000_000
OLD, PAGE, LONG = "the old violet number 4711", "the tool said violet-9", "long violet words, many of them; " * 3_000
ALL = [OLD.encode(), PAGE.encode(), LONG[:200].encode()]
NOT_YET = ("marked",)  # nothing is recorded then


def on(path: Path, day: int) -> Store:
    """A store on a day."""
    return vmstore.open(path, clock=ManualClock(START + day * DAY))


def killed(step: str, path: Path, day: int) -> None:
    """A process applies the rules of a store and dies at a step."""

    def child() -> None:
        dying(*STEPS[step])
        apply.apply(on(path, day))

    assert os.WIFSIGNALED(os.waitpid(start(child), 0)[1])


@pytest.mark.parametrize("step", STEPS)
def test_what_rules_take_is_taken_once_they_are_applied_again(tmp_path: Path, step: str) -> None:
    """Wherever a run of retention dies, the next one ends with all that is due gone, certified for what it was."""
    path = tmp_path / "a.vms"
    with on(path, 0) as store:
        store.record("old", chat(OLD), answer("Noted."))
        store.record("old", chat(OLD, "Noted.", LONG), answer("Gone."))
    with on(path, 5) as store:
        store.record("new", chat("Keep this."), answer("Kept."))
        tool = {"role": "tool", "tool_call_id": "c", "content": PAGE}
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        asked = [{"role": "user", "content": "Look."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
        store.record("new", {"model": "m", "messages": [*asked, tool]}, answer("Seen."))
        apply.keep(store, "7d")
        apply.keep(store, "1d", where="role = tool", name="tools")
        apply.apply(store)
        assert len(list(certificates(beside(path)))) == 0, "nothing is due yet"
    killed(step, path, 9)
    with on(path, 9) as store:  # which finishes what was begun
        assert store.verify().ok
        assert (found_in(tmp_path, ALL) == {}) == (step not in NOT_YET)
        again = apply.apply(store)
        assert (again.erased is None) == (step not in NOT_YET)
        assert apply.apply(store).erased is None, "nothing is due any more"
        assert found_in(tmp_path, ALL) == {} and store.verify().ok
        assert [rule.name for rule in apply.rules(store)] == ["default", "tools"]
        with pytest.raises(ErasedError):
            next(session for session in store.sessions() if session.session != "new")
            store.session(next(session.session for session in store.sessions() if session.session != "new")).content(
                "p4"
            )
        assert store.session("new").wire.request(call=1)["messages"][-1]["content"] == "Keep this."
        gone = [certificate for certificate in certificates(beside(path)) if certificate.erasures]
    assert {item.reason for item in gone} == {"retention"} and len(gone) == 1
    assert {erasure.session for erasure in gone[0].erasures} == set(uids(path))


def uids(path: Path) -> list[str]:
    """The uids of the sessions that people see."""
    with closing(vmstore.open(path, "r")) as store:
        rows: list[Any] = store.admin.views.execute("SELECT uid FROM sessions WHERE hidden = 0").fetchall()
    return [uid.hex() for (uid,) in rows]


MERGING = {"brought": (merge, "finish_brought", True), **STEPS, "marked": (merge, "mark", False)}


@pytest.mark.parametrize("step", [step for step in MERGING if step != "recorded"])
def test_a_merge_that_brought_an_erasure_is_finished(tmp_path: Path, step: str) -> None:
    """Wherever a merge dies that brought an erasure, who opens next destroys what it names, and certifies that."""
    path, other = tmp_path / "a.vms", tmp_path / "b.vms"
    with vmstore.open(path) as store:
        store.record("s", chat(OLD), answer("Noted."))
        store.record("s", chat(OLD, "Noted.", LONG), answer("Gone."))
        cells = store.admin.log.last_cell
    shutil.copytree(path, other)
    with vmstore.open(other) as store:
        erase(store, session="s")
        last = store.admin.log.ordinal

    def child() -> None:
        dying(*MERGING[step])
        merge.merge(path, other, agreed=True)

    assert os.WIFSIGNALED(os.waitpid(start(child), 0)[1])
    with vmstore.open(path) as store:
        assert store.verify().ok
        if step not in NOT_YET:
            assert store.admin.log.ordinal == last and found_in(path, ALL) == {}
    assert merge.merge(path, other, agreed=True).conflicts == 0
    assert found_in(path, ALL) == {} and not (path / "default" / "erasing").exists()
    named = {
        cell.commitment for certificate in certificates(beside(path)) for e in certificate.erasures for cell in e.cells
    }
    assert len(named) == cells
