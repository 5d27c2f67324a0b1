"""The turns of a session by how near they are: the last ones, those before, and what was said long ago."""

from __future__ import annotations

from typing import Unpack

from vmstore.core.asof import Moment, When, one_moment
from vmstore.store.host import SessionHost
from vmstore.store.recall import tiers
from vmstore.store.recall.cold import others
from vmstore.store.recall.tag_model import TagModel, TurnTagger
from vmstore.store.recall.tiers import ColdPage, NearTurn
from vmstore.store.recall.turns.turn_summary import TurnModel, TurnSummaries, summarize_turns
from vmstore.store.recall.turns.turn_tags import tag_turns
from vmstore.views.branch import Branch
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.reads.turn_tiers import written_at
from vmstore.vm.compressors.callback import TIMEOUT_S


class TurnMemory:
    """The turns of a session, near and far: `session.memory.turns`."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def hot(self, at: When | None = None, *, current: str = "", **moment: Unpack[Moment]) -> list[NearTurn]:
        """The last turns: five at most, 1,500 tokens, 2,000 with the `current` message; none of a session over."""
        ns = self._session._ns
        with ns.asking():
            lane, position, asked_us = self._place(at, moment)
            return tiers.hot(ns, lane, position, asked_us, len(current) // 4)

    def warm(self, query: str = "", at: When | None = None, **moment: Unpack[Moment]) -> list[NearTurn]:
        """The fifty turns before those, 15,000 tokens at most, and older ones referred to just now.

        With a query those that have a word of it come first.
        """
        ns = self._session._ns
        with ns.asking():
            lane, position, asked_us = self._place(at, moment)
            return tiers.warm(ns, lane, position, asked_us, query)

    def cold(self, query: str, *, limit: int = tiers.COLD_FOUND) -> list[ColdPage]:
        """What all sessions of the user hold of a query, this one included; each with the values of its score."""
        ns = self._session._ns
        user = self._session.info().user
        with ns.asking():
            lane, position, _ = self._place(None, {})
            moments = [(self._session.name, lane, position), *(others(ns, user, lane) if user is not None else ())]
        return tiers.cold(ns, moments, query, ns.clock.now(), limit)

    def tag(self, tagger: TagModel | None = None, *, timeout_s: float = TIMEOUT_S) -> int:
        """Tags the turns that have none: how many. A second time it finds none.

        By their words; or by a `tagger`: a function from a prompt to a text, a text model as `vmstore.OpenAIModel`,
        or an embedder, which takes the closest of the tags there are. Where it fails the words decide.
        """
        return tag_turns(self._session, None if tagger is None else TurnTagger(tagger, timeout_s))

    def summarize(self, model: TurnModel | None = None, *, timeout_s: float = TIMEOUT_S) -> TurnSummaries:
        """Says each older turn in one sentence, for cold recall; those that say who somebody is stay as they are.

        `model`, a function from a prompt to a text or a text model, is asked which are critical and for the sentences;
        what it answers is logged. Without one, and where it fails, the first sentences stand in. A second time it
        finds no turn.
        """
        return summarize_turns(self._session, model, timeout_s)

    def _place(self, at: When | None, moment: Moment) -> tuple[Branch, int, int]:
        """The session as a branch, the position, and the time it is asked at: now, or that of its last writing."""
        lane = self._session._lane()
        position = basis(lane, one_moment(at, moment)).position
        if at is None and not moment:
            return lane, position, self._session._ns.clock.now()
        return lane, position, written_at(lane, position)
