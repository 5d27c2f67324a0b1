"""Which tests a change touches, derived from the imports of the checkout.

A change to a module of vmstore touches the tests of its room (`tests/<room>`), and every test that
imports the module, another module of the room that rests on it, or a helper that does. Nearly
every test opens a store, so nearly every test rests on nearly every module: imports are not
followed from room to room. The whole lane finds what crosses rooms; this finds most of it at once.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Iterable, Iterator, Mapping  # noqa: UP035  Python 3.8 has no others

from bootstrap import RefusedError

EVERYTHING = ("pyproject.toml", "tests/conftest.py", "tests/lanes.py", "tests/recordings.py")
IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))", re.MULTILINE
)
NAME = re.compile(r"[\w.]+")
# Rooms that are tried through the store, or through what feeds them, have their tests there.
TESTED_IN = {
    **dict.fromkeys(("namespace", "seals", "shares", "maintenance", "retention", "retraction"), "store"),
    "providers": "capture",
    "publication": "cold",
}
# Pages and tables that tests read: where such a file changes, these run.
READERS = {
    "specs": ("tests/test_specs.py", "tests/test_kernel_spec.py", "tests/test_prose.py"),
    "README.md": ("tests/test_readme.py", "tests/test_prose.py"),
    "SECURITY.md": ("tests/test_security.py", "tests/test_prose.py"),
    "grammar": ("tests/vmql",),
    "web": ("tests/debug",),
    "vmstore": ("tests/test_house.py",),
    "tools": ("tests/test_house.py",),
}


def changed_files(root: Path, reference: str) -> list[str]:
    """The files that differ from a commit, with those that git does not know yet."""
    texts: set[str] = set()
    for command in (
        ["diff", "--name-only", "-z", "--no-renames", reference, "--"],
        ["ls-files", "-z", "-o", "--exclude-standard"],
    ):
        done = subprocess.run(["git", *command], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RefusedError(f"git cannot compare with {reference!r}: {done.stderr.strip()}")
        texts.update(name for name in done.stdout.split("\0") if name)
    return sorted(texts)


def touched(root: Path, changed: Iterable[str]) -> list[str]:
    """The files and folders of tests that these changes touch, for pytest's command line."""
    changed = list(changed)
    if any(name in EVERYTHING for name in changed):
        return ["tests"]
    files = {name: (root / name).read_text() for name in python_files(root)}
    texts = reached(users_of(files), {name for name in changed if name.endswith(".py")})
    for name in changed:
        parts = PurePosixPath(name).parts
        texts.update(READERS.get(parts[0], ()))
        if len(parts) > 2 and parts[0] == "vmstore":
            texts.add(f"tests/{tests_of(parts[1])}")
        elif parts[0] == "tests" and not name.endswith(".py"):
            # Data that tests read lies beside them.
            texts.add(str(PurePosixPath(name).parent))
    return without_covered(name for name in texts if is_test(name) and (root / name).exists())


def users_of(files: Mapping[str, str]) -> dict[str, set[str]]:
    """The files that import each file."""
    modules = {module_of(name): name for name in files}
    users: dict[str, set[str]] = defaultdict(set)
    for name, text in files.items():
        for imported in imports(text, modules):
            users[modules[imported]].add(name)
    return users


def reached(users: Mapping[str, set[str]], changed: set[str]) -> set[str]:
    """The changed files, and those that import one of them, directly or by way of their own room."""
    actual_users, waiting = set(changed), list(changed)
    while waiting:
        name = waiting.pop()
        for user in users.get(name, set()) - actual_users:
            # Into the tests every way is followed; within vmstore only the ways inside one room.
            if not user.startswith("vmstore/") or room_of(user) == room_of(name):
                actual_users.add(user)
                waiting.append(user)
    return actual_users


def imports(text: str, modules: Mapping[str, str]) -> Iterator[str]:
    """The modules of the checkout that a file imports, wherever in it.

    Read line by line, not as a syntax tree: that is twenty times as fast, and a file half written is read too.
    """
    for base, several, plain in IMPORT.findall(text):
        names = [base, *(f"{base}.{name}" for name in NAME.findall(several))] if base else NAME.findall(plain)
        yield from (name for name in names if name in modules)


def python_files(root: Path) -> Iterator[str]:
    """Every Python file of vmstore, the tests, the tools and the specs."""
    for folder in ("vmstore", "tests", "tools", "specs"):
        yield from (path.relative_to(root).as_posix() for path in (root / folder).rglob("*.py"))


def module_of(name: str) -> str:
    """The name that a file is imported by; the tools lie on the path themselves."""
    path = PurePosixPath(name).with_suffix("")
    parts = path.parts[1:] if path.parts[0] == "tools" else path.parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(name: str) -> str:
    """The folder of vmstore that a file lies in; the package's own files are a room each."""
    parts = PurePosixPath(name).parts
    return parts[1] if parts[0] == "vmstore" else parts[0]


def tests_of(room: str) -> str:
    """The folder of tests where a room's are."""
    return TESTED_IN.get(room, room)


def is_test(name: str) -> bool:
    """Whether pytest collects something there."""
    path = PurePosixPath(name)
    return path.parts[0] == "tests" and (path.suffix != ".py" or path.name.startswith("test_"))


def without_covered(names: Iterable[str]) -> list[str]:
    """The names without those that lie in a folder that is named too."""
    kept: list[str] = []
    for name in sorted(set(names), key=lambda name: (len(PurePosixPath(name).parts), name)):
        if not any(PurePosixPath(name).is_relative_to(folder) for folder in kept):
            kept.append(name)
    return sorted(kept)
