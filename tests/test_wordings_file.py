"""A story in somebody else's words is told turn by turn, and its questions are read by what they say answers them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benches.memory import Watch, reads
from benches.parts.rivals import RIVALS
from benches.parts.wordings_file import CLAIMS_FROM, RIGHT, WRONG, Sought, file_tale

OLD, NEW, NEVER = "the mill runs on Fly, it was free", "the mill moves to Hetzner", "would Render suit the mill?"
TOPIC: dict[str, Any] = {
    "decided": {"turn": 1, "text": OLD, "value": ["Fly"], "reason": ["free"]},
    "reversed": {"turn": 3, "text": NEW, "value": ["Hetzner"], "reason": []},
    "never_decided": "Render",
    "questions": [
        {"kind": "current", "text": "what hosts the mill?", "answer_any": ["Hetzner"], "stale": ["Fly"]},
        {"kind": "earlier_and_why", "text": "before?", "answer_any": ["Fly"], "reason_any": ["free"], "stale": []},
    ],
}  # fmt: skip
NOW = Sought("what hosts the mill?", "current", True, ("Hetzner",), None, ("Fly",), ("Render",), ("Fly", "Hetzner"))
THEN = Sought("before?", "earlier_and_why", True, ("Fly",), ("free",), (), (), ("Fly", "Hetzner"))


def written(folder: Path) -> Path:
    """The file of a small story."""
    turns = [{"user": text, "assistant": "Noted."} for text in (OLD, NEVER, NEW, "flying is cheap")]
    (folder / "words.json").write_text(json.dumps({"topics": [TOPIC], "turns": turns}), "utf-8")
    return folder / "words.json"


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        ([(1, OLD), (3, NEW)], RIGHT),
        ([(3, NEW), (2, NEVER)], RIGHT),
        ([(4, NEVER), (3, NEW)], RIGHT),
        ([(1, OLD)], WRONG),
        ([(2, NEVER)], WRONG),
        ([(3, NEW), (4, OLD)], WRONG),
        ([(3, NEW), (0, "A (p7): Decision: mill = Fly")], WRONG),
        ([(3, NEW), (0, "A (p7): Decision: mill = Render")], WRONG),
        ([(1, OLD), (0, "A (p7): Decision: mill = Hetzner")], RIGHT),
        ([(1, "they are flying"), (2, "what hosts the mill? Hetzner?")], None),
    ],
)
def test_what_holds_is_read(lines: list[tuple[float, str]], answer: str | None) -> None:
    """The later of two statements holds, a claim before all of them; what was only thought about is no decision."""
    assert NOW.read(lines) == answer
    assert all(at < CLAIMS_FROM for at, _ in lines)


@pytest.mark.parametrize(
    ("lines", "answer"),
    [([(1, OLD)], RIGHT), ([(1, "it is on Fly")], None), ([(1, "it was free")], None), ([(3, NEW)], None)],
)
def test_what_held_is_read_with_its_reason(lines: list[tuple[float, str]], answer: str | None) -> None:
    """What held before needs its value and its reason, each in a text about the topic."""
    assert THEN.read(lines) == answer


def test_a_window_is_later_than_what_is_brought_back() -> None:
    """A message without a label stands in the window, so a passage from earlier with a label does not overrule it."""
    passage = {"role": "user", "content": f"From earlier:\n\n[1] {OLD}"}
    window = {"role": "user", "content": NEW}
    assert reads({"messages": [passage, window]}, NOW) == reads({"messages": [window, passage]}, NOW) == RIGHT


def test_every_contender_is_measured_on_the_story(tmp_path: Path) -> None:
    """With room for all of it vmstore and every window answer all questions, within the budget."""
    tale = file_tale(written(tmp_path), 1)
    assert [deed.texts[0] for deed in tale.deeds[::2]] == [OLD, NEVER, NEW, "flying is cheap"]
    scores = {name: Watch(8_000, tale).rival(rival(8_000, "Help.")) for name, rival in RIVALS.items()}
    scores["vmstore"] = Watch(8_000, tale).live()
    assert {name: (score.now, score.then, score.stale, score.over) for name, score in scores.items()} == dict.fromkeys(
        scores, (100, 100, 0, 0)
    )
