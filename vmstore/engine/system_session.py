"""Rules that keep the namespace's own session apart from all others, and who may write to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, get_args

from vmstore.core.grants import CHARTER_NAME, Principal
from vmstore.core.mutation import (
    LIVE,
    AnyMutation,
    Approve,
    Configure,
    Decision,
    Erase,
    Known,
    Mark,
    NamespacePolicy,
    Open,
    Pack,
    Redact,
    Revoke,
    Segment,
    Settings,
    Share,
    Turn,
)
from vmstore.core.page import Fidelity
from vmstore.engine.head import GateHead
from vmstore.errors import RefusedError

OF_CHARTER: frozenset[type] = frozenset((Share, Revoke, NamespacePolicy))
"""The kinds that stand in the namespace's own session alone."""

IN_CHARTER: frozenset[type] = OF_CHARTER | {Open, Mark, Erase, Approve}
"""All that it may hold; what may stand in any session is added here.

An `approve` of before stands in the session it is of, where nobody heeds it any more.
"""


assert {*get_args(Known)} >= IN_CHARTER, "the namespace's own session holds kinds that are written"


def charter_stands_apart(head: GateHead, m: AnyMutation, place: object) -> str | None:
    """The namespace's own session holds what belongs to no other, and nothing else."""
    if head.charter and type(m) not in IN_CHARTER:
        return "this is the namespace's own session, which only the namespace writes to; use another"
    if not head.charter and type(m) in OF_CHARTER:
        return f"a {m.kind} stands in the namespace's own session; see specs/sharing.md"
    return None


RESERVED = "commands_write_it"

_COMMANDS: dict[type, str] = {
    Open: "`store.session(name, create=True)`",
    Settings: "`configure` of a live session, which `store.session(name, l0_tokens_max=...)` makes",
    Erase: "`vmstore erase`, which destroys what it names",
    Approve: "`vmstore approve`",
    Redact: "`store.session(name, redaction=...)`",
    Share: "`vmstore share`",
    Revoke: "`vmstore revoke`",
    NamespacePolicy: "`vmstore retain`",
}


OF_KERNEL: frozenset[type] = frozenset((*get_args(Decision), Pack, Segment, Configure, Turn))
"""The kinds that a kernel folds into its state, where one is at work."""


assert OF_KERNEL.isdisjoint(OF_CHARTER), "no kernel is at work in the namespace's own session"

WATCHED = OF_KERNEL | _COMMANDS.keys() | {Mark}
"""The kinds that `commands_write_it` may refuse."""


def commands_write_it(m: AnyMutation, live: Callable[[], bool]) -> str | None:
    """Kinds that record an act, a sent request or a kernel's decision are written by commands only, never by hand."""
    command = _COMMANDS.get(type(m))
    if isinstance(m, Mark) and m.reason != Mark.NAMED:
        command = "`vmstore import`, which counts what it takes in"
    if isinstance(m, Mark) and m.back_to:
        command = "`Live.rewind`, which undoes what came after"
    if isinstance(m, Pack) and m.fidelity == Fidelity.RECORDED:
        command = "`store.record`, with the request that was sent; what nobody sent is derived"
    if isinstance(m, Pack) and (m.renderer == LIVE or (m.sent, m.sent_tokens, m.voided) != (None, 0, None)):
        command = "`pack` of a live session, which makes its request"
    if isinstance(m, Configure) and m.beside:
        command = "`pack` of a live session, which measures what stands beside the pages"
    if command is None and type(m) in OF_KERNEL and live():
        command = "the kernel of a live session; ask it with the verbs of `vmstore.Live`"
    return None if command is None else f"such a {m.kind} is written by {command}"


def check_name(name: str, hidden: int) -> None:
    """Refuses the name of the namespace's own session to any other."""
    if name == CHARTER_NAME and hidden != Open.CHARTER:
        raise RefusedError(
            f"a session cannot be called {CHARTER_NAME!r}: the namespace's own session is, which holds what "
            "belongs to no other; take another name (rule name_is_free)",
            code="name_is_free",
        )


class RegionGuard(Protocol):
    """Says what the handle of a region may do, for whom it was opened."""

    who: tuple[Principal, ...]

    def read(self) -> None:
        """Raises UnknownError where nothing may be read."""
        ...

    def may_write(self) -> bool:
        """Whether something may be written."""
        ...

    def change(self) -> None:
        """Raises RefusedError where nothing may be changed."""
        ...

    def let(self, mutations: Sequence[AnyMutation], *, charter: bool) -> None:
        """Raises RefusedError with the rule where these may not be written; asked while nobody else can write."""
        ...


def let(warden: RegionGuard, heads: Sequence[GateHead]) -> None:
    """Asks for all that is new in heads that are about to be written."""
    for head in heads:
        warden.let(head.recent.mutations, charter=head.charter)
