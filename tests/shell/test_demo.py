"""The demo: every step says what it promises, computed from the store, without colour or rich as well."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.shell.conftest import ROOT, Answer, Run
from vmstore.shell.demo.demo import SHIPPED
from vmstore.views.projection import PROJECTORS

TITLES = [
    "A session goes in",
    "What the model saw at call",
    "What changed between two calls",
    "Why a decision was made, and which one it replaced",
    "What the compaction took away",
    "It left the context, not the store",
    "The views deleted and rebuilt, equal",
    "One bit tampered with, and caught",
    "The same session in 8,000 tokens, and why a page was out",
    "What its tools taught",
]
WITHOUT_RICH = "import sys; sys.modules['rich'] = None; from vmstore.shell.main import main; sys.exit(main(['demo']))"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder the demo was run in with `--keep`, its output beside it."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "vmstore", "demo", "--keep", str(folder)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stderr
    (folder / "output.txt").write_text(done.stdout)
    (folder / "errors.txt").write_text(done.stderr)
    return folder


def test_every_step_in_a_pipe(kept: Path) -> None:
    """In a pipe the demo is plain text with every step in order, and says at the end how long it took."""
    text = (kept / "output.txt").read_text()
    assert "\x1b" not in text and (kept / "errors.txt").read_text() == ""
    places = [text.index(f"{number}. {title}") for number, title in enumerate(TITLES, 1)]
    assert places == sorted(places)
    assert float(text.rstrip().splitlines()[-1].split(" seconds")[0]) > 0


def test_the_commands_shown_can_be_run(kept: Path, run: Run) -> None:
    """Each vmstore command the demo shows answers with 0 on the kept store, and says what the demo showed."""
    text = (kept / "output.txt").read_text()
    commands = [line[2:] for line in text.splitlines() if line.startswith("$ vmstore ")]
    assert len(commands) == 8
    answers: list[Answer] = [run(*command.split()[1:]) for command in commands]
    assert [answer.code for answer in answers] == [0] * 8
    diff, page = answers[2], answers[5]
    assert diff.out in text and page.out in text
    verify, learn = answers[-2:]
    assert verify.out in text and learn.out in text


def test_the_kept_store_is_sound_and_the_demo_repeats(kept: Path, run: Run) -> None:
    """The tampering happens in a copy: the kept store verifies, and the demo says of it again what the store says."""
    assert sorted(path.name for path in kept.iterdir()) == ["demo.vms", "errors.txt", "managed.vms", "output.txt"]
    before = (kept / "demo.vms" / "default" / "log.sqlite").read_bytes()
    document = run("demo", "--keep", kept, "--json").json
    assert before == (kept / "demo.vms" / "default" / "log.sqlite").read_bytes()
    assert [step["title"].startswith(title) for step, title in zip(document["steps"], TITLES, strict=True)] == [
        True
    ] * 10
    _facts_are_the_stores(kept, [step["facts"] for step in document["steps"]])


def _facts_are_the_stores(kept: Path, facts: list[dict[str, Any]]) -> None:
    """What the steps claim is what the store and the shipped file say."""
    lines = [json.loads(line) for line in SHIPPED.read_text("utf-8").splitlines()]
    imported, packed, changed, lineage, compaction, page, views, tampered, managed, taught = facts
    assert (imported["turns"], imported["calls"]) == (220, sum(line.get("role") == "assistant" for line in lines))
    with vmstore.open(kept / "managed.vms", "r") as store:
        live = store.session("planning-220-vm")
        assert isinstance(live, vmstore.Live) and live.stats().l0_peak == managed["peak"] <= managed["budget"]
        (out, *_) = store.query(f"WHY NOT {managed['page']} IN CONTEXT AT CALL {managed['call']}", session=live.name)
        assert managed["contest"] == out[-1] and out[-1]["candidates"] > 1
    with vmstore.open(kept / "demo.vms", "r") as store:
        session = store.session(imported["session"])
        assert packed["pages"] == len(session.context(call=packed["call"]).pages) > 500
        assert packed["fidelity"] == "derived" and changed["changes"] > 0
        after = {page.page for page in session.context(call=packed["call"] + 1).pages}
        assert compaction["summary"] in after and page["page"] not in after
        assert compaction["left"] > 500 and compaction["decisions"] > 10 and lineage["sources"] > 5
        content = session.content(page["page"])
    assert [line["content"] for line in lines if line["vm"].get("id") == page["hint"]] == [content.decode()]
    assert page["bytes"] == len(content) and page["needed_at_call"] > packed["call"]
    assert views == {"views": len(PROJECTORS), "equal": True}
    assert taught["calls"] > 200 and taught["skills"] > 3
    assert tampered["ok"] is True and [f"cell {tampered['cell']} " in where for where in tampered["problems"]] == [True]


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `--keep` the demo leaves no file in the temporary folder, and works without rich."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_RICH], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert done.returncode == 0 and "8. One bit tampered" in done.stdout, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_it_prints_what_its_commands_print(kept: Path, run: Run) -> None:
    """Under each command that asks stands exactly what it prints when a reader runs it."""
    text = (kept / "output.txt").read_text()
    steps = re.findall(r"^\$ vmstore ((?:context|diff|sources|page) .*)\n\n((?:.*\n)*?)(?=\n\d\. )", text, re.MULTILINE)
    assert len(steps) == 5
    for command, shown in steps:
        assert run(*shlex.split(command)).out.strip() == shown.strip()
