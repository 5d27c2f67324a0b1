"""Redacted exports: the same sessions without their secrets.

All of it is looked through twice: what one text gives away is masked in every other, those before it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import apsw
import msgspec

from vmstore.core.mutation import Compress, Create, Update, decode
from vmstore.core.redaction import Artifact
from vmstore.engine.engine import Engine
from vmstore.engine.transfer.ingest import CommitCollector
from vmstore.engine.transfer.rewrite import opening_of, rewrite_session
from vmstore.errors import ErasedError, RefusedError, UnknownError
from vmstore.log.memory import MemoryLog
from vmstore.namespace.namespace import Namespace
from vmstore.redact.mask import Mask, is_blob
from vmstore.redact.span import HANDED_OUT
from vmstore.transfer.table_rows import Row
from vmstore.transfer.tables import TABLES
from vmstore.views.erased_cells import erased_at
from vmstore.views.projection import Projection
from vmstore.views.projectors.redactions import approved
from vmstore.views.selection import Portion, commits_of, select, whole


def lifted(ns: Namespace, sessions: Iterable[int], artifact: str) -> list[str]:
    """Those who lifted redaction for a kind of export of all these sessions; empty where one is not approved."""
    found = []
    for key in sessions:
        word = approved(ns.views, key, artifact_of(artifact), ns.clock.now())
        if word is None:
            return []
        found.append(word.who or "somebody")
    return list(dict.fromkeys(found))


def artifact_of(word: str) -> Artifact:
    """A kind of export by its word; UnknownError naming those there are."""
    found = Artifact.of(word) if isinstance(word, str) else None
    if found is None:
        words = ", ".join(artifact.word for artifact in Artifact)
        raise UnknownError(f"there is no artifact {word!r:.40}; there are {words}", code="no-artifact")
    return Artifact(found)


UNSEEN = b"left out of a redacted export: nothing can be masked in an image, a sound or a film"
EVERYWHERE = "the export"
BYTES = next(
    at for table in TABLES if table.name == "versions" for at, one in enumerate(table.columns) if one.name == "bytes"
)


class MaskedCounts(msgspec.Struct):
    """Counts of an export: maskings of each kind, and contents left out as unreadable."""

    counts: dict[str, int] = {}
    values: int = 0
    unseen: int = 0


def masked_rows(make: Callable[[], Iterable[Row]], counts: MaskedCounts) -> Iterator[Row]:
    """The rows of tables with placeholders; contents that are no text are not in them anyway, and are counted."""
    first, mask = Mask(HANDED_OUT), Mask(HANDED_OUT)
    for _, row in make():
        for value in row:
            if isinstance(value, str):
                first.value(value, EVERYWHERE)
    mask.trust(first)
    for name, row in make():
        if name == "versions" and (row[-1] is None or is_blob(row[-1])):
            counts.unseen += row[BYTES] > 0
            row = (*row[:-1], None)
        yield name, tuple(mask.value(value, EVERYWHERE) if isinstance(value, str) else value for value in row)
    counts.counts, counts.values = mask.counts, len(mask.record)


def masked(ns: Namespace, portions: Sequence[Portion], counts: MaskedCounts) -> tuple[Projection, list[Portion]]:
    """The portions rewritten in a log in memory, with ids, salts and hashes of their own; positions stay."""
    gathering = _gathered(ns, portions)
    first, mask = Mask(HANDED_OUT), Mask(HANDED_OUT)
    for foreign in gathering.sessions():
        for commit in gathering.commits(foreign.session):
            for cell in commit.cells:
                first.bytes(cell.content, EVERYWHERE)
    mask.trust(first)

    def hide(content: bytes) -> bytes:
        shown = mask.bytes(content, EVERYWHERE)
        return UNSEEN if shown is None else shown

    log = MemoryLog()
    engine = Engine(log, Projection(log, apsw.Connection(":memory:")), ns.clock, ns.reader.ids)
    keys: dict[bytes, int] = {}
    for foreign in gathering.sessions():
        opening = opening_of(gathering, foreign, keys, mask.text(foreign.name, EVERYWHERE), "")
        opening = opening._replace(meta=mask.value(opening.meta, EVERYWHERE), source=None)
        try:
            keys[foreign.uid] = rewrite_session(engine, gathering, foreign, opening, hide).session
        except ErasedError as error:
            raise RefusedError(
                f"{error}, so no bundle with placeholders can be made; export it with --exact, which masks nothing, or "
                "as sqlite or parquet"
            ) from error
        counts.unseen += sum(_unseen(gathering, foreign.session))
    gathering.views.db.close()
    counts.counts, counts.values = mask.counts, len(mask.record)
    db = engine.projection.db
    asked = {keys[portion.uid] for portion in portions if portion.asked}
    ends = {key for (key,) in db.execute("SELECT DISTINCT session FROM erased")}  # whose erasures come after a fork
    leaving = select(db, [whole(db, key) for key in asked | ends])
    return engine.projection, [portion._replace(asked=portion.session in asked) for portion in leaving]


def _gathered(ns: Namespace, portions: Sequence[Portion]) -> CommitCollector:
    """The portions in a log of their own, without what is recorded as erased, wherever that is recorded."""
    log = MemoryLog()
    lost: dict[int, int] = {}
    log.erased = lost
    gathering, number = CommitCollector(log), 0
    for portion in portions:
        for commit in commits_of(ns.projection, portion):
            for index, cell in enumerate(commit.cells):
                number += 1
                if cell.erased:
                    lost[number] = erased_at(ns.log, ns.views, commit.cell + index)
            gathering.take(portion.name, commit)
    gathering.settle()
    return gathering


def _unseen(gathering: CommitCollector, session: int) -> Iterator[bool]:
    """For each content of the session's own pages, whether it is unreadable."""
    for commit in gathering.commits(session):
        for mutation in decode(commit.body):
            if isinstance(mutation, Create | Update | Compress) and isinstance(mutation.content, int):
                yield Mask(()).bytes(commit.cells[mutation.content].content, "") is None
