"""What of a text answers a question: its sentences, each told once."""

from __future__ import annotations

from vmstore.core.text.stems import terms
from vmstore.vm.assembly.evidence import AnswerSentences, shorter

PADDING = "Keep it simple and write one line for each request, in plain text, rotated weekly, and look at it seldom. "
LONG = "The pump hums at night. We chose a brass valve for the pump, since steel rusts. " + PADDING * 2


def answers(question: str, *texts: str) -> AnswerSentences:
    """The sentences that answer a question, of some texts."""
    return AnswerSentences(terms(question), texts)


def test_a_long_text_is_told_by_the_sentences_that_answer() -> None:
    """The sentence with the question's rare words stands, `…` for the rest; a short text stands as it is."""
    sentences = answers("which valve for the pump", LONG, "The pump hums.", "No water.")
    assert sentences.of(LONG, 20) == "… We chose a brass valve for the pump, since steel rusts. …"
    assert sentences.of("No water.", 20) == "No water."


def test_a_sentence_is_told_once() -> None:
    """What was told already is not told again, as a whole text or as a sentence of a longer one."""
    sentences = answers("valve", LONG, LONG + "And so on.", "A valve leaks.")
    assert sentences.of("A valve leaks.", 40) == "A valve leaks." and sentences.of("A valve leaks.", 40) == ""
    assert "brass valve" in sentences.of(LONG, 20) and "brass valve" not in sentences.of(LONG + "And so on.", 20)


def test_what_every_text_says_answers_less() -> None:
    """A phrase that each answer ends with does not take the room of the one sentence that answers."""
    texts = [f"Bed {at} is dry and its valve sticks a little today. {PADDING}{PADDING}" for at in range(6)]
    sentences = answers("which request has a valve that sticks", *texts)
    assert [sentences.of(text, 16) for text in texts][3] == "Bed 3 is dry and its valve sticks a little today. …"


def test_fewer_tokens_keep_whole_sentences() -> None:
    """What was picked is made shorter by its sentences, and one too long is cut in its middle."""
    assert shorter("One two. Three four five six seven.", 3) == "One two."
    assert len(shorter("word " * 100, 10)) <= 40
