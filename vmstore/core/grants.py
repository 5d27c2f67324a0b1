"""Grants in a namespace, logged in its own session and in no user's.

It stands in the namespace's own session, its *charter*, which holds nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntFlag
from typing import ClassVar, NamedTuple

from vmstore.core.mutation_kind import CellRef, Mutation
from vmstore.core.page import WordEnum
from vmstore.errors import InputError

CHARTER_NAME = "vmstore"
"""What the namespace's own session is called; no other session is given this name."""


class GrantScope(WordEnum):
    """To whom something is granted: one session, a user, a sandbox (another namespace), or everybody."""

    SESSION = 0
    USER = 1
    SANDBOX = 2
    GLOBAL = 3


class Verb(IntFlag):
    """Verbs that can be granted; several are summed."""

    READ = 1
    WRITE = 2
    GRANT = 4


WORDS = {"read": Verb.READ, "write": Verb.WRITE, "grant": Verb.GRANT}
assert set(WORDS.values()) == set(Verb), "what is granted can be said, and taken back"
assert sum(Verb) == 2 ** len(Verb) - 1, "each verb is a bit of its own, so a sum says which"


NAME_CHARS_MAX = 200


class Principal(NamedTuple):
    """Somebody to whom something is granted: `user:ann`, `sandbox:team-a`, `session:team-a/s1`, or `global`."""

    scope: GrantScope
    name: str = ""

    def __str__(self) -> str:
        return self.scope.word if self.scope is GrantScope.GLOBAL else f"{self.scope.word}:{self.name}"


def principal(text: str) -> Principal:
    """The principal a text names; a word alone is a sandbox. Raises InputError where it names none."""
    shown = text if isinstance(text, str) else repr(text)
    word, colon, name = shown.partition(":")
    scope = GrantScope.__members__.get(word.upper()) if colon or word == "global" else GrantScope.SANDBOX
    name = name if colon else "" if word == "global" else word
    if (
        scope is None
        or not name.isprintable()
        or len(name) > NAME_CHARS_MAX
        or bool(name) is (scope is GrantScope.GLOBAL)
    ):
        raise InputError(
            f"{shown[:60]!r} names nobody; write user:NAME, sandbox:NAMESPACE, session:NS/NAME or global",
            code="not-a-principal",
        )
    return Principal(scope, name)


def verbs_of(may: str | Iterable[str]) -> Verb:
    """The verbs that words list, as `read,write`; who may write or grant may read."""
    words = [word.strip() for word in may.split(",")] if isinstance(may, str) else list(may)
    found = Verb(0)
    for word in words:
        if word not in WORDS:
            raise InputError(f"there is no verb {word!r:.40}; there are {', '.join(WORDS)}", code="no-verb")
        found |= WORDS[word]
    if not found:
        raise InputError(f"nothing is granted where no verb is named; there are {', '.join(WORDS)}")
    return found | Verb.READ


def words_of(verbs: Verb) -> list[str]:
    """The words of verbs, in order."""
    return [word for word, verb in WORDS.items() if verb in verbs]


class Share(Mutation, frozen=True, array_like=True, tag=63):
    """Somebody may do something in this namespace from here on.

    `scope` says what kind of principal it is, `principal` is a cell with its name, None of
    everybody. `verbs` is a sum of `Verb`. `by` is a cell that names who granted it, None
    where the opener of the namespace did.
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
