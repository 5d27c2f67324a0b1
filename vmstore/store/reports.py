"""What is told of a store as a whole: its health, its bytes, what went in and out."""

from __future__ import annotations

import msgspec


class Info(msgspec.Struct, frozen=True):
    """What a namespace holds and how large its parts are, in bytes."""

    sessions: int
    commits: int
    mutations: int
    pages: int
    bytes_log: int
    bytes_views: int
    bytes_blobs: int
    positions: dict[str, int]


class Problem(msgspec.Struct, frozen=True):
    """Something verify found: what kind, where, and what about it."""

    kind: str
    where: str
    what: str


class Verdict(msgspec.Struct, frozen=True):
    """What verify found."""

    ok: bool
    commits: int
    mutations: int
    sessions: int
    problems: list[Problem]


class SealInfo(msgspec.Struct, frozen=True):
    """A seal that was made: its file, what it covers, its root, and the public key it was signed for, in hex.

    `namespace` is the uid of the namespace, `ordinal` the last commit covered, `at` in microseconds since 1970.
    """

    path: str
    namespace: str
    ordinal: int
    at: int
    sessions: int
    root: str
    key: str


class Compacted(msgspec.Struct, frozen=True):
    """What packing the log did: rows of cells and the log's bytes on disk, before and after.

    `segments` are the column segments there are now, `columns` the last commit they hold; 0 where
    little is to be held, or the extra `columns` is not installed.
    """

    frames_before: int
    frames_after: int
    bytes_before: int
    bytes_after: int
    segments: int = 0
    columns: int = 0


class ColumnSegment(msgspec.Struct, frozen=True):
    """A folder with `mutations.parquet`, `contents.parquet` and `residencies.parquet`: commits `after` to `upto`."""

    path: str
    after: int
    upto: int
    bytes: int


class Columns(msgspec.Struct, frozen=True):
    """The column segments of a namespace, in the order of the log, without gap.

    `ordinal` is the last commit they hold, `behind` how many newer ones the log has.
    """

    ordinal: int
    behind: int
    segments: list[ColumnSegment]


class Swept(msgspec.Struct, frozen=True):
    """Files of cells that no commit names, and their bytes; `deleted` unless it was only a look."""

    deleted: bool
    files: list[str]
    bytes: int


class LineProblem(msgspec.Struct, frozen=True):
    """A record kept as a raw page: where it stands and why it could not be read."""

    line: int
    reason: str


class Imported(msgspec.Struct, frozen=True):
    """A session after an import: its totals, also where nothing changed."""

    session: str
    format: str
    fidelity: str
    turns: int
    calls: int
    messages: int
    pages: int
    mutations: int
    raw: int
    position: int


class Import(msgspec.Struct, frozen=True):
    """What an import did: its sessions, the main one first, and what could not be read.

    `new` counts the records taken in now; `torn` is the line of a torn last record, left for the
    next import. Where nothing was masked `suspects` says how many values of each kind could have
    been, in the new part, and `suspect_pages` where; where it was, `masked` how often.
    """

    sessions: list[Imported]
    new: int = 0
    problems: list[LineProblem] = []
    torn: int | None = None
    suspects: dict[str, int] = {}
    suspect_pages: list[str] = []
    masked: dict[str, int] = {}


class Exported(msgspec.Struct, frozen=True):
    """What left the store: the sessions asked for, those that came along as their past, and how much.

    Where it is `redacted`, `masked` says how often something of each kind was masked, `values` how many
    there were, `unseen` how many contents were left out since nothing can be masked in them. `approved`
    says who lifted redaction for it.
    """

    format: str
    sessions: list[str]
    ancestors: list[str]
    commits: int
    mutations: int
    bytes: int
    redacted: bool = False
    masked: dict[str, int] = {}
    values: int = 0
    unseen: int = 0
    approved: list[str] = []


class BackupPart(msgspec.Struct, frozen=True):
    """One namespace of a backup: how much its log held."""

    namespace: str
    commits: int
    mutations: int
    sessions: int


class Backup(msgspec.Struct, frozen=True):
    """What was backed up or restored, and where it is now."""

    path: str
    namespaces: list[BackupPart]


class Weight(msgspec.Struct, frozen=True):
    """Bytes on disk: of which part (log, views, blobs, columns, other), and what in it."""

    part: str
    what: str
    bytes: int


class Sealed(msgspec.Struct, frozen=True):
    """Contents as they were accepted: of which session or kind, how many cells and bytes."""

    what: str
    cells: int
    bytes: int


class Usage(msgspec.Struct, frozen=True):
    """Where the bytes are: files by what they hold, contents by session and by kind; largest first."""

    bytes: int
    files: list[Weight]
    sessions: list[Sealed]
    kinds: list[Sealed]
