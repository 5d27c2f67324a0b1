"""Secrets that a name beside them gives away: `DB_PASSWORD=…`, `"api_key": "…"`, headers, addresses with a password.

What is masked is the value. A name says what its value is, not that there is one: references to a
variable, types, placeholders and prose stay as they are.
"""

from __future__ import annotations

import base64
import binascii
import re

from vmstore.redact.span import Kind, Literal, Span, Text, small

_ELSEWHERE = (
    "contrase\u00f1a",
    "kennwort",
    "mot de passe",
    "senha",
    "wachtwoord",
    "\u043f\u0430\u0440\u043e\u043b\u044c",
    "\u5bc6\u7801",
    "\u5bc6\u78bc",
)
"""What a password is called in other languages."""
_WORDS_ALONE = ("passw", "passphrase", "passcode", "pwd", "secret", "token", "credential", *_ELSEWHERE)
_WHOSE = ("api", "access", "account", "private", "signing", "encryption", "auth", "shared", "master", "subscription")
_WHOSE_CHARS_MAX = 14  # with what stands between it and the key

_WORD = (
    r"(?i:passw(?:or[dt]|d)|passphrase|passcode|pwd|secret(?:[_-]?access)?(?:[_-]?key)?|token"
    rf"|(?:{'|'.join(_WHOSE)})[ _-]?key|credentials?|{'|'.join(_ELSEWHERE)})"
)
_NAMED = re.compile(
    _WORD
    + r"(?P<more>(?:_[A-Z0-9]{1,16}|\d{1,2})?)(?P<close>\\{0,3}[\"'`]|\])?[ \t]{0,4}"
    + r"(?P<sign>:=|=>|=(?!=)|:(?!:)|\uff1a|>|[ \t](?i:is|was)[ \t]|(?<=\w)[ \t])[ \t]{0,4}"
    + r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>(?:(?!(?P=quote))[^\n]){3,200})(?P=quote)"
    + r"|(?P<plain>(?:[^\s\"'`,;&<>()\[\]{}\\|]|&(?![\w.-]{1,40}=)){4,200})(?P<after>[(\[{]?))"
)
_NAME = re.compile(r"[\w.-]{0,40}$")  # what of a name stands before the word that gives it away
_PASSWORDS = ("passw", "passp", "passc", "pwd", *_ELSEWHERE)

_PLACEHOLDER = re.compile(
    r"""(?ix) ^(?:
      [<$%{\[*#(@].* | [x.\-_?\u2022]{3,} | .*(?:\.\.\.|\u2026)
      | (?!.*\d)(?:your|my|the|some|an?|insert|enter|example|sample|dummy|fake|placeholder|change|replace|put|add|new
        |old)
        [\W_]?.{0,4}(?:pass|pwd|secret|token|key|api|cred|me|this|value|here|$).*
      | obligat[o\u00f3]ri[oa]|obrigat[o\u00f3]ri[oa]|requerid[oa]|erforderlich|obligatoire|requise?|verplicht
      | none|null|nil|true|false|undefined|required|optional|empty|redacted|hidden|masked|missing|unknown|default
      | str(?:ing)?|bytes|int(?:eger)?|number|bool(?:ean)?|any|object|text|varchar.*|char|secretstr|unset|invalid
      | pass(?:word|wd|phrase)?|pwd|secret|token|(?:api|access|secret|private)[_-]?key|credentials?|key|value|todo|test
    )$"""
)
_WORDS = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)*\Z")
_MEMBER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+\Z")


def _named(text: Text, place: int) -> Span | None:
    found = _NAMED.match(text.text, place)
    if found is None:
        return None
    start = place - len(_NAME.search(text.text, max(place - 40, 0), place)[0])  # type: ignore[index]  # it may be empty
    name = text.text[start : found.end("more")]
    password = text.low.startswith(_PASSWORDS, place)
    sign = found["sign"].strip().lower()
    if not _joined(text, start, name, sign, found["close"]):
        return None
    which = "quoted" if found["quoted"] is not None else "plain"
    value = found[which]
    end = found.end(which)
    if which == "plain":
        value = value.rstrip(".:?")
        end = found.start(which) + len(value)
    if _PLACEHOLDER.match(value) or value.startswith(("/", "./", "~/", "http://", "https://", "=")):
        return None
    if which == "quoted":
        good = _worth_quoted(value, password)
    else:
        good = _worth_plain(text, found, start, name, sign, value, password)
    return Span(found.start(which), end, Kind.PASSWORD if password else Kind.SECRET) if good else None


