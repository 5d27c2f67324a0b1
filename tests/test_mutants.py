"""The tool that mutates the engine: what it finds, what it lets pass, and a few mutants of ours that must not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import mutants
import pytest
from mutation.change import mutants_of

CHECKOUT = Path(__file__).resolve().parent.parent
ROOM = """
LIMIT = 3


def within(number: int) -> bool:
    return number <= LIMIT


def halves(number: int) -> int:
    count = 0
    while number > 1:
        number //= 2
        count += 1
    return count


class Scale:
    @property
    def weight(self) -> int:
        return 2 + 3


def neglected(number: int) -> bool:
    return number < 5
"""
TESTS = """
from pkg.room import Scale, halves, neglected, within


def test_within() -> None:
    assert within(3) and not within(4)


def test_halves() -> None:
    assert [halves(number) for number in (1, 2, 3, 8)] == [0, 1, 1, 3]


def test_weight() -> None:
    assert Scale().weight == 5


def test_neglected() -> None:
    neglected(1)
"""
MENDED = TESTS + "    assert neglected(4) and not neglected(5)\n"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A checkout of one room and its tests, one of which claims nothing."""
    for name, text in (("pkg/__init__.py", ""), ("pkg/room.py", ROOM), ("tests/test_room.py", TESTS)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def tried(root: Path, *text: str) -> tuple[int, dict[str, Any]]:
    """What the tool says of a checkout, and how it leaves."""
    command = [sys.executable, str(CHECKOUT / "tools" / "mutants.py"), "--json", "--goal", "100", "--root", str(root)]
    done = subprocess.run([*command, *text], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def test_what_no_test_claims_survives(planted: Path) -> None:
    """A function that is run and not looked at is named with its line; what is claimed is killed, and a claim kills."""
    texts = ("--room", "pkg/room", "--tests", "tests", "--equivalent", str(planted / "none"))
    code, fields = tried(planted, *texts)
    names = [survivor["name"].removeprefix("pkg/room.py ") for survivor in fields["survivors"]]
    assert names == ["neglected: number < 5 -> number <= 5", "neglected: 5 -> 6"]
    assert {survivor["line"] for survivor in fields["survivors"]} == {24}
    assert (code, fields["total"]["survived"]) == (1, 2)
    assert fields["total"]["killed"] >= 9 and fields["total"]["timed out"] >= 1  # `number *= 2` never ends
    (planted / "tests" / "test_room.py").write_text(MENDED)
    code, fields = tried(planted, *texts)
    assert (code, fields["survivors"], fields["killed_percent"]) == (0, [], 100)


def test_the_list_of_equivalents_is_held_to_it(planted: Path) -> None:
    """What is listed is left out of the share; one that a test kills or that is no mutant is named."""
    listed = planted / "listed.txt"
    names = ("number < 5 -> number <= 5", "5 -> 6", "5 -> 7")
    listed.write_text("".join(f"pkg/room.py neglected: {name}\n    No matter.\n" for name in names))
    texts = ("--room", "pkg/room", "--tests", "tests", "--equivalent", str(listed))
    code, fields = tried(planted, *texts)
    assert (code, fields["total"]["equivalent"], fields["killed_percent"]) == (1, 2, 100)
    assert fields["wrongly_listed"] == [
        "listed as equivalent, and there is no such mutant: pkg/room.py neglected: 5 -> 7"
    ]
    listed.write_text("pkg/room.py Scale.weight: 2 -> 3\n    Wrong.\n")
    _, fields = tried(planted, *texts, "--listed")
    (wrong,) = fields["wrongly_listed"]
    assert wrong.startswith("listed as equivalent, and killed by tests/test_room.py::test_weight: ")


def test_a_test_that_fails_by_itself_is_refused(planted: Path) -> None:
    """A failing test would kill every mutant, so nothing is tried before it is mended."""
    (planted / "tests" / "test_room.py").write_text(TESTS + "    assert not neglected(1)\n")
    command = [sys.executable, str(CHECKOUT / "tools" / "mutants.py"), "--root", str(planted), "--room", "pkg/room"]
    done = subprocess.run([*command, "--tests", "tests"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 1 and "test_neglected fails without any mutant" in done.stderr


def test_a_reason_is_asked_for(tmp_path: Path) -> None:
    """A mutant listed as equivalent without saying why is refused."""
    (tmp_path / "listed.txt").write_text("pkg/room.py f: 1 -> 2\n")
    with pytest.raises(SystemExit, match=r"gives no reason for pkg/room\.py f"):
        mutants.equivalents(tmp_path / "listed.txt")


def test_what_is_listed_is_there() -> None:
    """Each mutant that the checkout lists as equivalent is one of a room that is mutated."""
    rooms = {mutants.path_of(CHECKOUT, room) for room in mutants.ROOMS}
    names = {mutant.name for room in rooms for mutant in mutants_of(CHECKOUT, room)}
    assert sorted(set(mutants.equivalents(mutants.EQUIVALENT)) - names) == []


def test_a_few_of_ours_are_killed(tmp_path: Path) -> None:
    """A fixed dozen of the mutants of the tree and of cells is noticed by their tests, to the last one."""
    texts = ("--room", "cells/merkle", "--room", "cells/cell", "--sample", "12", "--seed", "7")
    code, fields = tried(
        CHECKOUT,
        *texts,
        "--tests",
        "tests/cells/test_merkle.py",
        "--tests",
        "tests/cells/test_cell.py",
        "--state",
        str(tmp_path),
    )
    assert (code, fields["survivors"], sum(fields["total"].values())) == (0, [], 12)


def test_the_table_names_every_room() -> None:
    """The table of what was reached has a line for each room that is mutated, in order."""
    page = (CHECKOUT / "specs" / "reliability.md").read_text().partition("\n## Mutants\n")[2].partition("\n## ")[0]
    named = [line.split("`")[1] for line in page.splitlines() if line.startswith("| `")]
    assert named == list(mutants.ROOMS)
