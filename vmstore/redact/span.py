"""Findings in a text: a kind of secret or of personal data, and its span."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import NamedTuple


class SecretKind(enum.StrEnum):
    """Kinds of findings, from the surest to the least sure: the surer of two overlapping ones names the span."""

    PRIVATE = enum.auto()  # a <private> block
    PRIVATE_KEY = enum.auto()  # a PEM block
    JWT = enum.auto()
    API_KEY = enum.auto()  # known by its vendor's prefix
    AUTHORIZATION = enum.auto()  # what a header carries
    PASSWORD = enum.auto()  # of a name that says so, or of an address
    SECRET = enum.auto()  # of a name that says so
    IBAN = enum.auto()
    CARD = enum.auto()
    SSN = enum.auto()  # of social security, tax or identity: the number by which a state knows somebody
    EMAIL = enum.auto()
    PHONE = enum.auto()
    IP = enum.auto()
    USER = enum.auto()  # the name of a home folder, or of who owns a listed file


SURENESS = {kind: rank for rank, kind in enumerate(SecretKind)}
USUAL = frozenset(SecretKind) - {SecretKind.IP, SecretKind.USER}
"""What is looked for unless somebody says otherwise: addresses of machines and home folders are in every log."""
HANDED_OUT = USUAL | {SecretKind.USER}
"""What is masked in an export: its reader need not know who worked where."""


class SecretSpan(NamedTuple):
    """A stretch of a text, from character `start` up to, not including, `end`, and what it is."""

    start: int
    end: int
    kind: SecretKind


class ScannedText(NamedTuple):
    """A text, and the same in small letters, character for character."""

    text: str
    low: str


class Literal(NamedTuple):
    """Looks at the places of a literal and nowhere else: `at` says what stands there, if anything."""

    literal: str
    at: Callable[[ScannedText, int], SecretSpan | None]
    low: bool = False  # whether it is looked for in small letters


class TextScan(NamedTuple):
    """Looks at a whole text: for what has no literal, as numbers, or where a literal may stand behind the value."""

    kinds: frozenset[SecretKind]
    scan: Callable[[ScannedText], Iterator[SecretSpan]]
    needs: tuple[str, ...] = ()  # literals in small letters, of which one must stand in the text


def small(text: str) -> ScannedText:
    """A text beside itself in small letters; the one letter that would become two is taken for another."""
    return ScannedText(text, text.replace("\u0130", "I").lower())
