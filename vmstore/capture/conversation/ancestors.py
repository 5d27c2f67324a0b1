"""Snapshots of conversations and heads at the points where forks of one file left their ancestor.

A fork continues its parent's conversation, so each would read all of that again. Instead the next
fork of a session, or a fork of a fork, starts from the state in which the one before it began.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from vmstore.capture.conversation.conversation import Conversation
from vmstore.capture.conversation.load import follow
from vmstore.engine.engine import Engine
from vmstore.engine.head import GateHead

MESSAGES_MAX = 100_000  # of all conversations kept, some 1 kB each; the one used longest ago goes first


class ForkPoint(NamedTuple):
    """A fork that has just left its parent at a position, and where it stands since."""

    fork: int
    parent: int
    position: int
    stands: int
    siblings: int  # forks of its parent that are still to come
    children: int  # and of itself


class AncestorConversation(NamedTuple):
    """A conversation as it stood at a position of a session's lane, before anything was fed to it, and the head."""

    position: int
    conversation: Conversation
    head: GateHead | None


class Ancestors:
    """The conversations that forks yet to come begin from, by session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: OrderedDict[int, AncestorConversation] = OrderedDict()
        self._erased = engine.projection.last_erasure

    def conversation(self, leaving: ForkPoint) -> Conversation:
        """The conversation of a fork."""
        self._engine.follow()
        self._forget_erased()
        before = self._kept.pop(leaving.parent, None)
        if before is None or before.position > leaving.position:
            before = AncestorConversation(0, Conversation(), None)
        found = before.conversation
        stands = follow(self._engine, leaving.fork, found, before.position)
        head = self._engine.head(leaving.fork, before.head).sketch()
        if stands == head.position == leaving.stands:  # else somebody else wrote to it meanwhile
            if leaving.children:
                self._keep(leaving.fork, AncestorConversation(stands, found.copy(), head))
            if leaving.siblings:
                self._keep(leaving.parent, AncestorConversation(leaving.position, found.copy(), head))
        return found

    def _keep(self, session: int, standing: AncestorConversation) -> None:
        self._kept[session] = standing
        while sum(len(entry.conversation.messages) for entry in self._kept.values()) > MESSAGES_MAX:
            self._kept.popitem(last=False)

    def _forget_erased(self) -> None:
        """Keeps nothing that was read before an erasure: it may hold what is gone."""
        if self._engine.projection.last_erasure != self._erased:
            self._erased = self._engine.projection.last_erasure
            self._kept.clear()
