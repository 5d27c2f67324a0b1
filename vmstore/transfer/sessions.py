"""Sessions on their way out of a namespace and into it: what is exported, and bundles taken in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO

from vmstore.core.asof import AsOf, Head
from vmstore.core.system.atomic_file import new_file, scratch
from vmstore.engine.engine import Ingested
from vmstore.engine.transfer.ingest import CommitCollector, adopt, standing
from vmstore.erasure.erase import finish_brought, mark
from vmstore.errors import CorruptError, InputError, UnknownError
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.log.sqlite import SqliteLog
from vmstore.namespace import system_session
from vmstore.namespace.effects import Agree, effects_on, settle
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.reports import ExportReport, ImportReport
from vmstore.transfer.bundle import lines_of
from vmstore.transfer.bundle_import import Bundle, read_bundle, take_anew, take_exact
from vmstore.transfer.conversations import CONVERSATIONS, SpokenSession, masked_sessions, spoken_sessions
from vmstore.transfer.imports import imported
from vmstore.transfer.parquet import write_parquet
from vmstore.transfer.redacted_export import MaskedCounts, lifted, masked, masked_rows
from vmstore.transfer.sqlite import write_database
from vmstore.transfer.table_rows import Row, rows
from vmstore.views.branch import Branch
from vmstore.views.erased_cells import erasures_after
from vmstore.views.projection import Progress
from vmstore.views.reads.resolve_asof import basis
from vmstore.views.selection import Portion, check_end, commits_of, select, whole

WRITERS: dict[str, Callable[[Path, Iterable[Row]], int]] = {"parquet": write_parquet, "sqlite": write_database}
SPANS = "otlp"
FORMATS = ("jsonl", *WRITERS, *CONVERSATIONS, SPANS)
BUNDLE = "bundle"


def portions_of(ns: Namespace, names: Iterable[str], at: AsOf) -> list[Portion]:
    """The portions to export: the sessions named, or all, up to a moment, and the past they share."""
    ns.follow()
    wanted: list[tuple[int, int]] = []
    for name in names:
        key = ns.key(name)
        if key is None:
            known = [row[0] for row in ns.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name")]
            raise UnknownError(f"there is no session {name!r}; {ns.nearest(name, known)}", code="no-session")
        if key == system_session.key_of(ns):
            raise InputError(f"{name!r} is the namespace's own session, which means nothing elsewhere; back it up")
        if isinstance(at, Head):
            wanted.append(whole(ns.views, key))
        else:
            lane = Branch(ns.views, key)
            position = basis(lane, at).position
            check_end(lane, position, name)
            wanted.append((key, position))
    if not wanted:
        raise UnknownError("there is no session to export; record or import one first", code="nothing-to-export")
    return select(ns.views, wanted)


def export(
    ns: Namespace,
    out: Path | BinaryIO,
    portions: Sequence[Portion],
    format: str,
    progress: Progress | None,
    *,
    hide: bool,
) -> ExportReport:
    """Writes portions in a format, without what is secret in them where it is to `hide` that.

    A path appears when it is whole, a stream is written as it goes.
    """
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; the formats are {', '.join(FORMATS)}", code="no-format")
    words = lifted(ns, [portion.session for portion in portions], format) if hide else []
    hidden = MaskedCounts() if hide and not words else None
    if format == "jsonl":
        projection, leaving = ns.projection, portions
        if hidden is not None:
            with ns.views_lock:
                projection, leaving = masked(ns, portions, hidden)
        total = sum(len(portion.ordinals) for portion in leaving)
        size = _write_lines(out, ns.in_turns(lines_of(projection, leaving)), total, progress)
        return _exported(ns, portions, format, size, hidden, words)
    if format in CONVERSATIONS:

        def spoken() -> Iterator[SpokenSession]:
            return ns.in_turns(spoken_sessions(ns.projection, portions))

        found = spoken() if hidden is None else masked_sessions(spoken, hidden)
        texts = (CONVERSATIONS[format](session).encode("utf-8", "replace") for session in found)
        size = _write_lines(out, texts, sum(portion.asked for portion in portions), progress)
        return _exported(ns, portions, format, size, hidden, words)
    if not isinstance(out, Path):
        raise InputError(f"{format} is no stream; name the path it shall have", code="not-a-stream")

    def made() -> Iterator[Row]:
        return ns.in_turns(rows(ns.projection, portions))

    leaving_rows = made() if hidden is None else masked_rows(made, hidden)
    report = _counted(leaving_rows, _mutations(ns, portions), progress)
    return _exported(ns, portions, format, WRITERS[format](out, report), hidden, words)


def export_lines(
    ns: Namespace,
    out: Path | BinaryIO,
    portions: Sequence[Portion],
    format: str,
    lines: Iterable[bytes],
    hidden: MaskedCounts | None,
    progress: Progress | None,
) -> ExportReport:
    """Writes what is made of portions elsewhere, a line each; `hidden` counts what was masked in them."""
    size = _write_lines(out, lines, sum(portion.asked for portion in portions), progress)
    return _exported(ns, portions, format, size, hidden, [])


def _write_lines(out: Path | BinaryIO, lines: Iterable[bytes], total: int, progress: Progress | None) -> int:
    size = 0
    with new_file(out) if isinstance(out, Path) else nullcontext(out) as file:
        for done, line in enumerate(lines):
            file.write(line)
            size += len(line)
            if progress is not None:
                progress(min(done, total), total)
    return size


def _counted(found: Iterable[Row], total: int, progress: Progress | None) -> Iterator[Row]:
    done = 0
    for row in found:
        yield row
        if row[0] == "mutations" and progress is not None:
            done += 1
            progress(done, total)


def _mutations(ns: Namespace, portions: Sequence[Portion]) -> int:
    return sum(portion.upto - Branch(ns.views, portion.session).stretches[0].low for portion in portions)


def _exported(
    ns: Namespace, portions: Sequence[Portion], format: str, size: int, hidden: MaskedCounts | None, words: list[str]
) -> ExportReport:
    counts = hidden or MaskedCounts()
    return ExportReport(
        format,
        [portion.name for portion in portions if portion.asked],
        [portion.name for portion in portions if not portion.asked],
        sum(len(portion.ordinals) for portion in portions),
        _mutations(ns, portions),
        size,
        hidden is not None,
        counts.counts,
        counts.values,
        counts.unseen,
        words,
    )


def import_bundle(
    ns: Namespace, path: Path, *, name: str | None, exact: bool, progress: Progress | None, agreed: Agree = False
) -> ImportReport:
    """Takes a bundle in: as it is where `exact`, else as new sessions.

    What an exact one would do to sessions that are here happens where somebody agrees; else nothing is taken.
    """
    if exact and name is not None:
        raise InputError(
            "exact commits keep the name they were sealed with; leave --session out, or --exact", code="keeps-its-name"
        )
    engine, effects = ns.engine, list[str]()
    with _scratch(ns) as log:
        bundle = read_bundle(path, log, progress)
        try:
            if exact:
                taken, effects = _exactly(ns, bundle, agreed)
            else:
                taken = take_anew(engine, bundle, name)
        finally:
            bundle.gathering.views.db.close()
    ns.follow()
    asked = [session for session, inside in zip(taken, bundle.sessions, strict=True) if inside.asked]
    others = [session for session in taken if session not in asked]
    infos = [ns.session_info(session.session) for session in (*asked, *others)]
    new = sum(session.commits for session in taken)
    return ImportReport([imported(info, BUNDLE) for info in infos], new=new, effects=effects)


def _exactly(ns: Namespace, bundle: Bundle, agreed: Agree) -> tuple[list[Ingested], list[str]]:
    """Adopts a bundle and carries out the erasures it brings; what it did to what was here."""
    gathering = bundle.gathering
    erases = next(erasures_after(gathering.log, 0), None) is not None
    with ExitStack() as stack:
        if erases:  # marked before, so that who opens next finishes what a kill interrupts
            stack.enter_context(ns.engine.log.destroying())
        ns.engine.follow()
        there = [standing(ns.engine, gathering, foreign) for foreign in gathering.sessions()]
        effects = [
            rule
            for foreign, session, position in there
            if session
            for rule in effects_on(ns, session, foreign.name, gathering.commits(foreign.session, position))[1]
        ]
        settle(agreed, effects, bundle.name)
        if not erases:
            return take_exact(ns.engine, bundle), effects
        mark(ns)
        try:
            return take_exact(ns.engine, bundle), effects
        finally:
            finish_brought(ns)


def take_over(ns: Namespace, source: Namespace, name: str) -> None:
    """Takes a session of another namespace in with the very commits it has, and nothing is written on the way."""
    gathering = CommitCollector(MemoryLog())
    try:
        with source.lock:
            for portion in portions_of(source, [name], Head()):
                for commit in commits_of(source.projection, portion):
                    gathering.take(portion.name, commit)
        _, problems = gathering.prove()
        if problems:
            kind, where, what = problems[0]
            raise CorruptError(f"session {name!r} is damaged: {kind}, {where}: {what}; run `vmstore verify`")
        with ns.lock:
            adopt(ns.engine, gathering)
            ns.follow()
    finally:
        gathering.views.db.close()


@contextmanager
def _scratch(ns: Namespace) -> Iterator[Log]:
    """A log that is gone when it was looked at, in a hidden folder of the namespace's, or in memory.

    What is taken into an encrypted namespace is nowhere else in the clear.
    """
    if ns.views_folder is None:
        yield MemoryLog()
        return
    with scratch(ns.views_folder) as folder:
        path = folder / "log.sqlite"
        SqliteLog.create(path)
        log = SqliteLog(path)
        try:
            yield log
        finally:
            log.close()
