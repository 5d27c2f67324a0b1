"""What specs/kernel.md says in tables is what the code does."""

from __future__ import annotations

import re

import msgspec

from tests.prose import CHECKOUT, quoted, section, tables
from vmstore.core.decision import Denial
from vmstore.core.text.token_estimate import FACTOR_STEP_PPM
from vmstore.live.messages import FACTOR_MAX_PPM, FACTOR_MIN_PPM
from vmstore.vm.kernel.settings import KernelSettings

TEXT = (CHECKOUT / "specs" / "kernel.md").read_text()


def settings(text: str) -> list[str]:
    """What the table of settings gets wrong."""
    texts = {quoted(row[0])[0]: row[1].strip("`") for row in tables(section(text, "Settings"))[0]}
    right = {name: repr(value) for name, value in msgspec.structs.asdict(KernelSettings()).items()}
    return sorted(f"{name}: {texts.get(name)} is not {right.get(name)}" for name, _ in texts.items() ^ right.items())


def denials(text: str) -> list[str]:
    """Which denials the table of faults lacks or makes up."""
    words = {word for row in tables(section(text, "Faults"))[0] for word in quoted(row[0])}
    return sorted(words ^ {item.word for item in Denial})


def test_the_settings_are_the_codes() -> None:
    """Every setting stands in the table with its default, and no other."""
    assert settings(TEXT) == []
    assert settings(TEXT.replace("| 8192 |", "| 8191 |")) != []
    assert settings(TEXT.replace("| `compress` |", "| `squeeze` |")) != []


def test_the_denials_are_the_codes() -> None:
    """Every reason for a denial stands in the table."""
    assert denials(TEXT) == []
    assert denials(TEXT.replace("| `no_room` |", "| `no_space` |")) == ["no_room", "no_space"]


def test_the_factor_is_bounded_as_told() -> None:
    """The bounds of the factor, and the step from which it is logged, are those of the text."""
    hits = re.search(r"stays between ([\d.]+) and (\d+)", TEXT)
    assert hits is not None
    assert (float(hits[1]), float(hits[2])) == (FACTOR_MIN_PPM / 1e6, FACTOR_MAX_PPM / 1e6)
    assert f"moved by {FACTOR_STEP_PPM // 10_000} %" in TEXT
