"""The pytest plug-in, run by pytest itself on tests that pass and tests that fail."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import vmstore
from vmstore.shell.demo.demo import SHIPPED

pytest_plugins = ["pytester"]


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the shipped session, and the session as a file beside it."""
    folder = tmp_path_factory.mktemp("shipped")
    shutil.copy(SHIPPED, folder / "run.jsonl")
    lines = SHIPPED.read_text(encoding="utf-8").splitlines(keepends=True)
    (folder / "begun.jsonl").write_text(
        "".join(lines[:120]), encoding="utf-8"
    )  # deciding all 525 calls again takes seconds
    with vmstore.open(folder / "agent.vms") as store:
        store.import_file(SHIPPED)
        store.session("planning-220").pages(limit=1)
    return folder


@pytest.fixture
def ran(pytester: pytest.Pytester, shipped: Path) -> pytest.Pytester:
    """A folder with both."""
    shutil.copytree(shipped, pytester.path, dirs_exist_ok=True)
    return pytester


def failures(pytester: pytest.Pytester, body: str) -> str:
    """What a test with a body prints when it fails, as it must."""
    pytester.makepyfile("def test_it(agent_memory):\n    memory = agent_memory('agent.vms')\n    " + body)
    outcome = pytester.runpytest_inprocess("-p", "vmstore.testing.plugin", "-q")
    outcome.assert_outcomes(failed=1)
    return outcome.stdout.str()


def test_claims_that_hold(ran: pytest.Pytester) -> None:
    """Pages by name and hint, texts, moments, files, stores and open stores: what holds passes."""
    ran.makepyfile(
        """
        import vmstore
        from vmstore.testing.assertions import assert_policy_not_worse

        def test_of_a_file(agent_memory):
            memory = agent_memory("run.jsonl")
            assert memory.assert_in_context("claim_storage_4", call=365) == "p359"
            assert memory.assert_in_context("senior engineer who\\nplans Tidemark", turn=1) == "p4"
            memory.assert_not_in_context("claim_storage_4", call=366)
            memory.assert_not_in_context("nobody ever said this")

        def test_of_a_store(agent_memory):
            memory = agent_memory("agent.vms", "planning-220")
            memory.assert_in_context("p4")
            assert_policy_not_worse(agent_memory("begun.jsonl").session, "lru", "lru", budget=2000)

        def test_of_a_new_one(agent_memory):
            memory = agent_memory(l0_tokens_max=4_000, policy="lru")
            for turn in range(10):
                memory.session.user(f"Note {turn}: " + f"fact {turn} worth keeping " * 120)
                memory.session.pack()
                memory.session.assistant("Noted.")
            memory.assert_not_in_context("fact 0 worth")
            first = memory.session.pages(role="user")[0].page
            memory.session.page_fault(first, by_model=True)
            memory.session.pack()
            assert memory.assert_recalled("fact 0 worth") == first == memory.assert_recalled(first, since_call=10)
            memory.assert_in_context("fact 0 worth")
            assert_policy_not_worse(memory.session, "default", "lru", by="hit_rate", slack=1)

        def test_of_an_open_one(agent_memory):
            store = vmstore.memory_store()
            store.record("trip", {"messages": [{"role": "user", "content": "Where is Kyoto?"}]})
            agent_memory(store).assert_in_context("Where is Kyoto?", call=1)
        """
    )
    ran.runpytest_inprocess("-p", "vmstore.testing.plugin", "-q").assert_outcomes(passed=4)


FAILING = [
    (
        "memory.assert_in_context('claim_storage_4', call=366)",
        ("claim_storage_4 (p359) is not in the context of call 366 (turn 149, derived)", "position 4136, call 366:",
         "p359 was in the prompt: calls 39 to 365"),
    ),
    (
        "memory.assert_in_context('senior engineer who plans Tidemark', call=1); memory.assert_in_context('p4123456')",
        ("no page of the context of call", "holds 'p4123456'", "no page of the session ever held it", "the nearest is"),
    ),
    (
        "memory.assert_in_context('Morning. This is the planning session', call=400)",
        ("holds 'Morning. This is the planning session'", "pages that hold it: p8 was in the prompt: calls 1 to 365"),
    ),
    (
        "memory.assert_not_in_context('senior engineer', call=3)",
        ("'senior engineer' is in the context of call 3", "in p4", "p4 was in the prompt: from call 1 on"),
    ),
    ("memory.assert_not_in_context('p4')", ("p4 is in the context of call",)),
    (
        "memory.assert_recalled('claim_storage_4')",
        ("claim_storage_4 (p359) was not recalled", "nobody asked for it", "p359 was in the prompt: calls 39 to 365"),
    ),
    ("memory.assert_recalled('no such words here')", ("no page of the session is called so, or ever held it",)),
    ("memory.assert_in_context('p4', call=9999)", ("call 9999 does not exist: the nearest is call 525",)),
    (
        "from vmstore.testing.assertions import assert_policy_not_worse\n    "
        "assert_policy_not_worse("
        "agent_memory('begun.jsonl').session, 'lru', 'lru', budget=2000, by='prefix_voided', slack=-1)",
        ("lru is worse than lru for planning-220: prefix_voided", "lru: faults"),
    ),
    (
        "from vmstore.testing.assertions import assert_policy_not_worse\n    "
        "assert_policy_not_worse(memory.session, 'lru', 'default')",
        ("give one, like",),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "says"), FAILING, ids=[body[:60] for body, _ in FAILING])
def test_a_failure_says_why(ran: pytest.Pytester, body: str, says: tuple[str, ...]) -> None:
    """A claim that does not hold fails, and says where the page was and why it was not where it should be."""
    out = failures(ran, body)
    for words in says:
        assert words in out
    assert "__tracebackhide__" not in out


def test_a_store_is_only_read(ran: pytest.Pytester) -> None:
    """A store that a test opens is never written to."""
    ran.makepyfile(
        """
        import pytest
        import vmstore

        def test_it(agent_memory):
            memory = agent_memory("agent.vms")
            with pytest.raises(vmstore.ReadOnlyError):
                memory.session.annotate("p4", importance=1.0)
        """
    )
    ran.runpytest_inprocess("-p", "vmstore.testing.plugin", "-q").assert_outcomes(passed=1)


def test_which_session_is_said(pytester: pytest.Pytester) -> None:
    """Where there are several sessions and none is named, the names are listed."""
    pytester.makepyfile(
        """
        import vmstore

        def test_it(agent_memory):
            store = vmstore.memory_store()
            for name in ("one", "two"):
                store.session(name, create=True)
            agent_memory(store)
        """
    )
    outcome = pytester.runpytest_inprocess("-p", "vmstore.testing.plugin", "-q")
    outcome.assert_outcomes(failed=1)
    assert "holds 2 sessions; name one: one, two" in outcome.stdout.str()


def test_the_plugin_costs_nothing_until_it_is_asked() -> None:
    """Loading the plug-in loads nothing of vmstore but itself: every pytest run of a machine does so."""
    code = (
        "import sys, pytest; before = set(sys.modules); import vmstore.testing.plugin; "
        "print(*sorted(name for name in set(sys.modules) - before if not name.startswith('_')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"vmstore", "vmstore.testing", "vmstore.testing.plugin"}
