"""Keys that are known by how they begin: those of vendors, tokens in three parts, PEM blocks.

A shape is a literal and what must follow it. Shapes that other words could have ask for a digit
beside letters, so that `sk-some-long-class-name` stays.
"""

from __future__ import annotations

import re

from vmstore.redact.span import Kind, Literal, Span, Text

_MIXED = r"(?=[\w-]{0,60}\d)(?=[\w-]{0,60}[A-Z])"  # a digit and a capital not far from its beginning
_HEX = "[0-9a-f]"
_ALNUM = "[A-Za-z0-9]"

SHAPES: tuple[tuple[str, str], ...] = (
    # models
    ("sk-ant-", r"[\w-]{20,250}"),
    ("sk-or-", r"(?:v1-)?" + _HEX + "{40,80}"),
    ("sk-lf-", _HEX + r"{8}-[0-9a-f-]{20,40}"),
    ("sk-", rf"(?:{_MIXED}[A-Za-z0-9_-]{{20,250}}|{_HEX}{{32,64}})(?![A-Za-z0-9])"),
    ("AIza", r"[\w-]{35}(?![\w-])"),
    ("hf_", rf"(?=[a-z]*[A-Z])(?=[A-Z]*[a-z]){_ALNUM}{{30,40}}(?!\w)"),
    ("gsk_", rf"{_ALNUM}{{40,60}}(?!\w)"),
    ("xai-", rf"{_ALNUM}{{60,100}}(?!\w)"),
    ("pplx-", rf"{_ALNUM}{{40,64}}(?!\w)"),
    ("nvapi-", r"[\w-]{50,100}"),
    ("r8_", rf"{_ALNUM}{{36,40}}(?!\w)"),
    ("pcsk_", r"\w{40,100}"),
    ("tvly-", rf"(?:dev-|prod-)?{_MIXED}[\w-]{{20,60}}"),
    ("lsv2_", rf"(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{10}}"),
    # code and packages
    *((f"gh{letter}_", rf"{_ALNUM}{{36,255}}") for letter in "pousr"),
    ("github_pat_", r"\w{50,255}"),
    *((literal, r"[\w-]{20,64}") for literal in ("glpat-", "gldt-", "glrt-", "glptt-")),
    ("npm_", rf"{_ALNUM}{{36}}(?!\w)"),
    ("pypi-", r"AgE[\w-]{50,300}"),
    ("dckr_pat_", r"[\w-]{20,40}"),
    ("ATATT3", r"[\w=-]{100,250}"),
    ("figd_", r"[\w-]{36,60}"),
    ("PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    ("sntrys_", r"[\w+/=-]{40,400}"),
    # clouds and keepers of secrets
    *((literal, r"[A-Z2-7]{16}(?![A-Z0-9])") for literal in ("AKIA", "ASIA", "ABIA", "ACCA")),
    ("ya29.", r"[\w-]{20,500}"),
    ("GOCSPX-", r"[\w-]{24,32}"),
    *((literal, _HEX + "{64}") for literal in ("dop_v1_", "doo_v1_", "dor_v1_")),
    ("dapi", rf"{_HEX}{{32}}(?:-\d)?(?!\w)"),
    ("hvs.", r"[\w-]{24,200}"),
    ("dp.pt.", rf"{_ALNUM}{{40,50}}"),
    ("sbp_", _HEX + "{40}"),
    ("glsa_", rf"{_ALNUM}{{32}}_{_HEX}{{8}}"),
    ("NRAK-", r"[A-Z0-9]{27}(?!\w)"),
    ("tskey-", r"(?:auth|api|client)-[\w-]{20,80}"),
    ("AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    ("&sig=", r"((?:[A-Za-z0-9+/]|%2[BbFf]){43}(?:=|%3[Dd]))"),
    # talk, mail and money
    ("xox", r"[abeoprs]-(?=[\w-]{0,60}\d)[\w-]{10,250}"),
    ("xapp-", r"\d-[A-Z0-9]{8,16}-\d{8,16}-[a-z0-9]{32,80}"),
    ("hooks.slack.com/services/", r"(T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{16,40})"),
    ("/api/webhooks/", r"(\d{15,22}/[\w-]{40,100})"),
    (":AA", r"(?<=\d:AA)([\w-]{33})(?![\w-])"),
    *((f"{one}_{mode}_", rf"{_ALNUM}{{16,250}}") for one in ("sk", "rk") for mode in ("live", "test")),
    ("whsec_", r"[A-Za-z0-9+/]{24,80}={0,2}"),
    ("SG.", r"[\w-]{16,32}\.[\w-]{16,64}"),
    ("SK", _HEX + r"{32}(?!\w)"),
    ("key-", rf"(?=[a-z]*\d){_HEX}{{32}}(?![\w-])"),
    *((f"shp{one}_", r"[0-9a-fA-F]{32}(?!\w)") for one in ("at", "ss", "ca", "pa")),
    ("lin_api_", rf"{_ALNUM}{{32,64}}"),
    ("ntn_", rf"{_ALNUM}{{40,60}}"),
    ("secret_", rf"{_MIXED}{_ALNUM}{{43}}(?!\w)"),
)
"""How keys of vendors begin, and what follows; a group is the part that is secret."""

_JWT = re.compile(r"eyJ[\w-]{6,4000}\.eyJ[\w-]{6,8000}(?:\.[\w-]{0,2000})?")
_PEM = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_LINES = re.compile(r"(?:[A-Za-z0-9+/=:, -]{0,200}(?:\r?\n|\\r|\\n)){1,400}")  # of one that is cut off
_BEFORE_PEM = 40  # characters between the dashes and the words
_PEM_CHARS_MAX = 20_000


def _vendor(literal: str, follows: str) -> Literal:
    shape = re.compile(re.escape(literal) + follows)
    free = not literal[0].isalnum() or "/" in literal  # may stand right behind a letter or a digit

    def at(text: Text, place: int) -> Span | None:
        if not free and place and (text.text[place - 1].isalnum() or text.text[place - 1] == "_"):
            return None
        found = shape.match(text.text, place)
        return Span(*found.span(found.lastindex or 0), Kind.API_KEY) if found else None

    return Literal(literal, at)


def _jwt(text: Text, place: int) -> Span | None:
    if place and (text.text[place - 1].isalnum() or text.text[place - 1] in "_-"):
        return None  # its run was looked at where it began
    found = _JWT.match(text.text, place)
    return Span(*found.span(), Kind.JWT) if found else None


def _pem(text: Text, place: int) -> Span | None:
    """A private key to its end; where that is missing, the lines that can be part of it."""
    begin = text.text.rfind("-----BEGIN ", max(place - _BEFORE_PEM, 0), place)
    found = _PEM.match(text.text, begin) if begin >= 0 else None
    if found is None:
        return None
    end = text.text.find("-----END ", found.end(), found.end() + _PEM_CHARS_MAX)
    close = text.text.find("-----", end + 9, end + 80) if end >= 0 else -1
    if close >= 0:
        return Span(begin, close + 5, Kind.PRIVATE_KEY)
    lines = _LINES.match(text.text, found.end())
    return Span(begin, lines.end() if lines else found.end(), Kind.PRIVATE_KEY)


KEYS: tuple[Literal, ...] = (
    *(_vendor(literal, follows) for literal, follows in SHAPES),
    Literal("eyJ", _jwt),
    Literal("PRIVATE KEY", _pem),
)
