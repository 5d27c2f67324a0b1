"""The command for segments."""

from __future__ import annotations

import json
from pathlib import Path

import vmstore
from tests.shell.conftest import Run


def test_segments_are_listed(run: Run, store_path: Path) -> None:
    """Each segment is told with its turns and what sums it up, as Python tells it; after one come those behind it."""
    with vmstore.open(store_path) as store:
        live = store.live_session("s", l0_tokens_max=4_000)
        for topic in ("the archive", "the harbour"):
            live.user(f"Tell me of {topic}. " * 20)
            live.assistant(f"About {topic} there is much to say. " * 20)
            live.segment(topic)
        value = store.session("s").memory.segments.all()
    listed = json.loads(run("segments", store_path, "s", "--json").out)["segments"]
    assert [row["number"] for row in listed] == [segment.number for segment in value]
    assert {row["title"] for row in listed} >= {"the archive", "the harbour"}
    (behind,) = json.loads(run("segments", store_path, "s", "--after", "1", "--json").out)["segments"][:1]
    assert behind["title"] == "the harbour"
    assert "the harbour" in run("segments", store_path, "s").out
