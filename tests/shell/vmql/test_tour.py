"""The card and the tour ask real questions, and each has an answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import vmstore
from tests.shell.vmql.conftest import Shot
from vmstore.shell.open_store import opened_to_ask
from vmstore.shell.vmql.commands import text
from vmstore.shell.vmql.output.targets import Outputs
from vmstore.shell.vmql.repl import Repl
from vmstore.shell.vmql.script import pieces
from vmstore.shell.vmql.settings import ShellSettings
from vmstore.shell.vmql.tour import STEPS, sights, steps
from vmstore.vmql.parse import parse
from vmstore.vmql.syntax.nodes import Verify

CARD = [piece.text.strip() for piece in pieces(text())]
SAID = [line[2:].strip().split("  ")[0] for line in text().splitlines() if line.startswith("--   ")]


def test_the_card_is_a_script(shot: Shot, planning: Path) -> None:
    """Every statement on the card is answered, in order, and what stands on it as a comment parses."""
    picture = shot(planning, "-f", "-", text=text())
    assert (picture.returncode, "vmql:" in picture.stderr) == (0, False), picture.stderr
    assert len(CARD) > 20 and len(SAID) == 3
    for statement in SAID:
        parse(statement)


@pytest.mark.parametrize("statement", CARD, ids=lambda statement: " ".join(statement.split())[-40:])
def test_each_example_on_the_card_says_something(planning: Path, statement: str) -> None:
    """Each statement on the card finds rows in the demo store; only VERIFY finds nothing, which is good."""
    with vmstore.open(planning, "r") as store:
        assert bool(list(store.query(statement))) != isinstance(parse(statement), Verify)


def test_the_tour_asks_ten_questions(shot: Shot, planning: Path) -> None:
    """`\\tour` asks ten statements of the open store, and each has an answer."""
    picture = shot(planning, "-c", "\\tour")
    assert picture.returncode == 0 and "vmql:" not in picture.stderr, picture.stderr
    asked = [line for line in picture.stderr.splitlines() if line.endswith(";")]
    assert len(asked) == STEPS == 10 and "claim" in picture.stdout


def test_the_tour_finds_what_is_worth_asking(planning: Path) -> None:
    """Of the demo session the tour shows the compaction, a page it took away and words that can be found."""
    desk = Repl(lambda place: opened_to_ask(place, "default"), str(planning), ShellSettings(), Outputs())
    subjects = sights(desk)
    assert (subjects.before, subjects.after, subjects.within) == (365, 366, "")
    for step in steps(subjects):
        assert list(desk.store.query(step.statement)), step
    desk.close()


@pytest.mark.parametrize("store", ["recorded", "planned"])
def test_the_tour_of_a_small_store(shot: Shot, store: str, request: pytest.FixtureRequest) -> None:
    """A store of four calls, or of a chat of five lines, has its tour too."""
    picture = shot(request.getfixturevalue(store), "-c", "\\tour")
    assert picture.returncode == 0 and "vmql:" not in picture.stderr, picture.stderr


def test_an_empty_store_has_no_tour(shot: Shot, store_path: Path) -> None:
    """Where nothing is stored the tour says what brings something."""
    vmstore.open(store_path).close()
    picture = shot(store_path, "-c", "\\tour")
    assert picture.returncode == 1 and "vmstore import" in picture.stderr


def test_the_tour_and_the_card_of_a_real_session(shot: Shot, data: Path, tmp_path: Path) -> None:
    """A recorded session of pi has its tour, and answers the card once its names are put for the demo's."""
    with vmstore.open(tmp_path / "pi.vms") as store:
        name = store.import_file(data / "pi" / "before-compaction.jsonl").sessions[0].session
        page = next(page.page for page in store.session(name).pages() if page.position >= 1526)
    picture = shot(tmp_path / "pi.vms", "-c", "\\tour")
    assert picture.returncode == 0 and "vmql:" not in picture.stderr, picture.stderr
    card = re.sub(r"claim_storage_\d\b", page, text()).replace("planning-220", name)
    card = re.sub(r"TURN (42|219)\b", "TURN 10", card)
    picture = shot(tmp_path / "pi.vms", "-f", "-", text=card)
    assert picture.returncode == 0 and picture.stdout.count(page) > 5, picture.stderr
