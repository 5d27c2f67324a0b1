"""A packed prompt is written when it is asked for, and says what it was when it was packed."""

from __future__ import annotations

from typing import Any

import vmstore
from tests.live.small import FEW, LINE
from vmstore.store.live.prompt import Prompt


def words_of(packed: Prompt) -> tuple[Any, ...]:
    """All that a packed prompt says."""
    return (
        packed.tokens,
        packed.pages,
        packed.text,
        packed.manifest,
        packed.developer_message,
        packed.messages().request,
    )


def turns(*, late: bool) -> list[tuple[Any, ...]]:
    """What the prompts of a session said whose pages come, are claimed, shortened and leave, asked at once or late."""
    with vmstore.memory_store() as store:
        session = store.live_session("s", system="You are brief.", **FEW)
        items: list[Any] = []
        for turn in range(8):
            session.user(f"Let's use harbour {turn} for the night train. " + LINE.format(turn, turn) * 20)
            packed = session.pack()
            items.append(packed if late else words_of(packed))
            session.assistant(f"Noted, {turn}.")
            session.segment(f"Harbour {turn}")
            session.page_fault(session.pages(role="user")[0].page)
        assert session.stats().evictions
        return [words_of(item) for item in items] if late else items


def test_a_prompt_says_what_it_was() -> None:
    """Prompts asked at the end, after all that happened since, say what they say when asked at once."""
    at_once = turns(late=False)
    assert turns(late=True) == at_once
    assert len({row[2] for row in at_once}) == 8
