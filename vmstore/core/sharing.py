"""What is logged of a namespace and of no session of a user's: who may do what in it.

It stands in the namespace's own session, its *charter*, which holds nothing else.
"""

from __future__ import annotations

from enum import IntFlag
from typing import ClassVar

from vmstore.core.kind import CellRef, Mutation
from vmstore.core.page import Word

CHARTER_NAME = "vmstore"
"""What the namespace's own session is called; no other session is given this name."""


class Scope(Word):
    """To whom something is granted: one session, a user, a sandbox (another namespace), or everybody."""

    SESSION = 0
    USER = 1
    SANDBOX = 2
    GLOBAL = 3


class Verb(IntFlag):
    """What may be granted; as a number, the sum of several."""

    READ = 1
    WRITE = 2
    GRANT = 4


class Share(Mutation, frozen=True, array_like=True, tag=63):
    """Somebody may do something in this namespace from here on.

    `scope` says what kind of principal it is, `principal` is a cell with its name, None of
    everybody. `verbs` is a sum of `Verb`. `by` is a cell that names who granted it, None of whoever
    opened the namespace itself.
    """

    NUMBER: ClassVar[int] = 63
    scope: int
    principal: CellRef | None
    verbs: int
    by: CellRef | None = None


class Revoke(Mutation, frozen=True, array_like=True, tag=64):
    """Some verbs of the `share` at a position are taken back; `by` as there."""

    NUMBER: ClassVar[int] = 64
    share: int
    verbs: int
    by: CellRef | None = None
