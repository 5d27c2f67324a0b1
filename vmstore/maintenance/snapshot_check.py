"""Checks snapshots of live sessions against a fold of the log."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from vmstore.errors import VmstoreError
from vmstore.live.runtime import Runtime
from vmstore.live.snapshots.snapshot import FoldedSession, Snapshot, SnapshotImage, pictured, unfold
from vmstore.namespace.folder import SNAPSHOTS
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import Branch
from vmstore.views.dispatch import hash_at


def wrong_folds(ns: Namespace) -> Iterator[tuple[str, str]]:
    """The sessions whose kept fold is another than the log's, by name, and what to do.

    One that nobody would go on from, for it is of other code, of another place or older than an erasure, is not
    looked at.
    """
    folder = None if ns.views_folder is None else ns.views_folder / SNAPSHOTS
    for file in () if folder is None else sorted(folder.glob("*.fold")):
        key = int(file.stem) if file.stem.isascii() and file.stem.isdigit() else 0
        name = ns.views.execute("SELECT name FROM sessions WHERE session = ?", (key,)).get
        found = Snapshot(file.parent, key).read(ns.projection.last_erasure)
        if name is not None and found is not None and not _is_right(ns, Branch(ns.views, key), found):
            yield str(name), f"{file} is not what the log folds into; delete it and it is made again"


def _is_right(ns: Namespace, lane: Branch, found: SnapshotImage) -> bool:
    """Whether a kept fold is, to the byte, what the log gives up to where it stands, or is of another place."""
    runtime, kept = Runtime(ns.reader, lane, past=True), Runtime(ns.reader, lane, past=True)
    try:
        if hash_at(ns.log, lane, found.position) != found.hash:
            return True
        runtime.stand(found.position)
    except (VmstoreError, LookupError):  # the log check says why
        return True
    into = _folded(kept)
    try:
        unfold(found.written, into)
    except (ValueError, LookupError, TypeError, AttributeError, msgspec.MsgspecError):
        return True  # nobody resumes from it
    right = _folded(runtime)
    try:
        measured = into.metrics.measures(into.state) == right.metrics.measures(right.state)
    except Exception:  # what damage made of it
        return False
    comparable = into._replace(words=right.words, metrics=right.metrics)  # these count acts that wrote nothing too
    return measured and pictured(comparable) == pictured(right)


def _folded(runtime: Runtime) -> FoldedSession:
    return FoldedSession(runtime.state, runtime.spoken, runtime.metrics, runtime.index)
