"""The command that has others run in the background, with a systemctl of the test's own that says what it is asked."""

from __future__ import annotations

import configparser
import os
import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shell.conftest import Run
from vmstore.shell.background.unit import Launchd, Systemd, Unit

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is launchd that is asked elsewhere")
SYSTEMCTL = '#!/bin/sh\necho "$@" >> "$ASKED"\n[ -n "$FAILS" ] && { echo "no bus" >&2; exit 1; }\necho active\n'
WATCH = "watch agent.vms --discover"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says what systemctl was asked; units lie in a folder of the test's own."""
    script = tmp_path / "bin" / "systemctl"
    script.parent.mkdir()
    script.write_text(SYSTEMCTL)
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.delenv("VMSTORE_KEY_FILE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "asked"


def test_a_daemon_is_installed_and_started(run: Run, asked: Path) -> None:
    """A command becomes a unit of this Python in this folder, is enabled and started, and says that it runs."""
    answer = run("daemon", "install", "--run", WATCH, "--json").json
    assert answer["state"] == "active"
    unit = configparser.RawConfigParser()
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(answer["file"])
    assert unit["Service"]["ExecStart"] == f'"{sys.executable}" "-m" "vmstore" "watch" "agent.vms" "--discover"'
    assert unit["Service"]["WorkingDirectory"] == str(asked.parent)
    assert "--user enable --now vmstore-default.service" in asked.read_text().splitlines()


@pytest.mark.parametrize("act", ["start", "stop", "restart"])
def test_a_daemon_is_told(run: Run, asked: Path, act: str) -> None:
    """Each act is asked of systemd, for the daemon that is named."""
    run("daemon", "install", "proxy", "--run", "proxy agent.vms")
    assert run("daemon", act, "proxy").code == 0
    assert f"--user {act} vmstore-proxy.service" in asked.read_text().splitlines()


def test_an_uninstalled_daemon_leaves_nothing(run: Run, asked: Path) -> None:
    """A daemon that is uninstalled is stopped, and its file is gone."""
    file = Path(run("daemon", "install", "--run", WATCH, "--json").json["file"])
    assert run("daemon", "uninstall").code == 0
    assert not file.exists()
    assert "--user disable --now vmstore-default.service" in asked.read_text().splitlines()


def test_the_daemons_are_listed(run: Run, asked: Path) -> None:
    """`status` has each daemon with how it stands."""
    run("daemon", "install", "a", "--run", WATCH)
    run("daemon", "install", "b", "--run", "debug agent.vms")
    daemons = run("daemon", "status", "--json").json["daemons"]
    assert [(row["daemon"], row["state"]) for row in daemons] == [("a", "active"), ("b", "active")]


def test_what_cannot_be_started_is_not_left(run: Run, asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that keeps nothing running refuses with what it said, and no file is left for a later login."""
    monkeypatch.setenv("FAILS", "1")
    answer = run("daemon", "install", "--run", WATCH)
    assert answer.code == 1 and "no bus" in answer.err
    assert not list((asked.parent / "config").rglob("*.service"))


def test_printing_installs_nothing(run: Run, asked: Path) -> None:
    """With `--print` the definition is shown, and nobody is asked."""
    assert "ExecStart=" in run("daemon", "install", "--run", WATCH, "--print").out
    assert not asked.exists() and not (asked.parent / "config").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("search agent.vms ferry", "watch, proxy, debug, serve, mcp"),
        ("", "watch, proxy, debug, serve, mcp"),
        ("watch agent.vms --once", "--once"),
        ("watch 'agent.vms", "quotes"),
    ],
)
def test_what_does_not_last_is_refused(run: Run, asked: Path, command: str, words: str) -> None:
    """A command that ends by itself, or is none, is refused with those that do not."""
    answer = run("daemon", "install", "--run", command)
    assert answer.code == 1 and words in answer.err
    assert not asked.exists()


def test_a_name_is_taken_once(run: Run, asked: Path) -> None:
    """A second daemon of one name is refused, and the first stays."""
    run("daemon", "install", "--run", WATCH)
    answer = run("daemon", "install", "--run", "proxy agent.vms")
    assert answer.code == 1 and "default" in answer.err
    assert "watch" in next((asked.parent / "config").rglob("*.service")).read_text()


@pytest.mark.parametrize("name", ["../etc", "a b", "", "A"])
def test_a_name_leads_nowhere_else(run: Run, asked: Path, name: str) -> None:
    """A name that could lead out of the folder, or be two words, is refused."""
    if name:
        assert run("daemon", "install", name, "--run", WATCH).code == 1
    assert not (asked.parent / "config").exists()


def test_a_daemon_nobody_made_is_refused(run: Run, asked: Path) -> None:
    """To stop what is not there is refused, with those that are."""
    run("daemon", "install", "a", "--run", WATCH)
    answer = run("daemon", "stop", "b")
    assert answer.code == 1 and "there are a" in answer.err


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd to look at the unit")
def test_systemd_takes_the_definition(tmp_path: Path) -> None:
    """systemd finds no fault in a unit whose words have spaces, quotes, percent and dollar signs."""
    words = (sys.executable, "-m", "vmstore", "watch", 'my "own" 100% $HOME.vms')
    file = tmp_path / "vmstore-odd.service"
    file.write_text(Systemd().definition(Unit("odd", words, str(tmp_path), (("VMSTORE_KEY_FILE", "/k/$1 %a"),))))
    done = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(file)], capture_output=True, text=True, check=False
    )
    assert "vmstore-odd" not in done.stderr, done.stderr


def test_launchd_reads_the_definition(tmp_path: Path) -> None:
    """A job of launchd has the words, the folder and the variables as they are."""
    words = (sys.executable, "-m", "vmstore", "watch", "my <own> & 100%.vms")
    job = plistlib.loads(Launchd().definition(Unit("odd", words, str(tmp_path), (("A", "b"),))).encode())
    assert tuple(job["ProgramArguments"]) == words
    assert (job["WorkingDirectory"], job["EnvironmentVariables"]) == (str(tmp_path), {"A": "b"})


@pytest.mark.parametrize("command", ["watch", "watch agent.vms --discver", "proxy agent.vms --prt 1", "mcp"])
def test_a_command_that_cannot_start_is_not_installed(run: Run, asked: Path, command: str) -> None:
    """What its own parser refuses is said at once, in its words, instead of failing again and again unseen."""
    done = run("daemon", "install", "--run", command)
    assert done.code == 2 and f"vmstore {command.split(maxsplit=1)[0]} --help" in done.err
    assert run("daemon", "status", "--json").json["daemons"] == [] and not asked.exists()


def test_an_option_that_ends_at_once_is_found_with_its_value(run: Run, asked: Path) -> None:
    """`--export=FILE` is refused as `--export FILE` is."""
    done = run("daemon", "install", "--run", "debug agent.vms --export=s.html")
    assert done.code == 1 and "ends by itself" in done.err
