"""`vmstore tasks`, `digest` and `artifacts`: what is worked on, packed for a prompt, and its files."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A store with a session of Ann's that has a task, a question and files that wait for approval."""
    place = tmp_path / "a.vms"
    (tmp_path / "acme.md").write_text("Acme asks for 7 percent, says ann@example.org.")
    with vmstore.open(place) as store:
        live = store.live_session("mon", user="ann", l0_tokens_max=8_000, artifacts="ask")
        live.user("Review the offers.")
        live.work.plans.create("offers", steps=["read", {"text": "choose", "after": ["read"]}])
        live.work.atoms.add("question", "Is 7 percent usual?", task="offers")
    return str(place)


def test_tasks_are_listed_by_session_user_and_status(run: Run, path: str) -> None:
    """A table and JSON of all, of a user, of a session as of a moment; where none stands so it says that."""
    done = run("tasks", path)
    assert done.code == 0 and "0 of 2" in done.out and "offers" in done.out
    (task,) = run("tasks", path, "--user", "ann", "--json").json["tasks"]
    assert (task["title"], task["session"], task["steps"]) == ("offers", "mon", 2)
    assert run("tasks", path, "mon", "--turn", "1", "--json").json["tasks"] == [task]
    assert "no task is completed" in run("tasks", path, "--status", "completed").err


def test_a_task_opens_within_its_budget(run: Run, path: str) -> None:
    """The sentence, the paragraph and all of it, line by line; over the budget, and without a task, it is refused."""
    assert run("tasks", path, "--task", "offers", "--depth", "0").out.strip() == "offers: active, 0 of 2 steps done."
    whole = run("tasks", path, "--task", "offers", "--depth", "3")
    assert "Question (p10): Is 7 percent usual?" in whole.out.splitlines() and "tokens by depth" in whole.err
    answer = run("tasks", path, "--task", "offers", "--json").json
    assert answer["text"] == answer["digest"]["paragraph"]
    over = run("tasks", path, "--task", "offers", "--depth", "3", "--budget", "10")
    assert over.code == 1 and "depth 1" in over.err
    assert run("tasks", path, "--depth", "1").code == run("tasks", path, "--task", "none").code == 1
    assert run("tasks", path, "mon", "--user", "ann").code == 1


def test_what_one_task_is_not_chosen_by_is_refused(run: Run, path: str, tmp_path: Path) -> None:
    """A status or a user beside --task, and a moment beside --brief, are refused by name."""
    for option in (("--status", "completed"), ("--user", "bob")):
        done = run("tasks", path, "--task", "offers", *option)
        assert done.code == 1 and option[0] in done.err and not done.out
    past = run("tasks", path, "--task", "offers", "--brief", str(tmp_path), "--position", "9")
    assert past.code == 1 and "moment" in past.err and not (tmp_path / "storage").exists()


def test_a_task_is_opened_as_it_stood(run: Run, path: str) -> None:
    """All of it at a moment has no question that was put later."""
    asked = ("tasks", path, "--task", "offers", "--depth", "3")
    assert "Question" in run(*asked).out
    assert "Question" not in run(*asked, "--position", "9").out


def test_a_brief_is_written_and_masked(run: Run, path: str, tmp_path: Path) -> None:
    """The command says where, and asked again that it is there."""
    asked = ("tasks", path, "--task", "offers", "--brief", str(tmp_path), "--topic", "Vendors")
    done = run(*asked)
    (brief,) = (tmp_path / "storage" / "briefs").glob("*-vendors.md")
    assert done.code == 0 and brief.name in done.out and "Is 7 percent usual?" in brief.read_text()
    assert run(*asked).code == 1


def test_files_are_taken_in_approved_and_checked(run: Run, path: str, tmp_path: Path) -> None:
    """One command each; a check says by its code that a file changed, and nothing is written where one is missing."""
    root = ("--root", str(tmp_path))
    (file,) = run("artifacts", path, "--add", "acme.md", "--task", "offers", *root, "--json").json["artifacts"]
    assert (file["path"], file["approval"]) == ("acme.md", None)
    assert run("artifacts", path, "--approve", "acme.md").code == 1
    assert "approved by Ada" in run("artifacts", path, "--approve", "acme.md", "--by", "Ada").out
    assert run("artifacts", path, "--check", *root).code == 0
    (tmp_path / "acme.md").write_text("Other.")
    changed = run("artifacts", path, "--check", *root)
    assert changed.code == 1 and "changed" in changed.out
    refused = run("artifacts", path, "--add", "acme.md", "--add", "none.md", *root)
    assert refused.code == 1 and "none.md" in refused.err
    assert [artifact["sha256"] for artifact in run("artifacts", path, "--json").json["artifacts"]] == [file["sha256"]]
    assert run("artifacts", path, "--deny", "acme.md", "--by", "Ada", "--turn", "1").code == 1


def test_a_digest_says_what_had_no_room(run: Run, path: str, tmp_path: Path) -> None:
    """The text is within the budget, and what was cut or is not approved stands on stderr and in JSON."""
    run("artifacts", path, "--add", "acme.md", "--root", str(tmp_path))
    asked = ("digest", path, "--budget", "50", "--expand", "expand://task/p7?depth=3", "--expand", "artifact://acme.md")
    done = run(*asked)
    assert done.code == 0 and "not approved: artifact://acme.md" in done.err and "left out or cut" in done.err
    answer = run(*asked, "--json").json
    assert answer["tokens"] <= 50 and answer["denied"] == ["artifact://acme.md"]
    assert run("digest", path, "--budget", "3").code == 1
