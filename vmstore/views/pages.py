"""The pages view: every page, its versions and its shorter representations."""

from __future__ import annotations

import json
from typing import ClassVar

import apsw

from vmstore.core.mutation import Compress, Create, Update
from vmstore.views.projector import Fact, Projector, plain


class Pages(Projector):
    """A page's row says what it is; each row of `versions` is one content, by its position.

    A version at level 0 is full content; at a higher level a representation of that version.
    """

    name = "pages"
    schema: ClassVar = {
        "pages": """session INTEGER, page INTEGER, message INTEGER, part INTEGER, type INTEGER, modality INTEGER,
            role INTEGER, mime INTEGER, importance INTEGER, turn INTEGER, call INTEGER, at INTEGER, hint TEXT,
            labels TEXT, PRIMARY KEY(session, page)""",
        "versions": """session INTEGER, position INTEGER, page INTEGER, version INTEGER, level INTEGER, size INTEGER,
            tokens INTEGER, cell INTEGER, commitment BLOB, method INTEGER, lossy INTEGER,
            PRIMARY KEY(session, position)""",
    }
    indexes = (
        "CREATE INDEX pages_hint ON pages(session, hint) WHERE hint IS NOT NULL",
        "CREATE INDEX versions_page ON versions(session, page)",
        "CREATE INDEX pages_message ON pages(session, message)",
    )

    def on_create(self, db: apsw.Connection, fact: Fact, m: Create) -> None:
        """Adds the page and its first version."""
        labels = fact.text(m.labels)
        hint = plain(json.loads(labels).get("hint")) if labels else None
        db.execute(
            "INSERT INTO pages VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                fact.session,
                fact.position,
                m.message,
                m.part,
                m.type,
                m.modality,
                m.role,
                m.mime,
                m.importance,
                fact.turn,
                fact.call,
                fact.commit.at,
                hint,
                labels,
            ),
        )
        cell = fact.number(m.content)
        commitment = None if m.content is None else fact.commitment(m.content)
        _version(db, fact, fact.position, 1, 0, m.size, m.tokens, cell, commitment, None, 0)

    def on_update(self, db: apsw.Connection, fact: Fact, m: Update) -> None:
        """Adds a version."""
        _version(
            db,
            fact,
            m.page,
            m.version,
            0,
            m.size,
            m.tokens,
            fact.number(m.content),
            fact.commitment(m.content),
            None,
            0,
        )

    def on_compress(self, db: apsw.Connection, fact: Fact, m: Compress) -> None:
        """Adds a representation."""
        cell, commitment = fact.number(m.content), fact.commitment(m.content)
        _version(db, fact, m.page, m.version, m.level, m.size, m.tokens, cell, commitment, m.method, m.lossy)


def _version(
    db: apsw.Connection,
    fact: Fact,
    page: int,
    version: int,
    level: int,
    size: int,
    tokens: int,
    cell: int | None,
    commitment: bytes | None,
    method: int | None,
    lossy: int,
) -> None:
    db.execute(
        "INSERT INTO versions VALUES(?,?,?,?,?,?,?,?,?,?,?)",
        (fact.session, fact.position, page, version, level, size, tokens, cell, commitment, method, lossy),
    )
