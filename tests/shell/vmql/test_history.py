"""What is typed in the shell is kept for its user alone, so long and no longer, or not at all, and erasing names it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.engine.stories import answer, chat
from vmstore.shell.main import main
from vmstore.shell.vmql import history as kept
from vmstore.shell.vmql.main import _settings
from vmstore.shell.vmql.options import read


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of a user who has asked nothing yet."""
    for variable, name in (("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state")):
        monkeypatch.setenv(variable, str(tmp_path / name))
    return tmp_path


def asked(count: int, **fields: Any) -> list[str]:
    """What a shell remembers once so many questions were asked in one before it."""
    pytest.importorskip("prompt_toolkit")
    before = kept.history(print, **fields)
    for number in range(count):
        before.store_string(f"PAGES WHERE text LIKE 'secret {number}'")
    return list(kept.history(print, **fields).load_history_strings())


def test_a_history_is_bounded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A history that grew long loses its older half as a shell begins, whole questions at a time."""
    monkeypatch.setattr(kept, "BYTES_MAX", 4_000)
    left = asked(500)
    assert 10 < len(left) < 500 and left[0] == "PAGES WHERE text LIKE 'secret 499'"
    assert all(text.startswith("PAGES WHERE text LIKE 'secret ") for text in left)
    assert kept.history_file().stat().st_size <= 4_000 and asked(0)[0] == left[0]


@pytest.mark.parametrize("option", ["--no-history", "--read-only"])
def test_a_history_can_be_left_out(home: Path, option: str) -> None:
    """With the option, or where nothing at all is to be written, no question is kept and none of before is read."""
    assert asked(2)
    size = kept.history_file().stat().st_size
    keeps = _settings(read([option, "agent.vms"]), one_shot=False).history
    assert not keeps and asked(2, keeps=keeps) == [] and kept.history_file().stat().st_size == size
    assert _settings(read(["agent.vms"]), one_shot=False).history


def test_erasing_names_what_was_typed(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Who erases is told of the history where there is one, and of kept statements where there are any."""
    path = tmp_path / "a.vms"
    with vmstore.open(path) as store:
        store.record("s", chat("secret 7"), answer("yes"))
        store.record("t", chat("secret 8"), answer("yes"))
    assert main(["erase", str(path), "--session", "t", "--yes"]) == 0
    assert "vmql_history" not in capsys.readouterr().out
    asked(1)
    (home / "config" / "vmstore" / "favourites").mkdir(parents=True)
    assert main(["erase", str(path), "--session", "s", "--yes"]) == 0
    output = capsys.readouterr().out
    assert str(kept.history_file()) in output and "favourites holds what you typed" in output
