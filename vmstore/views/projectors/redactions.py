"""The redactions view: what was hidden in a session before it was written, and what its policy is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import apsw

from vmstore.core.mutation_kind import CHARTER
from vmstore.core.page import PageType, WordEnum
from vmstore.core.redaction import Approve, Artifact, HiddenKind, Reason, Redact, Redaction
from vmstore.log.port import Log
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projector import PlacedMutation, Projector
from vmstore.views.projectors.decisions import settings_at
from vmstore.views.stored_cells import read_cells

READ_AT_ONCE = 200  # contents


class RedactionsProjector(Projector):
    """One row for each record of something hidden, by the page it stands in, and one for each change of the policy."""

    name = "redactions"
    version = 2
    schema: ClassVar = {
        "redactions": """session INTEGER, position INTEGER, page INTEGER, type INTEGER, reason INTEGER, count INTEGER,
            by INTEGER, found TEXT, tokens_before INTEGER, tokens_after INTEGER, PRIMARY KEY(session, position)""",
        "policies": "session INTEGER, position INTEGER, policy INTEGER, PRIMARY KEY(session, position)",
        "approvals": """session INTEGER, position INTEGER, artifact INTEGER, granted INTEGER, until INTEGER, who TEXT,
            at INTEGER, page INTEGER, of BLOB, PRIMARY KEY(session, position)""",
    }
    indexes = ("CREATE INDEX redactions_page ON redactions(session, page)",)

    def on_redact(self, placed: PlacedMutation, m: Redact) -> None:
        """Adds the record, or the policy, or both."""
        if m.policy is not None:
            self.rows["policies"].append((placed.session, placed.position, m.policy))
        if m.count:
            row = (m.page, m.type, m.reason, m.count, m.by, json.dumps(m.found, separators=(",", ":")))
            self.rows["redactions"].append((placed.session, placed.position, *row, m.tokens_before, m.tokens_after))

    def on_approve(self, placed: PlacedMutation, m: Approve) -> None:
        """Adds what was lifted or put back."""
        row = (m.artifact, m.granted, m.until, placed.text(m.who), placed.at, m.page)
        self.rows["approvals"].append((placed.session, placed.position, *row, m.session))


class Approval(NamedTuple):
    """Redaction lifted for what leaves of a session, or, not `granted`, put back; times in microseconds since 1970."""

    position: int
    artifact: int
    granted: int
    until: int | None
    who: str | None
    at: int


def approvals_of(db: apsw.Connection, session: int) -> list[Approval]:
    """Approvals to lift redaction in a session, and their revocations, in order; a fork has its own.

    Only the namespace's own session says so. What a session says of itself came with it, from whom nobody knows.
    """
    return [Approval(*row) for row in db.execute(_APPROVALS, (CHARTER, session))]


def approved(db: apsw.Connection, session: int, artifact: Artifact, now: int) -> Approval | None:
    """By which word redaction is lifted now for a kind of export; None where it is not."""
    last = [approval for approval in approvals_of(db, session) if approval.artifact in (artifact, Artifact.ALL)][-1:]
    return last[0] if last and last[0].granted and (last[0].until is None or now < last[0].until) else None


def barred_files(lane: Branch, position: int, pages: Iterable[int]) -> frozenset[int]:
    """Those of some pages that are files which no prompt may hold: denied, or waiting where their session asks.

    An approval is of what a file held then: another content of it waits again, while a denial goes on.
    """
    listed, stretches = json.dumps(list(pages)), lane.upto(position)
    files = {page for s in stretches for (page,) in lane.db.execute(_FILES, (s.session, listed, s.high))}
    if not files:
        return frozenset()
    words: dict[int, int] = {}
    for stretch in reversed(stretches):
        for page, word in lane.db.execute(_WORDS, {"session": stretch.session, "pages": listed, "high": stretch.high}):
            if word is not None:
                words[page] = word
            elif words.get(page):
                del words[page]
    asks = (settings_at(lane, position) or {}).get("artifacts") == "ask"
    return frozenset(page for page in files if words.get(page, int(not asks)) == 0)


class UntoldFiles(NamedTuple):
    """Files that no prompt may hold: each page after the session that wrote it, and the cells of all they held."""

    pages: frozenset[tuple[int, int]] = frozenset()
    cells: frozenset[int] = frozenset()


def untold_files(db: apsw.Connection) -> UntoldFiles:
    """The files that a session, or one that was forked from it, may put into no prompt by now."""
    pages: set[tuple[int, int]] = set()
    asking: list[Any] = db.execute(_ASKING).fetchall()
    for (session,) in asking:
        lane = Branch(db, session)
        files = [page for s in lane.stretches for (page,) in db.execute(_OF_TYPE, (s.session, s.low, s.high))]
        pages.update((lane.owner(page), page) for page in barred_files(lane, NEVER, files))
    cells = (cell for page in pages for (cell,) in db.execute(_HELD, (*page, *page)))
    return UntoldFiles(frozenset(pages), frozenset(cells))


class RedactionRecord(NamedTuple):
    """A record of something hidden: `found` are (kind, number, how often)."""

    position: int
    page: int
    type: int
    reason: int
    times: int
    by: int
    found: list[list[int]]
    tokens_before: int
    tokens_after: int


def hidden_in(lane: Branch, page: int, position: int) -> list[RedactionRecord]:
    """Redactions in a page up to a position, in order."""
    return [
        _hidden(row)
        for stretch in reversed(lane.upto(position))
        for row in lane.db.execute(_OF_PAGE, (stretch.session, page, stretch.high))
    ]


def hidden(lane: Branch, position: int) -> Iterator[RedactionRecord]:
    """Everything that was hidden in a session up to a position, in order."""
    for stretch in reversed(lane.upto(position)):
        yield from map(_hidden, lane.db.execute(_ALL, (stretch.session, stretch.high)))


def words_of(record: RedactionRecord) -> str:
    """A record in words: how many placeholders of which kinds, and why."""
    times: dict[int, int] = {}
    for kind, _, count in record.found:
        times[kind] = times.get(kind, 0) + count
    counts = ", ".join(f"{count} {_word(HiddenKind, kind)}" for kind, count in sorted(times.items()))
    saved = f", {record.tokens_before} tokens before" if record.tokens_after else ""
    return f"masked {counts} ({_word(Reason, record.reason)}{saved})"


def _word(words: type[WordEnum], number: int) -> str:
    return words(number).word.replace("_", " ") if number in tuple(words) else f"kind {number}"


def policy_at(lane: Branch, position: int = NEVER) -> Redaction:
    """The redaction in force at a position: the last one set, by the session itself or by one it forked from."""
    for stretch in lane.upto(position) if lane.db.execute(_ANY_POLICY).get else ():
        found = lane.db.execute(_POLICY, (stretch.session, stretch.high)).get
        if found is not None:
            return Redaction(int(found)) if found in tuple(Redaction) else Redaction.REFUSE
    return Redaction.OFF


def numbers_after(lane: Branch, position: int) -> Iterator[tuple[int, int]]:
    """The kinds and numbers of placeholders that were given after a position."""
    for record in hidden(lane, NEVER):
        if record.position > position:
            yield from ((kind, number) for kind, number, _ in record.found)


def again_from(log: Log, lane: Branch, position: int) -> Iterator[bytes]:
    """The contents in which something was masked, in order."""
    pages = list(dict.fromkeys(record.page for record in hidden(lane, position) if record.page))
    for start in range(0, len(pages), READ_AT_ONCE):
        listed = json.dumps(pages[start : start + READ_AT_ONCE])
        for stretch in reversed(lane.upto(position)):
            cells = dict(lane.db.execute(_CONTENTS, (listed, stretch.session, stretch.high)))
            yield from read_cells(log, lane.db, cells, instead=lambda _: b"").values()  # erased ones say nothing


def _hidden(row: Any) -> RedactionRecord:
    position, page, type_, reason, count, by, found, *tokens = row
    return RedactionRecord(position, page, type_, reason, count, by, json.loads(found), *tokens)


_APPROVALS = """SELECT a.position, a.artifact, a.granted, a.until, a.who, a.at
  FROM sessions own CROSS JOIN approvals a ON a.session = own.session
 WHERE own.hidden = ? AND a.page = 0 AND a.of = (SELECT uid FROM sessions WHERE session = ?) ORDER BY a.position"""
assert _APPROVALS.partition("FROM")[0].count(",") + 1 == len(Approval._fields), "a row becomes a tuple by place"
_FILES = f"""SELECT page FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?)) AND page <= ?
  AND type = {int(PageType.ARTIFACT)} AND coalesce(message, 0) = 0"""
_OF_TYPE = f"""SELECT page FROM pages WHERE session = ? AND page > ? AND page <= ?
  AND type = {int(PageType.ARTIFACT)} AND type <> {int(PageType.TRANSCRIPT)} AND coalesce(message, 0) = 0"""
_ASKING = """SELECT session FROM choices WHERE told ->> '$.artifacts' = 'ask'
  UNION SELECT session FROM approvals WHERE page AND of IS NULL AND NOT granted"""
_HELD = """SELECT cell FROM pages WHERE session = ? AND page = ? AND cell IS NOT NULL
  UNION SELECT cell FROM changes WHERE session = ? AND page = ? AND cell IS NOT NULL"""
_WORDS = """SELECT page, granted FROM (
  SELECT position, page, granted FROM approvals WHERE session = :session AND of IS NULL
   AND page IN (SELECT value FROM json_each(:pages)) AND position <= :high
  UNION ALL SELECT position, page, NULL FROM changes WHERE session = :session AND level = 0
   AND page IN (SELECT value FROM json_each(:pages)) AND position <= :high) ORDER BY position"""
_COLUMNS = "position, page, type, reason, count, by, found, tokens_before, tokens_after"
assert _COLUMNS.count(",") + 1 == len(RedactionRecord._fields), "a row becomes a tuple by place"
_OF_PAGE = f"""SELECT {_COLUMNS} FROM redactions INDEXED BY redactions_page
  WHERE session = ? AND page = ? AND position <= ? ORDER BY position"""
_ALL = f"SELECT {_COLUMNS} FROM redactions WHERE session = ? AND position <= ? ORDER BY position"
_ANY_POLICY = "SELECT EXISTS (SELECT 1 FROM policies)"
_POLICY = "SELECT policy FROM policies WHERE session = ? AND position <= ? ORDER BY position DESC LIMIT 1"
_CONTENTS = """SELECT v.cell, v.commitment FROM json_each(?) one
  CROSS JOIN versions v ON v.session = ? AND v.page = one.value AND v.position <= ? AND v.cell IS NOT NULL
  ORDER BY v.position"""
