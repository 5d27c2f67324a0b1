"""Policies of a namespace: what holds for all of it until another is stated."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from vmstore.core.mutation_kind import CellRef, Mutation


class PolicySubject(IntEnum):
    """Subjects of a policy; the numbers are on the wire."""

    RETENTION = 0
    LANGUAGE = 1
    COLD = 2


class NamespacePolicy(Mutation, frozen=True, array_like=True, tag=65):
    """A policy holds in this namespace from here on, in place of one of the same subject and name.

    `value` is a cell with the policy as JSON; None takes the policy away.
    """

    NUMBER: ClassVar[int] = 65
    subject: int
    name: CellRef
    value: CellRef | None = None
