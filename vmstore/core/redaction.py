"""Redaction before writing: a session's policy, the kinds of findings, and their record.

Numbers are the wire form and never change; `tests/redact/test_door.py` holds them against the detectors.
"""

from __future__ import annotations

from typing import ClassVar

from vmstore.core.mutation_kind import CellRef, Mutation
from vmstore.core.page import WordEnum
from vmstore.errors import InputError

TAG = "REDACTED"
"""The tag of a page in whose content something was masked."""


class Redaction(WordEnum):
    """A session's policy for secrets and personal data."""

    OFF = 0
    MASK = 1
    REFUSE = 2


class HiddenKind(WordEnum):
    """Kinds of findings, as the log names them."""

    PRIVATE = 1
    PRIVATE_KEY = 2
    JWT = 3
    API_KEY = 4
    AUTHORIZATION = 5
    PASSWORD = 6
    SECRET = 7
    IBAN = 8
    CARD = 9
    SSN = 10
    EMAIL = 11
    PHONE = 12
    IP = 13
    OTHER = 14
    USER = 15


class Reason(WordEnum):
    """The reason for a redaction; the gravest finding decides."""

    SENSITIVE_CREDENTIALS = 0
    MARKED_PRIVATE = 1
    PERSONAL_DATA = 2


class RedactionMethod(WordEnum):
    """Methods of redaction: a placeholder replaces the value."""

    MASKED = 0


class RedactionSource(WordEnum):
    """The source of a redaction, with its version: the detectors, or a person."""

    DETECTORS_1 = 0
    DETECTORS_2 = 1  # whole values, more names and vendors, forms, prose, numbers of states


PERSONAL = frozenset(
    (
        *(HiddenKind.IBAN, HiddenKind.CARD, HiddenKind.SSN, HiddenKind.EMAIL),
        *(HiddenKind.PHONE, HiddenKind.IP, HiddenKind.USER),
    )
)
assert HiddenKind.PRIVATE not in PERSONAL, "`reason_of` tells what somebody marked from what was detected"


class Redact(Mutation, frozen=True, array_like=True, tag=17):
    """Something was hidden before it was written, or a session's policy is another from here on.

    `policy` alone says what the session does from here on. Else `page` is the page in whose content
    or labels `count` placeholders stand, 0 where it is something else of the session, and `found`
    lists (kind, number of its placeholder, how often). `tokens_before` is estimated from the length
    of what was taken out. The value is nowhere, so nothing of it can be recovered.
    """

    NUMBER: ClassVar[int] = 17
    page: int = 0
    type: int = RedactionMethod.MASKED
    reason: int = Reason.SENSITIVE_CREDENTIALS
    count: int = 0
    by: int = RedactionSource.DETECTORS_1
    found: tuple[tuple[int, int, int], ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    recoverable: int = 0
    policy: int | None = None


class Artifact(WordEnum):
    """Artifacts that can leave a store; ALL is every kind."""

    ALL = 0
    JSONL = 1
    PARQUET = 2
    SQLITE = 3
    HTML = 4
    MARKDOWN = 5
    CHAT = 6


class Approve(Mutation, frozen=True, array_like=True, tag=34):
    """Somebody lifts redaction for what leaves of the session, or, not `granted`, puts it back.

    `artifact` is the kind of export, `until` the moment it ends, in microseconds since 1970, `who` a
    cell with a word by whom. `page` is 0: it is of the whole session. It stands in the namespace's own
    session, which never travels, and names by its uid the `session` it is of. One that stands in a
    session itself says nothing here: it may have come from anywhere.
    """

    NUMBER: ClassVar[int] = 34
    granted: int
    artifact: int = Artifact.ALL
    until: int | None = None
    who: CellRef | None = None
    page: int = 0
    session: bytes | None = None


def reason_of(kinds: set[int]) -> Reason:
    """The reason that follows from the kinds of findings."""
    if kinds <= PERSONAL:
        return Reason.PERSONAL_DATA
    return Reason.MARKED_PRIVATE if kinds <= PERSONAL | {HiddenKind.PRIVATE} else Reason.SENSITIVE_CREDENTIALS


def policy_of(word: str) -> Redaction:
    """A policy by its word; InputError naming the words there are."""
    found = Redaction.of(word) if isinstance(word, str) else None
    if found is None:
        words = ", ".join(policy.word for policy in Redaction)
        raise InputError(f"there is no redaction {word!r:.40}; there are {words}", code="no-redaction")
    return Redaction(found)