def _keyed(text: Text, place: int) -> Span | None:
    """A key whose word before says what it opens."""
    before = text.low[max(place - _WHOSE_CHARS_MAX, 0) : place]
    whose = before[:-1] if before.endswith(("_", "-", " ")) else before
    first = next((one for one in _WHOSE if whose.endswith(one)), None) if whose.endswith(_WHOSE) else None
    return None if first is None else _named(text, place - len(before) + len(whose) - len(first))


def _joined(text: Text, start: int, name: str, sign: str, close: str | None) -> bool:
    """Whether a sign joins a name and a value: a blank does after an option, a bracket after an opening one."""
    if sign == "":
        return name.startswith("--") and close is None
    if sign == ">":
        return start > 0 and text.text[start - 1] == "<"
    return sign not in ("is", "was") or close is None


def _worth_quoted(value: str, password: bool) -> bool:
    """Whether a value in quotes is a secret: no prose, and, where the name is not sure, no plain word."""
    if " " in value.strip():
        return password and not _prose(value)
    return (password and not _MEMBER.match(value)) or _strong(value, 6)


def _worth_plain(
    text: Text, found: re.Match[str], start: int, name: str, sign: str, value: str, password: bool
) -> bool:
    """Whether a value without quotes is a secret and no piece of code."""
    if found["after"] or len(value) < 4:
        return False
    if sign in ("is", "was"):
        return _strong(value, 6)
    tight = text.text[found.end("sign") - 1] in "=:\uff1a" and text.text[found.start("sign") - 1] not in " \t"
    tight = tight and found.start("plain") == found.end("sign")
    if name.isupper() and sign == "=" and tight:
        return not (value.isdigit() and not password)  # the way of a file of settings
    if _MEMBER.match(value):
        return False
    if _WORDS.match(value) and not any(sign.isdigit() for sign in value):
        return _bare_word(text, found, start, sign, value, password)
    if password:
        return any(not one.isalpha() for one in value)
    return _strong(value, 8 if tight or sign in ("", ":", ">") else 12)


def _bare_word(text: Text, found: re.Match[str], start: int, sign: str, value: str, password: bool) -> bool:
    """Whether a plain word is the value: in an address or a tag it is, and, of a password, alone on its line."""
    if sign == ">" or (start and text.text[start - 1] in "?&;"):
        return True
    if not password or sign != ":" or not value.islower():
        return False
    line = text.text.rfind("\n", 0, start) + 1
    after = text.text[found.end() : found.end() + 1]
    return text.text[line:start].strip(" \t-") == "" and after in ("", "\n", "\r")


def _strong(value: str, least: int) -> bool:
    """Whether a value looks made and not written: long enough, letters beside digits or signs."""
    if len(value) < least or " " in value:
        return False
    return any(one.isdigit() for one in value) and any(one.isalpha() for one in value)


def _prose(value: str) -> bool:
    return all(one.isalpha() or one in " .,:;!?'-" for one in value) or value.count(" ") > 8


# ---- headers and addresses

_BEARER = re.compile(r"(?i:bearer)[ \t]+(?=[\w.~+/=-]{0,80}\d)([\w.~+/-]{16,4000}={0,2})")
_BASIC = re.compile(r"(?i:basic)[ \t]+([A-Za-z0-9+/]{8,400}={0,2})(?![\w+/=])")
_HEADER = re.compile(
    r"(?i:authorization)\\?[\"']?[ \t]*[:=][ \t]*\\?[\"']?(?i:token |apikey |key |digest )?"
    r"(?=[\w.~+/=-]{0,80}\d)([\w.~+/:-]{16,4000}={0,2})"
)
_ADDRESS = re.compile(r"://[^\s/:@\"'`<>?#]{0,100}:(?![$<{*\[%])([^\s/\"'`<>]{1,200})@[\w\[]")
_USER = re.compile(r"(?:-u|--user)[ =]+[\"']?[\w.@-]{1,80}:(?![$<{*\[%])([^\s\"':]{4,100})")


