"""The pages view: every page, its versions and its shorter representations."""

from __future__ import annotations

import json
from typing import ClassVar

import apsw

from vmstore.core.mutation import Compress, Create, Update
from vmstore.views.projector import Fact, Projector, plain


class Pages(Projector):
    """A page's row says what it is and holds its first content; each row of `changes` is a later one.

    `versions` reads both as one: every content by its position. A version at level 0 is full
    content; at a higher level a representation of that version.
    """

    name = "pages"
    schema: ClassVar = {
        "pages": """session INTEGER, page INTEGER, message INTEGER, part INTEGER, type INTEGER, modality INTEGER,
            role INTEGER, mime INTEGER, importance INTEGER, turn INTEGER, call INTEGER, at INTEGER, hint TEXT,
            labels TEXT, size INTEGER, tokens INTEGER, cell INTEGER, commitment BLOB, PRIMARY KEY(session, page)""",
        "changes": """session INTEGER, position INTEGER, page INTEGER, version INTEGER, level INTEGER, size INTEGER,
            tokens INTEGER, cell INTEGER, commitment BLOB, method INTEGER, lossy INTEGER,
            PRIMARY KEY(session, position)""",
    }
    selects: ClassVar = {
        "versions": """SELECT session, page AS position, page, 1 AS version, 0 AS level, size, tokens, cell,
            commitment, NULL AS method, 0 AS lossy FROM pages
            UNION ALL SELECT session, position, page, version, level, size, tokens, cell, commitment, method, lossy
            FROM changes"""
    }
    indexes = (
        "CREATE INDEX pages_hint ON pages(session, hint) WHERE hint IS NOT NULL",
        "CREATE INDEX changes_page ON changes(session, page)",
    )

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._pages, self._changes = self.rows["pages"], self.rows["changes"]

    def on_create(self, fact: Fact, m: Create) -> None:
        """Adds the page with its first version."""
        hint = labels = None
        if m.labels is not None:
            labels = fact.text(m.labels)
            hint = plain(json.loads(labels or "{}").get("hint"))
        cell, commitment = fact.sealed(m.content)
        self._pages.append(
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
                fact.at,
                hint,
                labels,
                m.size,
                m.tokens,
                cell,
                commitment,
            )
        )

    def on_update(self, fact: Fact, m: Update) -> None:
        """Adds a version."""
        told = (m.page, m.version, 0, m.size, m.tokens, *fact.sealed(m.content), None, 0)
        self._changes.append((fact.session, fact.position, *told))

    def on_compress(self, fact: Fact, m: Compress) -> None:
        """Adds a representation."""
        told = (m.page, m.version, m.level, m.size, m.tokens, *fact.sealed(m.content), m.method, m.lossy)
        self._changes.append((fact.session, fact.position, *told))
