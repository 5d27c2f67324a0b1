"""The command that lists presets, shows one, and checks a file of settings; and what a program has of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.refusals import refused
from tests.shell.conftest import Run
from vmstore.vm.kernel.presets import PRESETS


@pytest.mark.parametrize("name", PRESETS)
def test_a_session_lives_by_each_preset(name: str) -> None:
    """A live session takes each preset, has a turn by it, and says the settings it changes."""
    with vmstore.memory_store() as store:
        live = store.live_session("talk", user="ada", **vmstore.preset(name))
        live.user("The ferry leaves at nine. We take Postgres.")
        live.pack()
        live.assistant("Noted.")
        for setting, value in PRESETS[name].items():
            assert getattr(live.settings, setting) == value
        assert live.debug.check().ok


def test_a_preset_is_changed() -> None:
    """A preset with a change has the change and the rest."""
    settings = vmstore.preset("chat", l0_tokens_max=8_000)
    assert (settings["l0_tokens_max"], settings["facts"]) == (8_000, True)


def test_a_preset_nobody_has_is_refused() -> None:
    """A name that no preset has is refused with the one that was likely meant."""
    with refused("no-preset", vmstore.InputError, "coding"):
        vmstore.preset("codding")


def test_what_is_shown_can_be_read(run: Run, tmp_path: Path) -> None:
    """A preset as the command shows it is a file of settings that is read back equal."""
    file = tmp_path / "agent.toml"
    file.write_text(run("presets", "coding").out)
    read = vmstore.read_settings(file)
    assert {name: read[name] for name in PRESETS["coding"]} == PRESETS["coding"]  # type: ignore[literal-required]
    assert run("presets", "--check", file).code == 0


def test_a_file_names_a_preset_and_changes(tmp_path: Path) -> None:
    """A file of settings may name a preset and change it, in TOML and in JSON."""
    (tmp_path / "a.toml").write_text('preset = "small"\nl0_tokens_max = 5000\n')
    (tmp_path / "a.json").write_text('{"preset": "small", "l0_tokens_max": 5000}')
    settings = vmstore.read_settings(tmp_path / "a.toml")
    assert settings == vmstore.read_settings(tmp_path / "a.json")
    assert settings["rules"] == "short" and settings["l0_tokens_max"] == 5_000


def test_every_fault_of_a_file_is_said(run: Run, tmp_path: Path) -> None:
    """A file with three faults is refused with all three, each with what may be, and exit code 1."""
    file = tmp_path / "agent.toml"
    file.write_text('preset = "codding"\nl0_tokens_maxx = 8000\nrules = "loose"\nfacts = true\n')
    answer = run("presets", "--check", file)
    assert answer.code == 1
    for word in ("coding", "l0_tokens_max", "strict"):
        assert word in answer.err
    assert len(run("presets", "--check", file, "--json").json["faults"]) == 3


def test_settings_that_do_not_go_together_are_said(run: Run, tmp_path: Path) -> None:
    """Settings that are each allowed and not together are a fault of the file."""
    file = tmp_path / "agent.toml"
    file.write_text("l0_tokens_max = 1000\nreserve_faults_tokens = 2000\n")
    assert "reserve_faults_tokens" in run("presets", "--check", file).err


@pytest.mark.parametrize("content", [b"l0_tokens_max: 8000", b"\xff\xfe", b"[[["])
def test_a_file_that_is_no_settings_is_refused(run: Run, tmp_path: Path, content: bytes) -> None:
    """A file that is no TOML is refused with its name and how a setting is written."""
    file = tmp_path / "agent.toml"
    file.write_bytes(content)
    answer = run("presets", "--check", file)
    assert answer.code == 1 and "agent.toml" in answer.err and "l0_tokens_max = 8000" in answer.err


def test_the_list_is_json_too(run: Run) -> None:
    """`--json` has each preset with what it changes."""
    presets = run("presets", "--json").json["presets"]
    assert {row["preset"]: row["settings"] for row in presets} == PRESETS
