"""Rows and files of a store are changed by hand: every door ends with an answer or an error that names the damage."""

from __future__ import annotations

import logging
import random
import shutil
from pathlib import Path

import pytest

import vmstore
from tests import lanes
from tests.disasters.edits import MESSAGES, Doors, copied, damage, out_of_order
from tests.refusals import refused
from tests.store.archives import told_at
from vmstore.core.mutation import BodyError, decode
from vmstore.errors import CorruptError
from vmstore.maintenance.archive import archive

EDITS = lanes.tries(24)


@pytest.fixture(scope="module")
def store_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with forks, a long cell, an archive, a text index and column segments, closed."""
    path = told_at(tmp_path_factory.mktemp("told") / "a.vms")
    with vmstore.open(path) as store:
        archive(store, sessions=["plan-b"])
        store.search("North")
        store.admin.column_segments()
        store.record("more", MESSAGES)
    return path


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """What is said about views rebuilt is expected here."""
    caplog.set_level(logging.CRITICAL, "vmstore")


def test_edits_end_in_findings(store_folder: Path, tmp_path: Path) -> None:
    """Whatever is written into any column or file, every door raises errors of ours alone, and many are noticed."""
    # A question alone may stumble over a value of another type in the views, where verify names it.
    noticed, foreign = 0, {}
    for seed in range(EDITS):
        store = copied(store_folder, tmp_path / "a.vms")
        done = damage(store, random.Random(seed))
        doors = Doors(store, tmp_path)
        noticed += doors.noticed
        excused = {"ask r", "ask rw", "search"} if "views-" in done and doors.noticed else set()
        if left := {door: what for door, what in doors.foreign.items() if door not in excused}:
            foreign[seed, done] = left
        shutil.rmtree(store)
        shutil.rmtree(tmp_path / "bak", ignore_errors=True)
    assert foreign == {}
    assert noticed > EDITS // 3


@pytest.mark.parametrize("seed", range(6))
def test_rows_out_of_order_are_named(store_folder: Path, tmp_path: Path, seed: int) -> None:
    """Rows of the log that changed places within a page are findings of verify, and never a traceback."""
    store = copied(store_folder, tmp_path / "a.vms")
    out_of_order(store / "default/log.sqlite", random.Random(seed))
    doors = Doors(store, tmp_path)
    assert doors.foreign == {} and doors.noticed


def test_what_is_no_body_is_an_error_of_ours() -> None:
    """Bytes that are no list of mutations are named with the remedy, for those too who look for a ValueError."""
    for body in (
        b"",
        b"\x01",
        b"\x91\x01",
        b"\x91\x92\x02",
        b"\xdd\xff\xff\xff\xff",
        b"\x91" * 100_000,
        b"\x91\x91\xc3",
    ):
        with refused("commit-damaged", BodyError) as error:
            decode(body)
        assert isinstance(error.value, CorruptError) and isinstance(error.value, ValueError)
