"""Artifacts of a session: files of its project, which a prompt holds where somebody approved them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

import msgspec

from vmstore.core.address import page_name, page_position
from vmstore.core.asof import Moment, When, one_moment
from vmstore.core.decision import Cause
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Annotate, Approve, Evict, Link, Unpin
from vmstore.core.page import LinkKind, PageType, Role, Standing
from vmstore.core.redaction import Redaction
from vmstore.errors import InputError, UnknownError
from vmstore.live.rewind import HOLDERS
from vmstore.namespace.namespace import Namespace
from vmstore.providers.parts import media_of
from vmstore.redact.redactor import Redactor
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_reads import asked_at
from vmstore.store.recall.pen import Pen, write
from vmstore.store.work.plans import Plans, refuse_erased
from vmstore.views.branch import NEVER
from vmstore.views.projectors.decisions import settings_at
from vmstore.views.projectors.redactions import barred_files, policy_at
from vmstore.work.artifact import TAG, ArtifactCheck, ProjectFile, checked, project_file

NAME_CHARS_MAX, WHO_CHARS_MAX = 200, 200
_NAMES = (
    *("page", "session", "path", "mime", "sha256", "bytes", "tokens", "task", "status", "approval", "approved_by"),
    *("refused", "at"),
)


class ArtifactInfo(msgspec.Struct, frozen=True):
    """A file of a session: its page, its path in the project, the digest of the file.

    `status` is active, or abandoned where a later file of its path is there; `task` the page of the task it is a part
    of. `approval` is approved or denied as somebody said last, None before; `refused` counts how often it was asked
    for meanwhile. `path` is None of what came from no file, `sha256` where something of it was masked.
    """

    page: str
    session: str
    path: str | None
    mime: str
    sha256: str | None
    bytes: int
    tokens: int
    task: str | None
    status: str
    approval: str | None
    approved_by: str | None
    refused: int
    at: str


class Artifacts:
    """The files of a session: `session.work.artifacts`."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    # ---- asking

    def all(
        self, at: When | None = None, *, task: str | int | None = None, **moment: Unpack[Moment]
    ) -> list[ArtifactInfo]:
        """The files that hold now or at a moment, oldest first; with `task` those that are a part of it."""
        part = None if task is None else Plans(self._session).get(task, at, **moment).page
        found = self._asked(at, moment)
        return [one for one in found if one.status != Standing.ABANDONED.word and part in (None, one.task)]

    def get(self, artifact: str | int, at: When | None = None, **moment: Unpack[Moment]) -> ArtifactInfo:
        """A file by its page or its path, of a path the last; ErasedError where it was erased."""
        name = page_name(artifact) if isinstance(artifact, int) else artifact
        found = self._asked(at, moment)
        one = next((one for one in reversed(found) if name in (one.page, one.path)), None)
        if one is None:
            refuse_erased(self._session, str(name))
            near = Namespace.nearest(str(name), [one.path or one.page for one in found]) if found else "there is none"
            raise UnknownError(f"there is no artifact {name!r:.60}; {near}", code="no-artifact")
        return one

    def check(self, root: str | Path | None = None) -> list[ArtifactCheck]:
        """Each file beside what lies at its path in the project now: same, changed, gone or masked."""
        return [checked(one.page, one.path, one.sha256, root) for one in self.all() if one.path is not None]

    def _asked(self, at: When | None, moment: Any) -> list[ArtifactInfo]:
        rows = asked_at(self._session, f"ARTIFACTS {', '.join(_NAMES)}", one_moment(at, moment))
        return [ArtifactInfo(**dict(zip(_NAMES, row, strict=True))) for row in rows]

    # ---- writing

    def add(
        self,
        path: str | Path,
        *,
        root: str | Path | None = None,
        task: str | int | None = None,
        mime: str | None = None,
        at_us: int | None = None,
    ) -> ArtifactInfo:
        """Takes in a file of the project below `root`, by default the working folder, with its path and SHA-256.

        It stands in no prompt until it is asked for. Said again of a file as it was nothing is written, of one that
        changed it takes the place of the earlier one. InputError where the file lies or leads outside, is gone, or
        holds more than 16 MiB.
        """
        file = project_file(path, root, mime)
        before = next((one for one in reversed(self.all()) if one.path == file.path), None)
        part = None if task is None else Plans(self._session).get(task).page
        if before is not None and before.sha256 == file.sha256 and part in (None, before.task):
            return before
        part = part or (before.task if before is not None else None)
        whole = self._keeps(file)
        return self.get(write(self._session, lambda pen: _taken(pen, file, before, part, whole=whole), at_us))

    def _keeps(self, file: ProjectFile) -> bool:
        """Whether the session holds a file to the byte: nothing of it is masked at the door."""
        with self._session._ns.asking():
            policy = policy_at(self._session._lane())
        masking = Redactor(Redaction.MASK)
        return policy is Redaction.OFF or masking.content(file.content, "an artifact") == file.content

    def approve(self, artifact: str | int, *, who: str, granted: bool = True, at_us: int | None = None) -> ArtifactInfo:
        """Says that a prompt may hold what a file says now, or, not `granted`, that none may; `who` decided so.

        With the setting `artifacts="ask"` it waits for that word, and a denied one leaves the prompt with it.
        """
        if not isinstance(who, str) or not 0 < len(who) <= WHO_CHARS_MAX or not who.isprintable():
            raise InputError(f"{who!r:.40} says nobody: a text of 1 to {WHO_CHARS_MAX} characters", code="not-a-text")
        number = page_position(self.get(artifact).page) or 0

        def do(pen: Pen) -> int:
            if pen.act is not None and not granted:
                _released(pen.act, number)
            return pen.add(Approve(int(granted), page=number, who=pen.cell(who.encode())))

        write(self._session, do, at_us)
        return self.get(number)


def opens(session: SessionHost, file: ArtifactInfo) -> bool:
    """Whether a text for a prompt may hold what a file says: approved, or allowed by its session and not denied."""
    with session._ns.asking():
        lane, number = session._lane(), page_position(file.page) or 0
        if barred_files(lane, NEVER, [number]):
            return False
        return file.approval == "approved" or settings_at(lane, NEVER) is not None


def _taken(pen: Pen, file: ProjectFile, before: ArtifactInfo | None, task: str | None, *, whole: bool) -> int:
    """Writes a file as a page that no prompt holds by itself, in the place of an earlier one; its page."""
    modality, mime, named = media_of(file.mime)
    part = Part(file.content, modality, mime, PageType.ARTIFACT, mime_name=named)
    labels = {"path": file.path} | ({"sha256": file.sha256} if whole else {})
    name = file.path[-NAME_CHARS_MAX:]
    links = [] if task is None else [(int(LinkKind.PART_OF), page_position(task) or 0)]
    page = pen.page(Draft(Role.USER, b"", (part,), hint=name, tags=(TAG,), metadata=labels), links)
    if pen.act is not None and (here := pen.act.state.here.get(page)) is not None:
        pen.add(Evict(page, Cause.ASKED, here.tokens))
    old = None if before is None else page_position(before.page)
    if old:
        pen.add(Link(page, old, int(LinkKind.SUPERSEDES)))
        pen.add(Annotate(old, status=Standing.ABANDONED))
        if pen.act is not None and (gone := pen.act.state.here.get(old)) is not None and not gone.pinned:
            pen.add(Evict(old, Cause.ASKED, gone.tokens))
    return page


def _released(act: Any, page: int) -> None:
    """Lets go of a page that is held in the prompt."""
    for holder in HOLDERS:
        if act.state.pages[page].holders >> holder & 1:
            act.tell(Unpin(page, holder))
