"""The messages view: envelopes, and the skeleton each had from when on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import apsw

from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Message, Pack


class MessagesProjector(Projector):
    """A message's row with the skeleton it came in, and in `skeletons` each it was given later.

    `envelopes` reads both as one: the skeleton's cell from each change on.
    """

    name = "messages"
    schema: ClassVar = {
        "messages": """session INTEGER, message INTEGER, role INTEGER, slot INTEGER, human INTEGER, reply_to INTEGER,
            turn INTEGER, call INTEGER, at INTEGER, aside INTEGER, cell INTEGER, commitment BLOB,
            PRIMARY KEY(session, message)""",
        "skeletons": """session INTEGER, message INTEGER, position INTEGER, cell INTEGER, commitment BLOB,
            PRIMARY KEY(session, message, position)""",
    }
    selects: ClassVar = {
        "envelopes": """SELECT session, message, message AS position, cell, commitment FROM messages
            UNION ALL SELECT session, message, position, cell, commitment FROM skeletons"""
    }

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._messages, self._skeletons = self.rows["messages"], self.rows["skeletons"]

    def on_message(self, placed: PlacedMutation, m: Message) -> None:
        """Adds the message and its first envelope."""
        cell, commitment = placed.sealed(m.envelope)
        aside = None if m.aside is None else placed.number(m.aside)
        self._messages.append(
            (
                placed.session,
                placed.position,
                m.role,
                m.slot,
                m.human,
                m.reply_to,
                placed.turn,
                placed.call,
                placed.at,
                aside,
                cell,
                commitment,
            )
        )

    def on_pack(self, placed: PlacedMutation, m: Pack) -> None:
        """Adds the envelopes that changed."""
        for message, ref in dict(m.envelopes).items():  # an earlier version let in two of one message
            self._skeletons.append((placed.session, message, placed.position, *placed.sealed(ref)))
