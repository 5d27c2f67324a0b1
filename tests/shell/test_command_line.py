"""The command line itself: help, usage errors, versions, exit codes, what it loads."""

from __future__ import annotations

import importlib
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shell.conftest import Process, Run
from vmstore.shell.commands.arguments import Run as CommandRun
from vmstore.shell.commands.queries import inspect
from vmstore.shell.commands.registry import COMMANDS, MODULES
from vmstore.shell.terminal import exit_codes

ROOT = Path(__file__).resolve().parents[2]

# A package without its `__init__`, so that only what the command itself imports is loaded.
BARE = """
import sys, types
package = types.ModuleType("vmstore")
package.__path__ = [sys.argv[1] + "/vmstore"]
sys.modules["vmstore"] = package
from vmstore.shell.main import main
code = main(sys.argv[2:])
heavy = ("rich", "apsw", "msgspec", "vmstore.store", "vmstore.log", "vmstore.views", "vmstore.capture")
print(code, [name for name in heavy if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command_has_examples_that_parse(run: Run, name: str) -> None:
    """Each command's help describes it and shows one to three examples, and each example is valid."""
    done = run(name, "--help")
    assert done.code == 0 and done.err == ""
    command = COMMANDS[name]
    assert command.description in done.out and "examples:" in done.out
    assert 1 <= len(command.examples) <= 3
    for example in command.examples:
        assert f"  {example}\n" in done.out
        words = shlex.split(example.partition(" > ")[0])
        assert words[:2] == ["vmstore", name]
        assert command.parser().parse_intermixed_args(words[2:]) is not None


def test_every_declared_command_is_in_the_table() -> None:
    """Each module of the table declares the commands that the table gives it, and no other."""
    for module in set(MODULES.values()):
        declared = [command.name for command in importlib.import_module(module).COMMANDS]
        assert sorted(declared) == sorted(name for name, home in MODULES.items() if home == module)


def test_overview_names_every_command(run: Run) -> None:
    """`--help` lists every command with its summary and leaves with 0; no arguments at all leave with 2."""
    done = run("--help")
    assert done.code == 0
    for command in COMMANDS.values():
        assert re.search(rf"^  {command.name} +{re.escape(command.summary)}$", done.out, re.MULTILINE)
    bare = run()
    assert bare.code == 2 and bare.out == done.out
    assert run("help", "diff").out == run("diff", "--help").out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ["why", "x"],
            "there is no command 'why'; vmql STORE -c \"WHY NOT p51 IN CONTEXT AT CALL 174 IN SESSION 'NAME'\"",
        ),
        (["context", "x", "--session", "s"], "the session's name follows the store's, vmstore context STORE NAME"),
        (["contxt", "x"], "there is no command 'contxt'; the nearest is 'context'"),
        (
            ["find", "x", "kyoto"],
            "there is no command 'find'; vmstore search STORE 'some words' finds them",
        ),
        (["--jsn", "info"], "there is no option '--jsn'"),
        (["info", "x", "--jsn"], "there is no option --jsn; the nearest is --json"),
        (["info"], "the following arguments are required: STORE"),
        (["info", "x", "y"], "unrecognized arguments: y"),
        (["context", "x", "s", "--turn", "1", "--call", "1"], "not allowed with argument"),
        (["context", "x", "s", "--call", "first"], "invalid int value: 'first'"),
        (["context", "x", "s", "--messages", "--render"], "not allowed with argument"),
        (["context", "x", "s", "--mess"], "there is no option --mess; the nearest is --messages"),
        (["diff", "x", "s"], "name two moments, like --calls 40 42, or two sessions"),
        (["fork", "x", "s", "--at-turn", "1"], "required: --as"),
        (["fork", "x", "s", "--as", "y"], "--at-turn --at-call --at-position is required"),
        (["sources", "x", "p1", "--depth", "0"], "'0' is not a number from 1 up"),
        (["page", "x", "p1", "--level", "4"], "invalid choice: 4"),
        (["completion", "tcsh"], "invalid choice: 'tcsh'"),
        (["--namespace"], "expected one argument"),
    ],
)
def test_usage_errors_leave_with_2(run: Run, words: list[str], text: str) -> None:
    """A wrong command line is answered on stderr alone, with the remedy, and leaves with 2."""
    done = run(*words)
    assert done.code == 2 and done.out == ""
    assert done.err.startswith("vmstore: ") and text in done.err
    assert "--help`" in done.err and done.err.count("\n") == 1


