"""A command that runs in the background, and the two programs that can keep it running."""

from __future__ import annotations

import os
import plistlib
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from vmstore.errors import InputError, StoreError

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
RESTART_S = 5
WAIT_S = 60
ACTIVE = "active"


class Unit(NamedTuple):
    """A command by a name: its words, and the folder that its paths are of."""

    name: str
    words: tuple[str, ...]
    folder: str
    variables: tuple[tuple[str, str], ...] = ()


class Supervisor(Protocol):
    """A program of the machine that keeps commands running, also after the next login."""

    def file(self, name: str) -> Path:
        """Where the definition of a unit is."""
        ...

    def definition(self, unit: Unit) -> str:
        """The definition of a unit, as its file has it."""
        ...

    def acts(self, act: str, name: str) -> Sequence[Sequence[str]]:
        """The commands that start or stop a unit, or forget it, in their order."""
        ...

    def state(self, name: str) -> str:
        """Whether a unit runs, in the words of the machine; `active` where it does."""
        ...

    def names(self) -> list[str]:
        """The units that are defined."""
        ...


class Systemd:
    """systemd of the user: Linux."""

    def __init__(self) -> None:
        base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        self._folder = Path(base) / "systemd" / "user"

    def file(self, name: str) -> Path:
        """Where the definition of a unit is."""
        return self._folder / f"vmstore-{name}.service"

    def definition(self, unit: Unit) -> str:
        """A unit that is started with the user's first login, and again where it fails."""
        lines = [
            "[Unit]",
            f"Description=vmstore {unit.name}",
            "",
            "[Service]",
            f"WorkingDirectory={unit.folder.replace('%', '%%')}",
            f"ExecStart={' '.join(_quoted(word).replace('$', '$$') for word in unit.words)}",
            *(f"Environment={_quoted(f'{name}={value}')}" for name, value in unit.variables),
            "Restart=on-failure",
            f"RestartSec={RESTART_S}",
            "KillSignal=SIGINT",
            "SuccessExitStatus=130",
            "",
            "[Install]",
            "WantedBy=default.target",
        ]
        return "\n".join(lines) + "\n"

    def acts(self, act: str, name: str) -> Sequence[Sequence[str]]:
        """The commands of systemctl."""
        unit = f"vmstore-{name}.service"
        words = {
            "install": [["daemon-reload"], ["enable", "--now", unit]],
            "start": [["start", unit]],
            "stop": [["stop", unit]],
            "restart": [["restart", unit]],
            "uninstall": [["disable", "--now", unit]],
            "forget": [["daemon-reload"]],
        }[act]
        return [["systemctl", "--user", *word] for word in words]

    def state(self, name: str) -> str:
        """As `systemctl is-active` says it."""
        return said(["systemctl", "--user", "is-active", f"vmstore-{name}.service"]) or "unknown"

    def names(self) -> list[str]:
        """The units that are defined."""
        files = sorted(self._folder.glob("vmstore-*.service"))
        return [file.stem.removeprefix("vmstore-") for file in files]


class Launchd:
    """launchd of the user: macOS."""

    def __init__(self) -> None:
        self._folder = Path.home() / "Library" / "LaunchAgents"
        self._domain = f"gui/{os.getuid()}"

    def file(self, name: str) -> Path:
        """Where the definition of a unit is."""
        return self._folder / f"{_label(name)}.plist"

    def definition(self, unit: Unit) -> str:
        """A job that is started with the user's login, and again where it fails."""
        log = str(Path.home() / "Library" / "Logs" / f"vmstore-{unit.name}.log")
        job = {
            "Label": _label(unit.name),
            "ProgramArguments": list(unit.words),
            "WorkingDirectory": unit.folder,
            "EnvironmentVariables": dict(unit.variables),
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": RESTART_S,
            "StandardOutPath": log,
            "StandardErrorPath": log,
        }
        return plistlib.dumps(job).decode()

    def acts(self, act: str, name: str) -> Sequence[Sequence[str]]:
        """The commands of launchctl."""
        label, file = f"{self._domain}/{_label(name)}", str(self.file(name))
        begin, end = ["launchctl", "bootstrap", self._domain, file], ["launchctl", "bootout", label]
        return {
            "install": [begin],
            "start": [begin],
            "stop": [end],
            "restart": [["launchctl", "kickstart", "-k", label]],
            "uninstall": [end],
            "forget": [],
        }[act]

    def state(self, name: str) -> str:
        """As `launchctl print` says it."""
        text = said(["launchctl", "print", f"{self._domain}/{_label(name)}"])
        return ACTIVE if "state = running" in text else "inactive"

    def names(self) -> list[str]:
        """The jobs that are defined."""
        prefix = _label("")
        return [file.stem.removeprefix(prefix) for file in sorted(self._folder.glob(f"{prefix}*.plist"))]


def supervisor(platform: str) -> Supervisor:
    """The program that keeps commands running on a platform."""
    return Launchd() if platform == "darwin" else Systemd()


def named(name: str) -> str:
    """A name that a unit can have; InputError for any other."""
    if NAME.fullmatch(name) is None:
        raise InputError(f"{name!r:.80} is no name of a daemon; take letters, digits, - and _", code="not-a-name")
    return name


def run(commands: Sequence[Sequence[str]]) -> None:
    """Runs commands in their order; StoreError at the first that fails, with what it said."""
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StoreError(
                f"{command[0]} cannot be run ({error}), and it is what keeps commands running here; `--print` shows the"
                " definition for what does so on this machine",
                code="no-supervisor",
            ) from error
        if done.returncode:
            reason = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
            raise StoreError(f"`{' '.join(command)}` failed: {reason}", code="no-supervisor")


def said(command: Sequence[str]) -> str:
    """What a command says, whatever its exit code; nothing where it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def _label(name: str) -> str:
    return f"vmstore.{name}"


def _quoted(word: str) -> str:
    """A word as a unit of systemd has it: what it would fill in stays as it is."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    return f'"{plain}"'
