"""The adversarial set can be answered from its turns, and its scoring knows what is missing and what is stale."""

from __future__ import annotations

import pytest
from benches.adversarial import by_words, recalled, windowed
from benches.parts.adversarial import Prompt, Turn, adversarial_set, record_turns, verdict, verdicts
from benches.parts.rivals import RIVALS

import vmstore

SET = adversarial_set()
PROMPT = Prompt(1, "stale", "Where does it run now?", (("Hetzner",), ("friday", "Fri.")), ("Fly",))


def test_all_turns_answer_every_prompt() -> None:
    """The whole of the turns holds what each prompt needs, and a prompt alone does not hold all of it."""
    assert (len(SET.turns), len(SET.prompts), SET.window_tokens) == (100, 28, 3_000)
    whole = "\n".join(f"{turn.user}\n{turn.assistant}" for turn in SET.turns)
    assert all(verdict.answered for verdict in verdicts(SET.prompts, lambda _: whole))
    assert not any(verdict.answered for verdict in verdicts(SET.prompts, lambda prompt: prompt.text))
    for prompt in SET.prompts:
        assert not prompt.stale or any(old.casefold() in whole.casefold() for old in prompt.stale), prompt


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("It runs at HETZNER since Friday.", (True, 1.0, False)),
        ("It was on Fly, and is at Hetzner since Fri. again", (True, 1.0, False)),
        ("It runs on Fly. Hetzner was asked.", (False, 0.5, True)),
        ("", (False, 0.0, False)),
    ],
)
def test_a_window_is_judged(window: str, expected: tuple[bool, float, bool]) -> None:
    """Each group needs one of its strings, in any case; what no longer holds is only wrong without the answer."""
    assert verdict(PROMPT, window) == expected


def test_windows_keep_their_budget() -> None:
    """What is recalled, found by plain score or kept in a window is a text within the budget."""
    some = SET._replace(turns=[Turn(n, f"The pump {n} hums.", "It is a pump. " * 40) for n in range(30)])
    prompt = PROMPT._replace(text="Which pump hums?")
    with vmstore.memory_store() as store:
        session = store.session("some", create=True)
        record_turns(session, some.turns)
        for window in (recalled(session, 500), by_words(session, 500)):
            assert 0 < len(window(prompt)) <= 2_000
    for rival in RIVALS.values():
        assert 0 < len(windowed(some, rival, prompt)) <= 12_000
