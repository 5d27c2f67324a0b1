"""Taggers that ask somebody else: a model for tags, or an embedder for the closest of those there are.

Either is asked outside of every lock, a turn at a time. What a model answered is written with how that ended, so that
nobody asks again; where it fails, or nothing there is close, the words decide by the rule keyword@1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from vmstore.core.tags import TagMethod
from vmstore.embedders.embedder import Embedder, embedder_of, vectors_of
from vmstore.errors import EmbedderError, InputError
from vmstore.providers.text_model import TextModel
from vmstore.tags.answer import parse_tags, tags_prompt
from vmstore.tags.tagger import GENERAL, TAGS_MAX, FoundTag, TaggedTurn, TurnText, bled, tags_of, terms_of
from vmstore.vm.compressors.callback import Outcome, heard

TagModel = Callable[[str], Any] | TextModel | Embedder
"""A function from a prompt to a text, a text model, or an embedder."""
NO_TAGS = "no_tags"
CLOSE = 0.35  # the cosine from which a tag is close to a turn
NEAR_BEST = 0.85  # of the closest, how close others must be
TURN_CHARS = 2_000


class TurnMaterial(NamedTuple):
    """A turn to be tagged: what was said, the turns before it, the tags there are with their turns, the aliases."""

    text: TurnText
    before: Sequence[TaggedTurn]
    known: Mapping[str, int]
    aliases: Mapping[str, str]


class AskedTags(NamedTuple):
    """The tags that were found, and what is to be logged of how: nothing where nobody was asked."""

    found: Sequence[FoundTag]
    log: bytes | None = None


class TurnTagger:
    """Somebody who is asked for tags, within a time."""

    def __init__(self, given: TagModel, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._embedder = embedder_of(given) if hasattr(given, "embed") else None
        self._complete = getattr(given, "complete", None) or (given if callable(given) else None)
        self._name = str(getattr(given, "name", ""))[:80]
        if self._embedder is None and self._complete is None:
            raise InputError(
                f"{given!r:.60} cannot be asked for tags; give a function of a prompt, a text model or an embedder",
                code="not-a-tagger",
            )
        self._vectors: dict[str, Sequence[float]] = {}

    def ask(self, turn: TurnMaterial) -> AskedTags:
        """The tags of a turn."""
        words = tags_of(turn.text, turn.before, turn.known, turn.aliases)
        if self._embedder is not None:
            return AskedTags(self._closest(self._embedder, turn) or words)
        before = [] if bled(terms_of(turn.text), turn.before) else turn.before  # another topic: it would mislead
        outcome, text, tags = self._answered(turn, before)
        if tags == [GENERAL] and len(before) < len(turn.before):  # asked again with all that was said before
            outcome, text, tags = self._answered(turn, turn.before)
        log = {"phase": "tags", "model": self._name, "outcome": outcome, "answer": text[:4_000]}
        found = [FoundTag(tag, TagMethod.MODEL) for tag in tags if tag != GENERAL]
        return AskedTags(found or words, json.dumps(log, ensure_ascii=False).encode("utf-8", "replace"))

    def _answered(self, turn: TurnMaterial, before: Sequence[TaggedTurn]) -> tuple[str, str, list[str]]:
        """How a model answered, what, and the tags in it."""
        complete = self._complete
        assert complete is not None, "asked only where there is a model"
        prompt = tags_prompt(turn.text, before, turn.known)
        outcome, answer = heard(lambda: complete(prompt), self._timeout_s)
        if outcome is not Outcome.ANSWERED:
            return outcome.word, str(answer)[:200], []
        text = getattr(answer, "text", answer)
        if not isinstance(text, str):
            return Outcome.WRONG_TYPE.word, "", []
        tags = parse_tags(text, turn.known, turn.aliases)
        return (outcome.word if tags else NO_TAGS), text, tags

    def _closest(self, embedder: Embedder, turn: TurnMaterial) -> list[FoundTag]:
        """The closest of the tags there are; none where none is close, or the embedder fails."""
        names = [tag for tag in turn.known if tag != GENERAL]
        said = f"{turn.text.asked}\n{turn.text.answered}"[:TURN_CHARS]
        fresh = [name for name in names if name not in self._vectors]
        try:
            vectors = vectors_of(embedder, [said, *(name.replace("-", " ") for name in fresh)], self._timeout_s)
        except EmbedderError:
            return []
        self._vectors.update(zip(fresh, vectors[1:], strict=True))
        near = sorted((-_cosine(vectors[0], self._vectors[name]), name) for name in names)[:TAGS_MAX]
        least = max(CLOSE, NEAR_BEST * -near[0][0]) if near else CLOSE
        return [FoundTag(name, TagMethod.CLOSEST) for value, name in near if -value >= least]


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, other, strict=True))
    length = math.sqrt(sum(a * a for a in one)) * math.sqrt(sum(b * b for b in other))
    return product / length if length else 0.0
