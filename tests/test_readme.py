"""The README says what happens: its Python and its commands are run, what it names is there."""

from __future__ import annotations

import re
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
    table = tables(section(README.read_text(), "What it guarantees now"))[0]
    named = [path for row in table for path in quoted(row[2])]
    assert len(named) >= len(table) > 5
    assert [path for path in named if not (CHECKOUT / path).is_file()] == []


def test_every_command_is_named() -> None:
    """The README names every command, and no command that is not there."""
    text = section(README.read_text(), "The command")
    shown = set(re.findall(r"^\$ vmstore (\w+)", text, re.MULTILINE))
    listed = set(quoted(text[text.index("There are also") :])) & set(COMMANDS)
    assert shown | listed == set(COMMANDS)


def test_every_format_is_named() -> None:
    """The README names the formats that can be imported, in the order they are tried."""
    table = tables(section(README.read_text(), "Import a session you have"))[0]
    assert tuple(quoted(row[0])[0] for row in table) == FORMATS


def test_the_floors_are_the_folders() -> None:
    """The layout in the README names every folder of the package."""
    text = section(README.read_text(), "Layout")
    folders = {path.parent.name for path in (CHECKOUT / "vmstore").glob("*/__init__.py")}
    assert set(re.findall(r"vmstore/(\w+)", text)) == folders


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
