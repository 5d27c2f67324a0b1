"""Sessions of a namespace decided again: what is read for it, and where a what-if is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from vmstore.core.erasure import gone
from vmstore.core.text.json_text import plain
from vmstore.errors import ConflictError
from vmstore.live.compression import FormMaker
from vmstore.live.session_log import SessionLog
from vmstore.live.transcript import PageLabels
from vmstore.namespace.namespace import Namespace, session_name
from vmstore.replay.check import ReplayCheck, check
from vmstore.replay.redecide import Shorten
from vmstore.replay.save import SessionCopy, written
from vmstore.replay.sink import ReplayForm
from vmstore.replay.stimuli import RecordedCommit, Stimuli, stimuli
from vmstore.replay.whatif import Run, as_recorded, what_if
from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import object_of
from vmstore.views.stored_cells import read_cells
from vmstore.vm.kernel.managed_page import ManagedPage


class ContentReader:
    """Reads contents of a session's pages, and makes forms of them that nobody recorded."""

    def __init__(self, ns: Namespace, lane: Branch) -> None:
        self._ns = ns
        self._lane = lane
        self._shorter = FormMaker()

    def of(self, position: int) -> bytes:
        """The content that was recorded at a position; empty where the source never had it."""
        with self._ns.asking():
            for _, cell, sealed in self._lane.rows(_SEALED, (position,)):
                if cell is not None:
                    return read_cells(self._ns.log, self._ns.views, {cell: sealed}, gone)[cell]
        return b""

    def shorten(self, managed: ManagedPage, page: int, content: int, level: int) -> ReplayForm:
        """The form of a page at a level, or at the next higher one that has one, made without a model."""
        with self._ns.asking():
            rows = list(self._lane.rows(_NAMED, (page,)))
        hint, labels = rows[0] if rows else (None, None)
        known = PageLabels(name=hint, mime=plain(object_of(labels).get("mime")))
        made = self._shorter.of(msgspec.structs.replace(managed, page=page), known, self.of(content), level)
        return ReplayForm(made.level, made.method, int(made.lossy), made.content, made.tokens)


def _commits(ns: Namespace, lane: Branch, check: Callable[[], object] = bool) -> Iterator[RecordedCommit]:
    facts = SessionLog(ns.log, lane)
    for commit in facts.after(0):
        check()
        yield RecordedCommit(commit.at, commit.mutations, facts.cell)


def stimuli_of(ns: Namespace, key: int, name: str, check: Callable[[], object] = bool) -> tuple[Stimuli, Shorten]:
    """The stimuli of a session, and what makes forms for it; InputError where it was never live."""
    with ns.asking():
        lane = Branch(ns.views, key)
        return stimuli(name, _commits(ns, lane, check)), ContentReader(ns, lane).shorten


def replayed(
    ns: Namespace,
    key: int,
    name: str,
    policy: str | None,
    budget: int | None,
    settings: Mapping[str, Any],
    keep: str | None,
    check: Callable[[], object] = bool,
) -> Run:
    """A session decided again under changed settings, or its numbers as it was; stored where it is to be kept.

    `check` raises where nobody waits for the answer any more.
    """
    changes = {"policy": policy, "l0_tokens_max": budget, **settings}
    changed = {word: value for word, value in changes.items() if value is not None}
    if keep is not None:
        return kept(ns, key, name, changed, keep)
    found, shorten = stimuli_of(ns, key, name, check)
    if not changed:
        return as_recorded(found, shorten, check=check)
    return what_if(found, shorten, changed, check=check)


def checked(ns: Namespace, key: int, name: str) -> ReplayCheck:
    """Compares every decision of a session with what is decided now."""
    return check(*stimuli_of(ns, key, name))


def kept(ns: Namespace, key: int, name: str, changed: Mapping[str, Any], new: str) -> Run:
    """Stores a what-if as a session of its own."""
    if ns.key(session_name(new)) is not None:
        raise ConflictError(f"there is a session {new!r} already; keep it under another name", code="name-taken")
    found, shorten = stimuli_of(ns, key, name)

    def write() -> Run:
        lane = Branch(ns.views, key)
        source = SessionCopy(key, _commits(ns, lane), ContentReader(ns, lane).of)
        return written(ns.engine, found, source, new, changed, shorten)

    with ns.lock:
        ns.follow()
        return ns.retried(write)


_SEALED = """SELECT position, cell, commitment FROM versions
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_NAMED = "SELECT hint, labels FROM pages WHERE session = ? AND page IN (SELECT value FROM json_each(?))"
