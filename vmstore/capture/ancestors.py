"""What forks of one file begin from: conversations kept as they stood where a fork left its ancestor.

A fork goes on from what its parent said, so each would read all of that again. Instead the next
fork of a session, or a fork of a fork, goes on from where the one before it began.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from vmstore.capture.conversation import Conversation
from vmstore.capture.load import follow
from vmstore.engine.gate import Engine

MESSAGES_MAX = 100_000  # of all conversations kept, some 1 kB each; the one used longest ago goes first


class Standing(NamedTuple):
    """A conversation as it stood at a position of a session's lane, before anything was fed to it."""

    position: int
    conversation: Conversation


class Ancestors:
    """The conversations that forks yet to come begin from, by session."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._kept: OrderedDict[int, Standing] = OrderedDict()
        self._erased = engine.projection.last_erasure

    def conversation(self, fork: int, parent: int, position: int, *, siblings: int, children: int) -> Conversation:
        """The conversation of a fork that has just left its parent at a position.

        So many forks of its parent, and of itself, are still to come.
        """
        self._engine.follow()
        self._forget_erased()
        before = self._kept.pop(parent, None)
        if before is None or before.position > position:
            before = Standing(0, Conversation())
        found = before.conversation
        stands = follow(self._engine, fork, found, before.position)
        if children:
            self._keep(fork, Standing(stands, found.copy()))
        if siblings:
            self._keep(parent, Standing(position, found.copy()))
        return found

    def _keep(self, session: int, standing: Standing) -> None:
        self._kept[session] = standing
        while sum(len(one.conversation.messages) for one in self._kept.values()) > MESSAGES_MAX:
            self._kept.popitem(last=False)

    def _forget_erased(self) -> None:
        """Keeps nothing that was read before an erasure: it may hold what is gone."""
        if self._engine.projection.last_erasure != self._erased:
            self._erased = self._engine.projection.last_erasure
            self._kept.clear()
