"""Folding a session reads each frame of cells about once, however many of its cells are named, and how often."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import vmstore
from vmstore.live.runtime import Runtime
from vmstore.log import frame
from vmstore.store.live.live_session import Live

TURNS = 60


def test_a_fold_opens_few_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process that folds a session unpacks fewer frames than it has commits, not one for each cell named."""
    with vmstore.open(tmp_path / "a.vms") as store:
        session = store.live_session("s", l0_tokens_max=4_000)
        for number in range(TURNS):
            session.user(f"Question {number}: which {'word ' * number}?")
            session.assistant(f"Answer {number}: {'this ' * number}.")
    opened: Counter[str] = Counter()
    unpacked = frame.unpacked

    def counted(*arguments: Any, **more: Any) -> Any:
        opened["frames"] += 1
        return unpacked(*arguments, **more)

    monkeypatch.setattr(frame, "unpacked", counted)
    with vmstore.open(tmp_path / "a.vms", mode="r") as store:
        session = store.session("s")
        assert isinstance(session, Live)
        opened.clear()
        runtime = Runtime(store._ns.reader, session._lane())
        assert runtime.current().turn == TURNS
        assert 0 < opened["frames"] < TURNS, opened
