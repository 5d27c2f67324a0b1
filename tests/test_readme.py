"""The README says what happens: its Python and its commands are run, what it names is there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.prose import CHECKOUT, WrongError, broken_links, quoted, run_page, section, tables
from vmstore.capture.importers.formats import FORMATS
from vmstore.shell.commands.registry import COMMANDS

README = CHECKOUT / "README.md"
CHANGELOG = CHECKOUT / "CHANGELOG.md"


def test_the_readme_is_what_happens(tmp_path: Path) -> None:
    """Every block of the README runs, and prints what the README shows."""
    assert run_page(README, tmp_path) >= 10


@pytest.mark.parametrize("page", [README, CHANGELOG], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link leads to a file that is there, and to a heading in it."""
    assert broken_links(page) == []


def test_each_guarantee_names_its_test() -> None:
    """Every law in the table of guarantees names files of the tests that are there."""
    table = tables(section(README.read_text(), "Guarantees"))[0]
    named = [path for row in table for path in quoted(row[2])]
    assert len(named) >= len(table) > 5
    assert [path for path in named if not (CHECKOUT / path).is_file()] == []


def test_every_command_is_named() -> None:
    """The README names every command, and no command that is not there."""
    text = section(README.read_text(), "On the command line")
    shown = set(re.findall(r"^\$ vmstore (\w+)", text, re.MULTILINE))
    listed = set(quoted(text[text.index("There are also") :])) & set(COMMANDS)
    assert shown | listed == set(COMMANDS)


def test_every_format_is_named() -> None:
    """The README names the formats that can be imported, in the order they are tried."""
    table = tables(section(README.read_text(), "Import"))[0]
    assert tuple(quoted(row[0])[0] for row in table) == FORMATS


def test_the_floors_are_the_folders() -> None:
    """The floors drawn in ARCHITECTURE.md are those that the import contract holds, and every folder of the package."""
    drawing = section((CHECKOUT / "ARCHITECTURE.md").read_text(), "Floors").split("```")[1]
    floors = [set(line.split("  ")[0].split()) for line in drawing.strip().split("\n")]
    contract = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0]
    assert floors == [set(re.findall(r"\w+", layer)) for layer in contract["layers"]]
    folders = {path.parent.name for path in (CHECKOUT / "vmstore").glob("*/__init__.py")}
    assert set().union(*floors) == folders | {"errors"}


def test_what_the_pages_name_is_there() -> None:
    """Every path that ARCHITECTURE.md and GLOSSARY.md give stands in the package."""
    for page in ("ARCHITECTURE.md", "GLOSSARY.md"):
        for path in re.findall(r"`([a-z0-9_]+/(?:[a-z0-9_]+/)*(?:[a-z0-9_]+\.py)?)`", (CHECKOUT / page).read_text()):
            assert (CHECKOUT / "vmstore" / path).exists(), f"{page} names {path}"


def test_where_things_are_added() -> None:
    """CONTRIBUTING.md names files that exist, and each table to enter something in stands in the file named."""
    text = (CHECKOUT / "CONTRIBUTING.md").read_text()
    for path in re.findall(r"`([a-z0-9_]+/(?:[a-z0-9_]+/)*(?:\w+\.\w+)?)`", text):
        assert "NAME" in path or (CHECKOUT / path).exists(), path
    entries = re.findall(r"`([A-Z]+)` in `(\S+)`", text)
    assert len(entries) == 6
    for name, path in entries:
        assert re.search(rf"^{name}\b.* = ", (CHECKOUT / path).read_text(), re.MULTILINE), f"{path} has no {name}"


def test_the_commands_to_check_exist() -> None:
    """Each command line of CONTRIBUTING.md has only options that tools/check.py takes."""
    rows = tables(section((CHECKOUT / "CONTRIBUTING.md").read_text(), "Five commands"))[0]
    commands = [quoted(row[1])[0].split() for row in rows]
    assert len(commands) == 5 and all(words[:2] == ["python3", "tools/check.py"] for words in commands)
    done = subprocess.run([sys.executable, "tools/check.py", "--help"], cwd=CHECKOUT, capture_output=True, text=True)
    taken = set(re.findall(r"--[a-z]+", done.stdout.split("\n\n")[0]))
    assert {word for words in commands for word in words if word.startswith("--")} <= taken


def test_the_readme_promises_no_package_index() -> None:
    """The README tells nobody to install vmstore from an index that does not have it."""
    assert re.search(r"pip install (?!-e)", README.read_text()) is None


@pytest.mark.parametrize(
    ("right", "mistake"),
    [
        ("[('create', 0), ('enter', 1)]", "[('create', 1), ('enter', 1)]"),
        ("906 pages", "907 pages"),
        ("tools/demo.py", "tools/tour.py"),
    ],
)
def test_a_planted_mistake_fails(right: str, mistake: str, tmp_path: Path) -> None:
    """A README with one wrong output, one wrong figure or one missing file does not pass."""
    text = README.read_text()
    assert right in text
    page = tmp_path / "README.md"
    page.write_text(text.replace(right, mistake, 1))
    with pytest.raises(WrongError):
        run_page(page, tmp_path)