def _bearer(text: Text, place: int) -> Span | None:
    found = _BEARER.match(text.text, place)
    return Span(*found.span(1), Kind.AUTHORIZATION) if found else None


def _basic(text: Text, place: int) -> Span | None:
    """What follows `Basic` where it is a name and a password, decoded."""
    found = _BASIC.match(text.text, place)
    if found is None:
        return None
    try:
        said = base64.b64decode(found[1], validate=True)
    except (binascii.Error, ValueError):
        return None
    return Span(*found.span(1), Kind.AUTHORIZATION) if b":" in said and said.isascii() else None


def _header(text: Text, place: int) -> Span | None:
    found = _HEADER.match(text.text, place)
    return Span(*found.span(1), Kind.AUTHORIZATION) if found else None


def _address(text: Text, place: int) -> Span | None:
    found = _ADDRESS.match(text.text, place)
    return Span(*found.span(1), Kind.PASSWORD) if found else None


def _user(text: Text, place: int) -> Span | None:
    """The password of `curl -u name:password`; other commands mean other things by it."""
    found = _USER.match(text.text, place)
    if found is None or not any(one in text.low[max(place - 200, 0) : place] for one in ("curl", "wget", "http")):
        return None
    return Span(*found.span(1), Kind.PASSWORD)


_OPTION = re.compile(
    r"-p(?P<gap> {0,4})(?!\d+:\d)(?:'([^'\n]{4,100})'|\"([^\"\n]{4,100})\"|([^\s'\"$<{*\[%-][^\s'\"]{3,99}))"
)
_COOKIE = re.compile(
    r"(?i:cookie)\\?[\"']?: ?\\?[\"']?(?:[\w.-]{1,80}=[^;\s]{0,200}; ?){0,30}?"
    r"(?i:[\w.-]{0,40}(?:sess|sid|auth|token|jwt)[\w.-]{0,40})=(?=[^;\s]{0,80}\d)([^;\s\"'\\]{16,4000})"
)


def _option(text: Text, place: int) -> Span | None:
    """The password of `mysql -p…` and `sshpass -p …`; other commands mean other things by it."""
    found, before = _OPTION.match(text.text, place), text.low[max(place - 100, 0) : place].rpartition("\n")[2]
    if found is None or not ("sshpass" in before or ("mysql" in before and not found["gap"])):
        return None
    value = found.lastindex or 0
    return None if _PLACEHOLDER.match(found[value]) else Span(*found.span(value), Kind.PASSWORD)


def _cookie(text: Text, place: int) -> Span | None:
    """What a header sends to stay signed in."""
    found = _COOKIE.match(text.text, place)
    return Span(*found.span(1), Kind.SECRET) if found else None


def named(key: str, value: str) -> Kind | None:
    """What the value of a field is by the name of the field; None where it is nothing to hide."""
    told = f'"{key}": "{value}"'
    if "\n" in value or '"' in value:
        return None
    text = small(told)
    for name in NAMES:
        place = text.low.rfind(name.literal, 0, len(key) + 1)
        if place >= 0 and (found := name.at(text, place)) is not None:
            return found.kind
    return None


NAMES = (
    *(Literal(word, _named, low=True) for word in _WORDS_ALONE),
    Literal("key", _keyed, low=True),
)
NAMED = (
    *NAMES,
    Literal("bearer ", _bearer, low=True),
    Literal("basic ", _basic, low=True),
    Literal("authorization", _header, low=True),
    Literal("://", _address),
    Literal("-u ", _user),
    Literal("--user", _user),
    Literal("-p", _option),
    Literal("cookie", _cookie, low=True),
)
