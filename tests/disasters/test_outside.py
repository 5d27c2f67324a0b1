"""What others made is handed in by every door; and the campaign that does it sees what obeyed before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import campaign
import msgspec
import pytest
from campaigns import outside
from campaigns.held import Broken
from campaigns.hostile import INPUTS

from tests import lanes
from vmstore.capture.importers.formats import jsonl
from vmstore.core.system import safe_files
from vmstore.maintenance import backup
from vmstore.namespace import folder
from vmstore.transfer import bundle_import, merge, sessions

Plant = Callable[[pytest.MonkeyPatch], object]


@pytest.fixture(scope="module")
def room() -> Iterator[outside.Room]:
    """A room in memory, which is the same after each input that harms nothing."""
    with TemporaryDirectory(dir=campaign.MEMORY if campaign.MEMORY.is_dir() else None) as at:
        yield outside.Room(Path(at) / "room")


def believed(path: Path) -> Any:
    """The list of a backup as it was read before: what it names is opened."""
    return msgspec.json.decode((path / backup.LIST).read_bytes(), type=backup._Listing)


def agreed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked."""
    for module in (backup, sessions, merge):
        monkeypatch.setattr(module, "settle", lambda *arguments: None)


def followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links are followed."""

    def overwrite(root: Path, path: Path) -> None:
        if path.exists():
            path.write_bytes(bytes(path.stat().st_size))

    monkeypatch.setattr(safe_files, "overwrite", overwrite)
    monkeypatch.setattr(folder, "check_own", lambda path: None)


def waited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is named is read."""
    monkeypatch.setattr(outside, "LIMIT_S", 3)
    monkeypatch.setattr(bundle_import, "regular", lambda path: path.open("rb"))
    monkeypatch.setattr(jsonl, "read_within", lambda path, size: path.read_bytes())


PLANTED: dict[str, tuple[Plant, str, str]] = {
    "names are believed": (
        lambda monkeypatch: monkeypatch.setattr(backup, "_listing", believed),
        "backup, also 'CANARY' as a namespace",
        "harmed",
    ),
    "an exact bundle erases": (agreed, "bundle, erased-page", "obeyed"),
    "a merge erases": (agreed, "merge, erased-session", "obeyed"),
    "a certificate erases": (agreed, "certificate, unsigned", "obeyed"),
    "a backup shares": (agreed, "backup, grants", "obeyed"),
    "links are followed": (followed, "store, a link to a letter as log.sqlite.format-0, erase", "harmed"),
    "a pipe is waited for": (waited, "bundle, a pipe with --exact", "hung"),
}


@pytest.mark.parametrize("fault", lanes.first_by_day(PLANTED))
def test_what_obeyed_before_is_seen(room: outside.Room, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """With the behaviour of before planted, the campaign ends with what is broken; without it nothing is."""
    plant, name, kind = PLANTED[fault]
    (each_input,) = [input_file for input_file in INPUTS if f"{input_file.kind}, {input_file.name}" == name]
    outside.tried(room, each_input)
    with monkeypatch.context() as planted:
        plant(planted)
        with TemporaryDirectory(dir=room.place.parent) as at:
            other = outside.Room(Path(at) / "room")
            with pytest.raises(Broken) as caught:
                outside.tried(other, each_input)
    assert caught.value.kind == kind, caught.value


def test_there_are_inputs_for_every_door() -> None:
    """Over two hundred inputs, of each kind some, no two of the same name."""
    names = [(each_input.kind, each_input.name) for each_input in INPUTS]
    assert len(set(names)) == len(names) > 200
    assert {each_input.kind for each_input in INPUTS} >= outside.NEEDED - {"refused", "taken harmlessly"}
