"""The messages view: envelopes, and the skeleton each had from when on."""

from __future__ import annotations

from typing import ClassVar

import apsw

from vmstore.core.mutation import Message, Pack
from vmstore.views.projector import Fact, Projector


class Messages(Projector):
    """A message's row, and in `envelopes` its skeleton's cell from each change on."""

    name = "messages"
    schema: ClassVar = {
        "messages": """session INTEGER, message INTEGER, role INTEGER, slot INTEGER, human INTEGER, reply_to INTEGER,
            turn INTEGER, call INTEGER, at INTEGER, aside INTEGER, PRIMARY KEY(session, message)""",
        "envelopes": """session INTEGER, message INTEGER, position INTEGER, cell INTEGER, commitment BLOB,
            PRIMARY KEY(session, message, position)""",
    }

    def on_message(self, db: apsw.Connection, fact: Fact, m: Message) -> None:
        """Adds the message and its first envelope."""
        db.execute(
            "INSERT INTO messages VALUES(?,?,?,?,?,?,?,?,?,?)",
            (
                fact.session,
                fact.position,
                m.role,
                m.slot,
                m.human,
                m.reply_to,
                fact.turn,
                fact.call,
                fact.commit.at,
                fact.number(m.aside),
            ),
        )
        db.execute(
            "INSERT INTO envelopes VALUES(?,?,?,?,?)",
            (fact.session, fact.position, fact.position, fact.number(m.envelope), fact.commitment(m.envelope)),
        )

    def on_pack(self, db: apsw.Connection, fact: Fact, m: Pack) -> None:
        """Adds the envelopes that changed."""
        rows = [
            (fact.session, message, fact.position, fact.number(ref), fact.commitment(ref))
            for message, ref in m.envelopes
        ]
        db.executemany("INSERT INTO envelopes VALUES(?,?,?,?,?)", rows)
