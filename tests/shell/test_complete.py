"""Tab completion: what is offered where, and scripts that a shell can load."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shell.conftest import ROOT, Run, log_bytes
from vmstore.shell.commands.registry import COMMANDS


def offered(run: Run, *words: object, of: str = "vmstore") -> list[str]:
    """What is offered for the last of some words after `vmstore`."""
    done = run("_complete", len(words), of, *words)
    assert done.code == 0 and done.err == ""
    return done.out.splitlines()


def test_commands_and_options(run: Run) -> None:
    """The first word completes to commands, a dash to the command's options, an option to its values."""
    assert offered(run, "") == [*COMMANDS, "--help", "--version"]
    assert offered(run, "con") == ["context"]
    assert offered(run, "--json", "con") == ["context"]
    assert offered(run, "--namespace", "two", "con") == ["context"]
    assert offered(run, "diff", "--c") == ["--calls"]
    assert offered(run, "import", "x", "--format", "") == [
        "pi",
        "claude-code",
        "codex",
        "swe-agent",
        "tau-bench",
        "letta",
        "locomo",
        "otlp",
        "responses",
        "anthropic",
        "gemini",
        "chat-completions",
        "bundle",
    ]
    assert "lineage" in offered(run, "rebuild", "x", "--view", "l")
    assert offered(run, "sources", "x", "--kinds", "sup") == ["supersedes"]
    assert offered(run, "pages", "x", "--type", "c") == ["claim"]
    assert offered(run, "pages", "x", "--tier", "") == ["L0", "L1", "L2", "L3", "L4"]
    assert offered(run, "pages", "x", "--role", "us") == ["user"]
    assert offered(run, "pages", "x", "--modality", "i") == ["image"]
    assert offered(run, "pages", "x", "--order-by", "") == ["position", "importance", "tokens", "recency"]
    assert offered(run, "annotate", "x", "--status", "a") == ["active", "abandoned"]
    assert offered(run, "context", "x", "--call", "") == []
    assert offered(run, "completion", "") == ["bash", "zsh", "fish"]


def test_sessions_and_pages_of_the_store(run: Run, planned: Path, two: Path) -> None:
    """After the store its sessions are offered, after those the pages, by hint where they have one."""
    assert offered(run, "context", two, "s") == ["s1", "s2"]
    assert offered(run, "context", two, "--turn", "1", "s") == ["s1", "s2"]
    assert offered(run, "context", "--json", two, "s") == ["s1", "s2"]
    assert offered(run, "context", two, "s1", "") == []
    assert "p4" in offered(run, "history", two, "s1", "p")


def test_vmql_completes_too(run: Run, two: Path) -> None:
    """After `vmql` its options are offered, and after `--session` the sessions of the store, wherever that stands."""
    offers = functools.partial(offered, run, of="/usr/bin/vmql")
    assert offers(two, "--js") == ["--json", "--jsonl"]
    assert offers("--ses") == ["--session"]
    assert offers(two, "--session", "") == ["s1", "s2"]
    assert offers("--quiet", two, "-c", "PAGES", "--session", "s2") == ["s2"]
    assert offers("") == offers(two, "") == offers(two, "-c", "") == offers(two, "--turn", "") == []
    assert offers("--session", "") == offers("gone.vms", "--session", "") == offers("--nonsense", "--session", "") == []


def test_pages_of_the_only_session(run: Run, planned: Path) -> None:
    """With one session in the store its pages stand beside its name."""
    assert offered(run, "page", planned, "m") == ["m1", "m2", "m3", "m4"]
    assert offered(run, "page", planned, "pl") == ["plan"]


@pytest.mark.parametrize("words", [["context", "gone.vms", ""], ["nonsense", ""], ["context", "/etc/passwd", ""]])
def test_trouble_is_silent(run: Run, words: list[str]) -> None:
    """Where nothing can be offered the answer is empty, not an error."""
    assert offered(run, *words) == []
    assert run("_complete") == (0, "", "") and run("_complete", "x", "y") == (0, "", "")


def test_completing_never_writes(run: Run, recorded: Path) -> None:
    """Asking for candidates leaves the log as it is, and makes no store."""
    before = log_bytes(recorded)
    offered(run, "context", recorded, "")
    assert log_bytes(recorded) == before
    offered(run, "context", recorded.with_name("new.vms"), "")
    assert not recorded.with_name("new.vms").exists()


def test_bash_completes(recorded: Path, tmp_path: Path) -> None:
    """Loaded into bash, the script fills in a session of the store, after both commands."""
    program = tmp_path / "bin" / "vmstore"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m vmstore "$@"\n')
    program.chmod(0o755)
    script = f"""
source <(vmstore completion bash)
COMP_WORDS=(vmstore context {shlex.quote(str(recorded))} s); COMP_CWORD=3
_vmstore; echo "${{COMPREPLY[@]}}"; complete -p vmstore
COMP_WORDS=(vmql {shlex.quote(str(recorded))} --session s); COMP_CWORD=3
_vmstore; echo "${{COMPREPLY[@]}}"; complete -p vmql
"""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=env, timeout=60, check=False)
    registered = [f"complete -o default -F _vmstore {name}" for name in ("vmstore", "vmql")]
    assert done.stdout.splitlines() == ["s1", registered[0], "s1", registered[1]], done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_sound(run: Run, tmp_path: Path, shell: str) -> None:
    """Each script asks `vmstore _complete`, and the shell itself finds no fault in it where it is installed."""
    actual_done = run("completion", shell)
    assert actual_done.code == 0 and "vmstore _complete" in actual_done.out
    assert run("completion", shell, "--json").json == {"shell": shell, "script": actual_done.out}
    if shutil.which(shell) is not None:
        path = tmp_path / "script"
        path.write_text(actual_done.out)
        done = subprocess.run([shell, "-n", str(path)], capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


def test_options_of_trust_complete(run: Run, recorded: Path) -> None:
    """Options that take a session offer those there are, reasons and artifacts what may be said."""
    named = offered(run, "archive", recorded, "")
    assert "s1" in named
    for words in (("erase", recorded, "--session", ""), ("retract", recorded, "--in-session", "")):
        assert offered(run, *words) == named
    assert offered(run, "approve", recorded, "jsonl", "--of", "s") == [name for name in named if name.startswith("s")]
    assert offered(run, "regions", recorded, "--of", "") == []
    assert offered(run, "erase", recorded, "--reason", "m") == ["mistake"]
    assert offered(run, "approve", recorded, "jsonl", "") == ["all", "parquet", "sqlite", "html", "markdown", "chat"]
