"""Reports on a store as a whole: its health, its bytes, what went in and out."""

from __future__ import annotations

import msgspec


class Info(msgspec.Struct, frozen=True):
    """Contents of a namespace in counts, and the sizes of its parts in bytes."""

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
    """Result of `verify`."""

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


class PlannedPage(msgspec.Struct, frozen=True):
    """A page that an erasure takes: why, how many cells of its own, and their bytes."""

    page: str
    type: str
    why: str
    cells: int
    bytes: int


class PlannedSession(msgspec.Struct, frozen=True):
    """A session whose cells an erasure takes: all of them where `whole`."""

    session: str
    uid: str
    whole: bool
    cells: int


class LeftContent(msgspec.Struct, frozen=True):
    """Something that hangs on what an erasure takes and stays, unless a flag takes it too: `derived` or `copies`."""

    what: str
    kind: str
    flag: str
    why: str


class ErasurePlan(msgspec.Struct, frozen=True):
    """The cells an erasure would destroy, and what it would leave.

    `forks` inherited some of it and lose that too; `children` were spawned by sessions that go, or
    continue them, and stay; `sources` are the files it was imported from, which nobody touches. `objects`
    are those in cold tiers that hold cells of these sessions, and are written again.
    """

    cells: int
    bytes: int
    sessions: list[PlannedSession]
    pages: list[PlannedPage]
    untaken: list[LeftContent]
    forks: list[str]
    children: list[str]
    sources: list[str]
    objects: list[str] = []


class ErasureReport(msgspec.Struct, frozen=True):
    """Result of an erasure; `certificate` is the path of its certificate, None for a store in memory.

    `left` are the addresses of cold tiers that could not be reached: the erasure is open there until it is finished.
    """

    plan: ErasurePlan
    reason: str
    commits: list[int]
    certificate: str | None
    beyond: list[str]
    left: list[str] = []


class ErasedAgain(msgspec.Struct, frozen=True):
    """Result of erasing again what another tool brought back: certificates read, those a named key signed, cells."""

    certificates: int
    signed: int
    cells: int
    done: bool


class CompactionReport(msgspec.Struct, frozen=True):
    """Result of a compaction: rows of cells and the log's bytes on disk, before and after.

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


class EmbeddingReport(msgspec.Struct, frozen=True):
    """Result of embedding: contents that got vectors, and the number of vectors.

    `copied` of the contents were embedded before by whom their session forked from. `empty` hold no text, or were
    erased meanwhile; `failed` are those the embedder gave no vector, by what it said. `left` were not come to; where
    the run `stopped` before its end it says why.
    """

    model: str
    dimension: int | None
    contents: int
    vectors: int
    copied: int
    empty: int
    failed: dict[str, int]
    left: int
    stopped: str | None


class EmbeddedShare(msgspec.Struct, frozen=True):
    """How many of the `texts` that are searched have vectors of a model."""

    model: str
    dimension: int | None
    embedded: int
    texts: int


class VectorCoverage(msgspec.Struct, frozen=True):
    """How many of the `texts` that are searched have vectors of the model that was asked last.

    `others` says how many contents have vectors of models before it, by their names; `due` why the texts are to be
    embedded (`vmstore embed`), None where too few lack a vector.
    """

    model: str
    dimension: int
    embedded: int
    texts: int
    others: dict[str, int]
    due: str | None


class SweepReport(msgspec.Struct, frozen=True):
    """Files of cells that no commit names, and their bytes; `deleted` unless it was only a look."""

    deleted: bool
    files: list[str]
    bytes: int


class ArchivedSession(msgspec.Struct, frozen=True):
    """A session whose contents moved, or would: how many cells and bytes of them, and its archive with its size."""

    session: str
    file: str
    cells: int
    bytes: int = 0
    file_bytes: int = 0


class SkippedSession(msgspec.Struct, frozen=True):
    """A session that was left alone, and why."""

    session: str
    why: str


class ArchiveReport(msgspec.Struct, frozen=True):
    """Result of archiving or unarchiving; `done` is False after a dry run.

    The bytes are those of the log, its long contents and all archives together. `left_to` is the address of the
    cold tier to which they were left.
    """

    done: bool
    sessions: list[ArchivedSession]
    skipped: list[SkippedSession]
    bytes_before: int
    bytes_after: int
    left_to: str | None = None


class PublishedPart(msgspec.Struct, frozen=True):
    """A session that was published, or would be: why, how many commits are new, and the bytes of its archive.

    `why` is new, grew, or erased, where something of it was destroyed here since.
    """

    session: str
    why: str
    commits: int
    bytes: int


class PublishReport(msgspec.Struct, frozen=True):
    """Result of publishing to a cold tier; `manifest` is the number of the newest one, 0 where there is none.

    `done` is False after a dry run. `bytes` are those of the archives that were written, `tables` the addresses of
    tables for other engines, by form and name.
    """

    done: bool
    address: str
    manifest: int
    sessions: list[PublishedPart]
    skipped: list[SkippedSession]
    segments: int
    bytes: int
    tables: dict[str, dict[str, str]] = {}


class MergedSession(msgspec.Struct, frozen=True):
    """A session of the other store: what became of it, how many commits came or would, up to where both are the same.

    `outcome` is new, grew, same, behind (it is longer here), or a conflict, with `why` and what to do:
    parted, taken (its name), orphan (the past it forked from). `destroyed` counts the cells here that an
    erasure which came along destroys, `effects` says that and what else it does to what is here.
    """

    namespace: str
    session: str
    outcome: str
    commits: int
    position: int
    why: str | None = None
    destroyed: int = 0
    effects: list[str] = []


class MergeReport(msgspec.Struct, frozen=True):
    """Result of a merge; `done` is False after a dry run."""

    done: bool
    sessions: list[MergedSession]
    conflicts: int


class MigratedSession(msgspec.Struct, frozen=True):
    """The head of a session that both stores have: its uid, its name where that was not erased, position and hash."""

    session: str
    name: str | None
    position: int
    hash: str


class MigratedNamespace(msgspec.Struct, frozen=True):
    """A namespace that a store now has as another does, up to the ordinal `upto`, of which `commits` are new.

    `behind` is how many the other store has gained since; `documents` counts certificates and seals that came along.
    """

    namespace: str
    into: str
    commits: int
    upto: int
    behind: int
    documents: int
    heads: list[MigratedSession]


class MigrationReport(msgspec.Struct, frozen=True):
    """Result of a migration: each namespace, proven in the store it came into."""

    namespaces: list[MigratedNamespace]


class PublishedViews(msgspec.Struct, frozen=True):
    """Views that new hosts begin with: of which namespace and format, up to which ordinal, how many bytes unpacked."""

    namespace: str
    format: str
    ordinal: int
    bytes: int


class Symptom(msgspec.Struct, frozen=True):
    """Something about a store that is not as it should be: of which kind, where, what, and what to do."""

    kind: str
    where: str
    what: str
    remedy: str


class Capability(msgspec.Struct, frozen=True):
    """Something that a backend can or cannot do, as it is set up; `remedy` says what to do where that is wrong."""

    name: str
    can: bool
    what: str
    remedy: str | None = None


class LockedFile(msgspec.Struct, frozen=True):
    """A file that a process has locked: in use, which is no symptom."""

    file: str
    pid: int
    command: str


class NamespaceHealth(msgspec.Struct, frozen=True):
    """One namespace looked at: its format, commits and bytes, how far each view is behind the log, who uses it.

    `vectors` is how much is embedded, where anything is.
    """

    namespace: str
    format: int | None
    commits: int | None
    bytes: int
    behind: dict[str, int]
    archives: int
    held: list[LockedFile]
    vectors: VectorCoverage | None = None


class Health(msgspec.Struct, frozen=True):
    """Result of `doctor`; `ok` where there is nothing to do. `capabilities` are those of the store's backend."""

    ok: bool
    full: bool
    versions: dict[str, str | None]
    namespaces: list[NamespaceHealth]
    symptoms: list[Symptom]
    capabilities: list[Capability] = []


