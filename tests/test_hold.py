"""The long campaign counts what it held, stops at a broken law and says how to repeat it; the model stays small."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import Any

import hold
import pytest

from vmstore.testing.strategies import Life

MODEL = Path(hold.ROOT) / "specs" / "model.py"


def test_a_campaign_adds_to_its_totals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What each run held is added to the sums in the file, and the last line says how far it came."""
    totals = tmp_path / "totals.json"
    for seed in ("1", "2"):
        assert hold.main(["--sessions", "2", "--seed", seed, "--totals", str(totals)]) == 0
    sums = json.loads(totals.read_text())
    assert (sums["runs"], sums["lives"], sums["failures"]) == (2, 4, 0)
    assert sums["sessions"] >= 2
    assert "2 of 2 lives held" in capsys.readouterr().out.splitlines()[-1]


def test_a_broken_law_ends_it_with_the_command_that_repeats_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first failure is shown, counted, and followed by the seed it came from."""

    def broken(seed: int, count: int) -> Counter[str]:
        assert seed < 8, "the past moved"
        return Counter(lives=count)

    monkeypatch.setattr(hold, "batch", broken)
    totals = tmp_path / "totals.json"
    wanted = 3 * hold.BATCH
    assert hold.main(["--sessions", str(wanted), "--seed", "7", "--totals", str(totals)]) == 1
    output = capsys.readouterr()
    assert output.out.splitlines()[-1].endswith(f"python tools/hold.py --sessions {hold.BATCH} --seed 8")
    assert "the past moved" in output.err
    assert json.loads(totals.read_text())["failures"] == 1


def test_a_seed_gives_the_same_lives() -> None:
    """A batch repeated with its seed holds the same lives in the same order."""
    runs: list[list[Life]] = [[], []]
    for lives in runs:

        def hold_one(life: Life, folder: Path, lives: list[Life] = lives) -> Counter[str]:
            lives.append(life)
            return Counter()

        hold.batch(5, 20, hold_one)
    assert runs[0] == runs[1]
    assert len(set(map(repr, runs[0]))) > 10


def test_the_model_stays_small_and_alone() -> None:
    """The model, and what it says of kernels, are short and know nothing of vmstore but mutations and pages."""
    decided = MODEL.with_name("decided.py").read_text()
    assert len(decided.splitlines()) <= 200
    assert decided.count("vmstore") == decided.count("\nfrom vmstore.core.") + decided.count("\nfrom vmstore.core ")
    text = MODEL.read_text()
    assert len(text.splitlines()) <= 240
    known: list[Any] = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    ours = {
        f"{node.module}.{name.name}" if isinstance(node, ast.ImportFrom) else name.name
        for node in known
        for name in node.names
        if "vmstore" in (getattr(node, "module", None) or name.name)
    }
    assert ours <= {
        "vmstore.core.mutation",
        "vmstore.core.tags.TagDepth",
        *(f"vmstore.core.page.{name}" for name in ("Level", "LinkKind", "Origin", "Standing", "Tier")),
    }
