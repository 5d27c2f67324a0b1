"""The versions of vmstore and of its dependencies."""

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
    names = versions()
    if arguments.json:
        screen.json(names)
        return 0
    screen.show(sentence())
    return 0


def sentence() -> str:
    """The versions on one line."""
    numbers = versions()
    rest = ", ".join(f"{name} {number or 'not installed'}" for name, number in numbers.items() if name != "vmstore")
    return f"vmstore {numbers['vmstore']} ({rest})"
