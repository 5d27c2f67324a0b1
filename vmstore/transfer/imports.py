"""Files of agents on their way into a namespace, and the reports of the sessions they became."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from vmstore.capture.importers.importer import Importer
from vmstore.capture.steps import ParsedSource
from vmstore.core.redaction import Redaction
from vmstore.errors import InputError
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.namespace.reports import ImportedSession, ImportReport, LineProblem
from vmstore.namespace.results import SessionInfo
from vmstore.views.projection import Progress

SHARED_MAX = 500_000  # records that forks share: a file made to fork at each step would take hours


def import_source(
    ns: Namespace,
    reading: ParsedSource,
    file: Path,
    *,
    name: str | None,
    progress: Progress | None,
    redaction: Redaction | None = None,
    uses: bool = False,
) -> ImportReport:
    """Imports what was read of a file, and logs what its calls used where `uses`; what became of it."""
    shared = sum(track.inherits for track in reading.tracks)
    if shared > SHARED_MAX:
        raise InputError(
            f"{file} has {len(reading.tracks):,} sessions that share {shared:,} records, each read again for each; "
            f"up to {SHARED_MAX:,} are taken: split the file",
            code="too-much-shared",
        )
    importer = Importer(ns.engine, reading, file, None if name is None else session_name(name), redaction)
    taken = importer.run(progress)
    ns.follow()
    if uses:
        from vmstore.transfer.used_pages import observe

        for session in taken:
            observe(ns, session.session)
    names = {session.session: ns.session_info(session.session).session for session in taken}
    counts: Counter[str] = Counter()
    for found in importer.suspects.values():
        counts.update(found.counts)
    masked: Counter[str] = Counter()
    for door in importer.doors.values():
        masked.update(door.counts)
    return ImportReport(
        sessions=[imported(ns.session_info(session.session), reading.format) for session in taken],
        new=sum(session.new for session in taken),
        problems=[LineProblem(*problem) for session in taken for problem in session.problems],
        torn=None if reading.torn is None else reading.torn.line,
        suspects=dict(sorted(counts.items())),
        suspect_pages=[f"{names[key]}/p{page}" for key, found in importer.suspects.items() for page in found.pages],
        masked=dict(sorted(masked.items())) if any(session.new for session in taken) else {},
    )


def imported(info: SessionInfo, format: str) -> ImportedSession:
    """A session after an import, by its counts."""
    return ImportedSession(
        session=info.session,
        format=format,
        fidelity=info.fidelity,
        turns=info.turns,
        calls=info.calls,
        messages=info.messages,
        pages=info.pages,
        mutations=info.mutations,
        raw=info.raw,
        position=info.position,
    )
