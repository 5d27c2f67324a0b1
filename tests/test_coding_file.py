"""Recalls of a file find the texts of the messages they name, and what else holds the same words."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benches.parts.coding_file import coding_file

from tests import recordings

FILE = "claude-code/session.jsonl"


def written(folder: Path, *evidence: dict[str, object]) -> Path:
    """A session, and a file with a recall of it."""
    text = [
        recordings.spoken("s", n, "user", line)
        for n, line in enumerate(("The mill is red.", "Paint it.", "It is red."))
    ]
    path = folder / FILE
    path.parent.mkdir()
    path.write_text("".join(json.dumps(item) + "\n" for item in text), "utf-8")
    asked = {"id": "cb1", "file": FILE, "question": "what colour", "evidence": list(evidence)}
    (folder / "recalls.jsonl").write_text(json.dumps(asked) + "\n", "utf-8")
    return folder / "recalls.jsonl"


def test_evidence_is_the_text_of_its_message(tmp_path: Path) -> None:
    """Only the message that is named answers; a place with the same words counts where that is asked."""
    path = written(
        tmp_path, {"ordinal": 2, "quote": "is  red", "also_at": [0]}, {"ordinal": 1, "quote": "Paint", "also_at": []}
    )
    ((yardstick, (recall,)),) = coding_file(path, tmp_path)
    texts = list(yardstick.texts.texts(np.arange(yardstick.texts.count)))
    assert [[texts[row] for row in group] for group in recall.groups] == [["It is red."], ["Paint it."]]
    mill = texts.index("The mill is red.")
    assert (recall.share([mill]), recall.share([mill], same_words=True)) == (0, 0.5)
    assert recall.share(range(len(texts))) == 1


def test_evidence_in_no_text_is_an_error(tmp_path: Path) -> None:
    """A quote that its message does not hold is told with the recall and the message."""
    with pytest.raises(ValueError, match=r"cb1: no text of .* holds 'blue' of 0"):
        coding_file(written(tmp_path, {"ordinal": 0, "quote": "blue", "also_at": []}), tmp_path)
