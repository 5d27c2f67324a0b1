"""The doors of sessions that mask or refuse: every cell of theirs passes one before it is sealed.

Capture masks messages first, so that sizes and tokens are those of the masked text;
what comes to the gate by another way is masked there, and its sizes set right.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

import apsw
import msgspec

from vmstore.core.mutation import (
    AnyMutation,
    CellRef,
    Compress,
    Create,
    Mark,
    Mutation,
    Pack,
    Redact,
    Update,
    cell_refs,
)
from vmstore.core.page import Origin
from vmstore.core.redaction import Redaction, RedactionSource, reason_of
from vmstore.engine.head import NewSession
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projectors.decisions import in_force
from vmstore.views.projectors.redactions import again_from, numbers_after, policy_at

if TYPE_CHECKING:
    from vmstore.redact.redactor import MaskedPart, Redactor

DOORS_MAX = 64
CHARS_PER_TOKEN = 4
_SIZED = (Create, Update, Compress)


class Redactors:
    """The doors of a log's sessions, made when they are needed."""

    def __init__(self, log: Log, db: Callable[[], apsw.Connection]) -> None:
        self._log = log
        self._db = db
        self._doors: OrderedDict[int, Redactor] = OrderedDict()

    def of(self, session: int, policy: int, position: int, follow: Callable[[], object]) -> Redactor | None:
        """A session's door as it stands at a position; None where it hides nothing."""
        if not policy:
            return None
        door = self._doors.get(session)
        if door is None:
            door = new_door(Redaction(policy))
            follow()
            lane = Branch(self._db(), session)
            if in_force(lane, position) is None:  # nothing is repeated to a live session
                door.again(again_from(self._log, lane, position))
        door.policy = Redaction(policy)
        door.forget()
        if door.position != position:
            follow()
            for kind, number in numbers_after(Branch(self._db(), session), door.position):
                door.used(kind, number)
            door.settle(position)
        self.keep(session, door)
        return door

    def keep(self, session: int, door: Redactor) -> None:
        """Takes a door as a session's."""
        self._doors[session] = door
        self._doors.move_to_end(session)
        if len(self._doors) > DOORS_MAX:
            self._doors.popitem(last=False)

    def begin(self, opening: NewSession) -> Redactor | None:
        """The door of a session that is about to begin; RefusedError where its name or its source gives it away."""
        policy = opening.redaction
        if policy is None and opening.origin is Origin.FORK:
            policy = policy_at(Branch(self._db(), opening.parent), opening.parent_position)
        if not policy:
            return None
        door = new_door(Redaction(policy))
        door.clean(opening.name, "the name of the session")
        door.clean(opening.source or "", "where the session comes from")
        return door


def new_door(policy: Redaction) -> Redactor:
    """A door that knows nothing yet; what finds secrets is loaded only now."""
    from vmstore.redact.redactor import Redactor

    return Redactor(policy)


Sized = Create | Update | Compress


def resized(mutation: Sized, before: int, after: int) -> Sized:
    """A mutation whose content has other bytes than it was written with, with the sizes it has now."""
    if before == after or mutation.size != before:
        return mutation
    return msgspec.structs.replace(mutation, size=after, tokens=-(-mutation.tokens * after // max(before, 1)))


class BatchRedaction:
    """Redaction of one batch: which cells hold placeholders, and the mutation that records them."""

    def __init__(self, door: Redactor) -> None:
        self.door = door
        self._found: dict[CellRef, tuple[MaskedPart, int, int]] = {}  # by cell, with its sizes as given and as sealed

    def content(self, content: bytes) -> bytes:
        """A content as it may be sealed."""
        return self.door.content(content, "a content")

    def note(self, ref: CellRef, masked_content: bytes, content: bytes) -> None:
        """Remembers what stands in a cell that was sealed."""
        masked = self.door.masked(content)
        if masked is not None:
            self._found[ref] = masked, len(masked_content), len(content)

    def begin(self) -> None:
        """A commit begins: cells of the one before are no longer named by their index."""
        self._found = {ref: masked for ref, masked in self._found.items() if type(ref) is tuple}

    def sized(self, mutation: AnyMutation) -> AnyMutation:
        """A mutation whose content was masked at the gate, with the sizes it has now."""
        if isinstance(mutation, _SIZED) and mutation.content in self._found:
            return resized(mutation, *self._found[mutation.content][1:])
        return mutation

    def record(self, mutation: AnyMutation, position: int) -> Redact | None:
        """The `redact` mutation that follows a mutation whose cells were masked; None where none was."""
        if not isinstance(mutation, Mutation) or not self._found:
            return None
        findings = [self._found[ref][0] for ref in cell_refs(mutation) if ref in self._found]
        if not findings:
            return None
        found = tuple(sorted(secret for masked in findings for secret in masked.found))
        after = mutation.tokens if isinstance(mutation, _SIZED) else 0
        before = max(0, after + sum(masked.chars for masked in findings) // CHARS_PER_TOKEN)
        page = position if isinstance(mutation, Create) else getattr(mutation, "page", 0) or 0
        return Redact(
            page,
            reason=reason_of({kind for kind, _, _ in found}),
            count=sum(masked.times for masked in findings),
            by=RedactionSource.DETECTORS_2,
            found=found,
            tokens_before=before if after else 0,
            tokens_after=after,
        )

    def add(self, mutation: AnyMutation, take: Callable[[AnyMutation], int], position: int) -> int:
        """Takes a mutation in with the record of what was masked in it, which a pack and a mark stand after."""
        mutation = self.sized(mutation)
        record = self.record(mutation, position)
        if record is not None and isinstance(mutation, Pack | Mark):
            take(record)
            return take(mutation)
        position = take(mutation)
        if record is not None:
            take(record)
        return position