def test_version_names_the_libraries(run: Run) -> None:
    """`--version` names vmstore, Python, SQLite, apsw, msgspec and rich, also as JSON."""
    done = run("--version")
    assert done.code == 0 and done.out.startswith("vmstore 0.")
    document = run("--json", "--version").json
    assert list(document) == ["vmstore", "python", "apsw", "sqlite", "msgspec", "rich"]
    assert document["sqlite"] in done.out and document["apsw"].startswith(document["sqlite"])


def test_common_options_stand_on_either_side(run: Run, recorded: Path) -> None:
    """`--json` and `--namespace` mean the same before the command, after it and between its arguments."""
    after = run("context", recorded, "s1", "--call", "1", "--namespace", "default", "--json")
    before = run("--namespace", "default", "--json", "context", recorded, "s1", "--call", "1")
    between = run("context", "--json", recorded, "--call", "1", "s1")
    assert after.code == 0 and after.json["basis"]["call"] == 1
    assert before == after and between == after


@pytest.mark.parametrize("words", [["--help"], ["context", "--help"], ["nonsense"]])
def test_help_loads_neither_rich_nor_the_store(words: list[str]) -> None:
    """Help and usage errors answer without loading rich, the store or its libraries."""
    done = subprocess.run(
        [sys.executable, "-c", BARE, str(ROOT), *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stderr.splitlines()[-1] == f"{2 if words == ['nonsense'] else 0} []", done.stderr


def test_runs_as_a_module(process: Process) -> None:
    """`python -m vmstore` is the command, and hands on its exit code."""
    assert process("--version").stdout.startswith(b"vmstore 0.")
    assert process("nonsense").returncode == 2


def test_a_closed_pipe_is_no_complaint(recorded: Path) -> None:
    """A reader that closes the pipe early ends the command with 141 and without a word on stderr."""
    command = f"{shlex.quote(sys.executable)} -m vmstore tail {shlex.quote(str(recorded))}"
    script = f"for n in 1 2 3; do {command}; echo $? >&3; done | head -c 1 >/dev/null"
    done = subprocess.run(
        ["bash", "-c", f"{{ {script}; }} 3>&1"],
        capture_output=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.stderr == b"" and done.stdout.split()[-1] == b"141"


def replace_info(monkeypatch: pytest.MonkeyPatch, run: CommandRun) -> None:
    """Lets the command `info` run another function."""
    monkeypatch.setattr(inspect, "COMMANDS", [COMMANDS["info"]._replace(run=run)])


def test_ctrl_c_leaves_with_130(run: Run, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt ends any command with 130 and no traceback."""

    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    replace_info(monkeypatch, interrupted)
    assert run("info", recorded) == (exit_codes.INTERRUPTED, "", "") and exit_codes.INTERRUPTED == 128 + signal.SIGINT


def test_an_error_of_the_files_is_one_line(run: Run, recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the disk refuses is said in one line with exit code 1; our own faults keep their traceback."""

    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied", "log.sqlite")

    replace_info(monkeypatch, refused)
    done = run("info", recorded)
    assert done.code == 1 and done.out == "" and done.err.count("\n") == 1 and "Permission denied" in done.err
    replace_info(monkeypatch, lambda *_: dict[str, int]()["ours"])
    with pytest.raises(KeyError):
        run("info", recorded)


def test_a_damaged_log_is_one_line_that_names_verify(run: Run, recorded: Path) -> None:
    """A question asked of a log SQLite cannot read names the file and `vmstore verify`, without a traceback."""
    log = recorded / "default" / "log.sqlite"
    log.write_bytes(log.read_bytes()[:4096] + b"\xff" * 8192)
    done = run("sessions", recorded)
    assert done.code == 1 and done.out == "" and "vmstore verify" in done.err and "Traceback" not in done.err
