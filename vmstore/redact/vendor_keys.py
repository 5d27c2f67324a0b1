"""Keys that are known by themselves: those of vendors, tokens in parts, blocks of private keys."""

from __future__ import annotations

import base64
import binascii
import re

from vmstore.redact.span import Literal, ScannedText, SecretKind, SecretSpan
from vmstore.redact.vendors import AROUND, VENDORS

SAMPLE = re.compile(
    r"(?i)example|your[_-]|(.)\1{5}|x{5}|1234567890|0123456789|abcdefghij|\.\.\.|placeholder|redac"
    r"ted"
)
"""What stands in no key but in those that a manual shows."""
_JUDGED_CHARS = 600  # of what may be a key, before it is followed to its end
_SAMPLE_CHARS = 100  # of a key, in which that is looked for
_BEFORE_CHARS_MAX = 40

_JWT = re.compile(r"eyJ[\w-]{6,}+\.(?:eyJ[\w-]{6,}+(?:\.[\w-]*+)?|[\w-]*+\.[\w-]{8,}+\.[\w-]{8,}+\.[\w-]{8,}+)")
_PEM = re.compile(
    r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|-----BEGIN OpenVPN Static key V1--"
    r"---"
)
_MARK = re.compile(r"-{4,5} ?(BEGIN|END) ")
_CLOSE = re.compile(r"[^\n-]{0,80}-{4,5}")
_LINES = re.compile(r"(?:[A-Za-z0-9+/=:, -]{0,200}+(?:\r?\n|\\r|\\n))*+")  # of one that is cut off
_EMPTY = re.compile(
    r"(?:\\[rn]|\s)*(?:<[^<>\n]{0,80}>|[\[{($][^\n]{0,80}[\]})]|[.\u2026xX*]{0,80}|[a-zA-Z]{0,12}(?: [a-zA-Z]{1,"
    r"12}){1,8}[.\u2026]*)(?:\\[rn]|\s)*"
)
_REST = re.compile(r"[\w+/-]*+={0,2}")
_BEFORE_PEM = 60  # characters between the dashes and the words
_PEM_CHARS_MAX = 1 << 16
_OPENSSH = re.compile(r"b3BlbnNzaC1rZXktdjE[\w+/\s]{60,}+={0,2}")  # `openssh-key-v1`, without the lines around it
_ENCODED = re.compile(r"LS0tLS1CRUdJTi[\w+/-]{20,66}+")  # `-----BEGIN `, as base64 has it


def _vendor(literal: str, follows: str) -> Literal:
    shape = re.compile(re.escape(literal) + follows)
    free = not literal[0].isalnum() or "/" in literal  # may stand right behind a letter or a digit

    def at(text: ScannedText, place: int) -> SecretSpan | None:
        if not free and place and (text.text[place - 1].isalnum() or text.text[place - 1] == "_"):
            return None
        if place and text.text[place - 1] in "+/" and text.text[max(place - 13, 0) : place - 1].isalnum():
            return None  # a piece of base64
        stop = place + _JUDGED_CHARS
        found = _key(shape.match(text.text, place, stop))
        return _key(shape.match(text.text, place)) if found is not None and found.end == stop else found

    return Literal(literal, at)


def _around(literal: str, before: str, follows: str) -> Literal:
    free = "" if before.startswith("[?&") else "(?<![A-Za-z0-9])(?:bot)?"  # what begins with a sign may stand anywhere
    behind, shape = re.compile(f"{free}({before})\\Z"), re.compile(re.escape(literal) + follows)

    def at(text: ScannedText, place: int) -> SecretSpan | None:
        found = shape.match(text.text, place)
        first = behind.search(text.text[max(place - _BEFORE_CHARS_MAX, 0) : place]) if found else None
        if found is None or first is None:
            return None
        if found.lastindex:
            return _key(found)
        return SecretSpan(place - len(first[1]), found.end(), SecretKind.API_KEY)

    return Literal(literal, at)


def _key(found: re.Match[str] | None) -> SecretSpan | None:
    if found is None:
        return None
    start, end = found.span(found.lastindex or 0)
    return (
        None
        if SAMPLE.search(found.string, start, min(end, start + _SAMPLE_CHARS))
        else SecretSpan(start, end, SecretKind.API_KEY)
    )


def pair(encoded: str) -> bool:
    """Whether base64 is a name and a password."""
    try:
        decoded = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    return b":" in decoded and decoded.isascii()


def _jwt(text: ScannedText, place: int) -> SecretSpan | None:
    if place and (text.text[place - 1].isalnum() or text.text[place - 1] in "_-"):
        return None  # its run was looked at where it began
    found = _JWT.match(text.text, place)
    cut = found is not None and text.text.startswith(("..", "\u2026"), found.end() - (found[0][-1] == "."))
    return SecretSpan(*found.span(), SecretKind.JWT) if found and not cut else None


def _pem(text: ScannedText, place: int) -> SecretSpan | None:
    """A private key to its end; where that is missing, the lines that can be part of it."""
    begin = text.text.rfind("BEGIN ", max(place - _BEFORE_PEM, 0), place)
    before = text.text[max(begin - 6, 0) : begin]
    start = begin - len(before) + len(before.rstrip(" ").rstrip("-"))
    found = _PEM.match(text.text, start) if begin >= 0 else None
    if found is None:
        return None
    mark = _MARK.search(text.text, found.end())
    if mark is not None and mark[1] == "END" and _EMPTY.fullmatch(text.text, found.end(), mark.start()):
        return None  # only says that one belongs there
    lines = _LINES.match(text.text, found.end())
    cut = lines.end() if lines else found.end()
    if mark is not None and mark[1] == "END" and mark.start() <= max(cut, found.end() + _PEM_CHARS_MAX):
        close = _CLOSE.match(text.text, mark.end())
        return SecretSpan(start, close.end() if close else mark.end(), SecretKind.PRIVATE_KEY)
    return SecretSpan(start, cut, SecretKind.PRIVATE_KEY)


def _encoded(text: ScannedText, place: int) -> SecretSpan | None:
    """A private key in PEM that is base64 once more, as a kubeconfig has it; a certificate is none."""
    found = _ENCODED.match(text.text, place)
    if found is None:
        return None
    try:
        head = base64.b64decode(found[0][:80])
    except (binascii.Error, ValueError):
        return None
    if b"PRIVATE KEY" not in head:
        return None
    end = _REST.match(text.text, found.end()).end()  # type: ignore[union-attr]
    return SecretSpan(place, end, SecretKind.PRIVATE_KEY)


def _openssh(text: ScannedText, place: int) -> SecretSpan | None:
    found = _OPENSSH.match(text.text, place)
    return SecretSpan(place, place + len(found[0].rstrip()), SecretKind.PRIVATE_KEY) if found else None


KEYS: tuple[Literal, ...] = (
    *(_vendor(literal, follows) for literal, follows in VENDORS),
    *(_around(*row) for row in AROUND),
    Literal("eyJ", _jwt),
    Literal("LS0tLS1CRUdJTi", _encoded),
    Literal("b3BlbnNzaC1rZXktdjE", _openssh),
)
ANYWHERE = frozenset(
    (*(one for one, *_ in AROUND), *(one for one, _ in VENDORS if not one[0].isalnum() or "/" in one), "LS0tLS1CRUdJTi")
)
"""The literals of keys that may stand right behind a letter."""
BLOCKS: tuple[Literal, ...] = (Literal("private key", _pem, low=True), Literal("static key v1", _pem, low=True))
