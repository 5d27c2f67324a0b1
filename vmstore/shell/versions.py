"""What is at work: the versions of vmstore and of what it stands on."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version

import apsw
import msgspec

import vmstore
from vmstore.shell.terminal.render import Screen


def versions() -> dict[str, str | None]:
    """Versions by name; None for what is not installed."""
    try:
        rich = version("rich")
    except PackageNotFoundError:
        rich = None
    return {
        "vmstore": vmstore.__version__,
        "python": platform.python_version(),
        "apsw": apsw.apsw_version(),
        "sqlite": apsw.sqlite_lib_version(),
        "msgspec": msgspec.__version__,
        "rich": rich,
    }


def print_versions(arguments: argparse.Namespace, screen: Screen) -> int:
    """Prints the versions on one line."""
    found = versions()
    if arguments.json:
        screen.json(found)
        return 0
    screen.show(sentence())
    return 0


def sentence() -> str:
    """The versions on one line."""
    found = versions()
    rest = ", ".join(f"{name} {told or 'not installed'}" for name, told in found.items() if name != "vmstore")
    return f"vmstore {found['vmstore']} ({rest})"