class Rehearsal(msgspec.Struct, frozen=True):
    """An upgrade that was tried on a copy: formats, commits, views that gave the same, and what it takes.

    `seconds` is how long it took, `bytes` how much more room it needed at most, `bytes_after` how
    long the new log is, `bytes_free` how much room there is. `ready` where the real one has it.
    """

    ready: bool
    format_before: int
    format: int
    commits: int
    views: int
    seconds: float
    bytes: int
    bytes_after: int
    bytes_free: int


class LineProblem(msgspec.Struct, frozen=True):
    """A record kept as a raw page: where it stands and why it could not be read."""

    line: int
    reason: str


class ImportedSession(msgspec.Struct, frozen=True):
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


class ImportReport(msgspec.Struct, frozen=True):
    """Result of an import: its sessions, the main one first, and the lines that could not be read.

    `new` counts the records taken in now; `torn` is the line of a torn last record, left for the
    next import. Where nothing was masked `suspects` says how many values of each kind could have
    been, in the new part, and `suspect_pages` where; where it was, `masked` how often. `effects` says what
    an exact bundle did to what was here.
    """

    sessions: list[ImportedSession]
    new: int = 0
    problems: list[LineProblem] = []
    torn: int | None = None
    suspects: dict[str, int] = {}
    suspect_pages: list[str] = []
    masked: dict[str, int] = {}
    effects: list[str] = []


class ExportReport(msgspec.Struct, frozen=True):
    """Result of an export: the sessions asked for, the parents that came along, and their sizes.

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
    """Result of a backup or a restore, with its path."""

    path: str
    namespaces: list[BackupPart]


class RestoreReport(Backup, frozen=True):
    """Result of a restore: erasure certificates applied, and cells erased again because of them.

    `signed` counts the certificates that a key the caller named has signed. `effects` says what of the
    backup takes effect beside its contents: whom it shares with, by whose word redaction is lifted, what is
    erased by certificates nobody named signed. Nothing is there where it is not `done`.
    """

    certificates: int
    erased: int
    signed: int = 0
    effects: list[str] = []
    done: bool = True


class DiskShare(msgspec.Struct, frozen=True):
    """Bytes on disk: of which part (log, views, blobs, columns, other), and what in it."""

    part: str
    what: str
    bytes: int


class StoredContents(msgspec.Struct, frozen=True):
    """Contents as they were accepted: of which session or kind, how many cells and bytes."""

    what: str
    cells: int
    bytes: int


class Usage(msgspec.Struct, frozen=True):
    """Bytes on disk: files by purpose, contents by session and by kind, largest first."""

    bytes: int
    files: list[DiskShare]
    sessions: list[StoredContents]
    kinds: list[StoredContents]
