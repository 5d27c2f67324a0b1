"""What the tests of recorded sessions run on: the recordings where they are, stand-ins where they are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import recordings
from tests.conftest import DATA, STAND_INS
from vmstore.capture.importers.formats import read

FOLDERS = {  # and the format that each is read as
    "claude-code": "claude-code",
    "letta-af": "letta",
    "locomo": "locomo",
    "pi": "pi",
    "swe-agent": "swe-agent",
    "tau-bench": "tau-bench",
}


def test_recordings_are_used_where_they_are(data: Path) -> None:
    """With the folder of recordings beside the checkout every test runs on those, and without it on stand-ins."""
    if DATA.is_dir() and not os.environ.get(STAND_INS):
        assert data == DATA
    else:
        assert sorted(name for name, _ in recordings.files()) == sorted(
            path.relative_to(data).as_posix() for path in data.rglob("*.*")
        )


def test_there_is_a_stand_in_for_each_recording(data: Path, tmp_path: Path) -> None:
    """Each recording has a stand-in of its name, and nothing else has."""
    recordings.make(tmp_path)
    made, there = (
        {
            path.relative_to(folder).as_posix()
            for path in folder.rglob("*.*")
            if not path.name.startswith(("LICENSE", "NOTE"))
        }
        for folder in (tmp_path, data)
    )
    assert made == there


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_stand_in_is_of_its_format(tmp_path: Path, folder: str) -> None:
    """Each stand-in is read as the format of the recording that it stands in for."""
    recordings.make(tmp_path)
    for path in (tmp_path / folder).iterdir():
        assert read(path).format == FOLDERS[folder], path


def test_stand_ins_are_the_same_every_time() -> None:
    """What is made is drawn from seeds alone."""
    assert list(recordings.files()) == list(recordings.files())
