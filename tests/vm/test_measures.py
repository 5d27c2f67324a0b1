"""What the specs say of the numbers of a session's memory is what the code has."""

from __future__ import annotations

import re

import pytest

from tests.prose import CHECKOUT, quoted, section, tables
from vmstore.core.metric import Metric
from vmstore.vm.kernel.state import State
from vmstore.vm.metrics.metrics import Metrics
from vmstore.vm.metrics.report import BANDS, Band, Measures, judged, numbers

PAGE = (CHECKOUT / "specs" / "replay.md").read_text()


def faults(text: str) -> list[str]:
    """What a page gets wrong about the numbers, their targets and the bands of reasons."""
    value, targets, reasons = tables(section(text, "The numbers"))
    names = [name for row in value for name in quoted(row[0])]
    wrong = [f"number {name}" for name in sorted({*names} ^ {*Measures.__struct_fields__})]
    judges = list(judged(Metrics().measures(State(lambda position, ref: b""))).targets)
    wrong += [] if [quoted(row[0])[0] for row in targets] == judges else ["targets"]
    bands = {quoted(row[0])[0]: [int(part) for part in re.findall(r"\d+", row[1] + row[2])] for row in reasons}
    return wrong + ([] if bands == {reason.word: _percents(band) for reason, band in BANDS.items()} else ["bands"])


def _percents(band: Band) -> list[int]:
    """The bounds of a band that say something."""
    above = band.above if band.above < 1 else 0.0
    return [round(part * 100) for part in (band.low, band.high, band.below, above) if part]


def test_the_page_has_every_number() -> None:
    """Every number, target and band stands in replay.md as the code has it."""
    assert faults(PAGE) == []


@pytest.mark.parametrize(
    ("right", "mistake"),
    [("| `l0_peak` |", "| `l0_most` |"), ("| `hit_rate` | over", "| `hits` | over"), ("under 20 %", "under 30 %")],
)
def test_a_planted_mistake_is_found(right: str, mistake: str) -> None:
    """A page with one mistake in a table does not pass."""
    assert right in PAGE and faults(PAGE.replace(right, mistake, 1)) != []


def test_every_number_has_its_name() -> None:
    """What is told one by one are the metrics there are, in their order, each once."""
    metrics = [number.metric for number in numbers(Metrics().measures(State(lambda position, ref: b"")))]
    assert metrics == [metric.word for metric in Metric]
