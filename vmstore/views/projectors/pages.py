"""The pages view: every page, its versions and shorter representations, and what was said of it since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import apsw

from vmstore.core.page import IMPORTANCE, PageType, Standing
from vmstore.core.redaction import TAG, Redact
from vmstore.core.text.json_text import loads, plain, strict
from vmstore.views.projector import PlacedMutation, Projector

if TYPE_CHECKING:
    from vmstore.core.mutation import Annotate, Compress, Create, Delete, Tag, Update

# Most pages are transcript and weighed by nobody: an index holds the others, where a question says so.
TYPED = f"type <> {int(PageType.TRANSCRIPT)}"
WEIGHED = f"importance <> {IMPORTANCE}"
NOTED = "importance IS NOT NULL"


class PagesProjector(Projector):
    """A page's row says what it is and holds its first content; each row of `changes` is a later one.

    `versions` reads both as one: every content by its position. A version at level 0 is full
    content; at a higher level a representation of that version. A row of `notes` is what an
    annotation said, one of `tags` that a page gained or lost a tag, and by which method where a
    mutation is of that tag alone: what holds at a position is what the last row at or before it says,
    so rows never change.
    """

    name = "pages"
    schema: ClassVar = {
        "pages": """session INTEGER, page INTEGER, message INTEGER, part INTEGER, type INTEGER, modality INTEGER,
            role INTEGER, mime INTEGER, importance INTEGER, turn INTEGER, call INTEGER, at INTEGER, hint TEXT,
            labels TEXT, size INTEGER, tokens INTEGER, cell INTEGER, commitment BLOB, PRIMARY KEY(session, page)""",
        "changes": """session INTEGER, position INTEGER, page INTEGER, version INTEGER, level INTEGER, size INTEGER,
            tokens INTEGER, cell INTEGER, commitment BLOB, method INTEGER, lossy INTEGER,
            PRIMARY KEY(session, position)""",
        "notes": """session INTEGER, page INTEGER, position INTEGER, importance INTEGER, status INTEGER,
            valid_from INTEGER, valid_to INTEGER, anchors TEXT, PRIMARY KEY(session, page, position)""",
        "tags": """tag TEXT, session INTEGER, page INTEGER, position INTEGER, held INTEGER, method INTEGER,
            PRIMARY KEY(tag, session, page, position)""",
    }
    selects: ClassVar = {
        "versions": """SELECT session, page AS position, page, 1 AS version, 0 AS level, size, tokens, cell,
            commitment, NULL AS method, 0 AS lossy FROM pages
            UNION ALL SELECT session, position, page, version, level, size, tokens, cell, commitment, method, lossy
            FROM changes"""
    }
    indexes = (
        "CREATE INDEX pages_hint ON pages(session, hint) WHERE hint IS NOT NULL",
        f"CREATE INDEX pages_type ON pages(type, session) WHERE {TYPED}",
        f"CREATE INDEX pages_importance ON pages(session, importance) WHERE {WEIGHED}",
        "CREATE INDEX changes_page ON changes(session, page)",
        f"CREATE INDEX notes_importance ON notes(session, importance) WHERE {NOTED}",
        "CREATE INDEX tags_page ON tags(session, page)",
    )

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._pages, self._changes = self.rows["pages"], self.rows["changes"]
        self._notes, self._tags = self.rows["notes"], self.rows["tags"]

    def on_create(self, placed: PlacedMutation, m: Create) -> None:
        """Adds the page with its first version."""
        hint = labels = None
        if m.labels is not None:
            described = strict_object_of(placed.content(m.labels))
            labels, hint = (placed.text(m.labels), plain(described.get("hint"))) if described else (None, None)
            if "tags" in described:
                self._tag(placed, placed.position, dict.fromkeys(born_tags(described), 1))
        cell, commitment = placed.sealed(m.content)
        self._pages.append(
            (
                placed.session,
                placed.position,
                m.message,
                m.part,
                m.type,
                m.modality,
                m.role,
                m.mime,
                m.importance,
                placed.turn,
                placed.call,
                placed.at,
                hint,
                labels,
                m.size,
                m.tokens,
                cell,
                commitment,
            )
        )

    def on_update(self, placed: PlacedMutation, m: Update) -> None:
        """Adds a version."""
        row = (m.page, m.version, 0, m.size, m.tokens, *placed.sealed(m.content), None, 0)
        self._changes.append((placed.session, placed.position, *row))

    def on_compress(self, placed: PlacedMutation, m: Compress) -> None:
        """Adds a representation."""
        row = (m.page, m.version, m.level, m.size, m.tokens, *placed.sealed(m.content), m.method, m.lossy)
        self._changes.append((placed.session, placed.position, *row))

    def on_annotate(self, placed: PlacedMutation, m: Annotate) -> None:
        """Adds what was said, and a row for each tag gained or lost; one that is both is lost."""
        anchors = placed.text(m.anchors) if strict_object_of(placed.content(m.anchors)) else None
        values = (m.importance, m.status, m.valid_from, m.valid_to, anchors)
        self._notes.append((placed.session, m.page, placed.position, *values))
        gained, lost = (texts_of(placed.content(ref)) for ref in (m.tags, m.untags))
        self._tag(placed, m.page, dict.fromkeys(gained, 1) | dict.fromkeys(lost, 0))

    def on_delete(self, placed: PlacedMutation, m: Delete) -> None:
        """Notes that the page holds no more, as what is superseded."""
        self._notes.append((placed.session, m.page, placed.position, None, int(Standing.SUPERSEDED), None, None, None))

    def on_redact(self, placed: PlacedMutation, m: Redact) -> None:
        """Tags the page in which something was masked."""
        if m.page and m.count:
            self._tag(placed, m.page, {TAG: 1})

    def on_tag(self, placed: PlacedMutation, m: Tag) -> None:
        """Adds a row; none where the tag was erased."""
        tag = plain(placed.text(m.tag))
        if tag is not None:
            self._tags.append((tag, placed.session, m.page, placed.position, m.held, m.method))

    def _tag(self, placed: PlacedMutation, page: int, tags: dict[str, int]) -> None:
        for tag, is_held in tags.items():
            self._tags.append((tag, placed.session, page, placed.position, is_held, None))


def object_of(content: bytes | str | None) -> dict[str, Any]:
    """The JSON object in a cell; an empty one where somebody sealed something else, or nothing."""
    found = _json(content)
    return found if isinstance(found, dict) else {}


def strict_object_of(content: bytes | None) -> dict[str, Any]:
    """The same where it can be shown as JSON again: with finite numbers that every process reads."""
    try:
        found = {} if content is None else strict(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def born_tags(labels: dict[str, Any]) -> list[str]:
    """The tags that a page's labels name."""
    return _texts(labels.get("tags"))


def texts_of(content: bytes | None) -> list[str]:
    """The texts of the JSON list in a cell; none where somebody sealed something else, or nothing."""
    return _texts(_json(content))


def _json(content: bytes | str | None) -> Any:
    try:
        return None if content is None else loads(content)
    except ValueError:
        return None


def _texts(value: Any) -> list[str]:
    return [text for text_given in value if (text := plain(text_given)) is not None] if isinstance(value, list) else []
