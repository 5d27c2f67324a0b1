"""Secrets in files and texts of a known form: each a literal that must stand there, and a pattern with the `value`.

A pattern is tried where its literal stands and reads on from there, so a text is read once for each form it could be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from vmstore.redact import secret_words
from vmstore.redact.assignments import JUDGED_CHARS, is_placeholder, random
from vmstore.redact.span import Literal, ScannedText, SecretKind, SecretSpan, TextScan


class ValueForm(NamedTuple):
    """A form of values in a text: literals, in small letters, and a pattern with the `value`.

    The pattern is tried where a literal stands, or `around` it.
    """

    literals: tuple[str, ...]
    shape: re.Pattern[str]
    kind: SecretKind = SecretKind.PASSWORD
    random: bool = False  # whether the value must look it
    around: int = 0  # characters before the literal in which the value may begin, and behind it


_WORD = r"[a-z]{3,8}+(?![a-z])"
_CODE = r"(?=[A-Za-z]{0,11}\d|[a-z0-9]{4,12}[-][a-z0-9]{4,12})[A-Za-z0-9]{4,12}(?:[ -][A-Za-z0-9]{4,12}){0,5}"

_FORMS: tuple[ValueForm, ...] = (
    ValueForm(  # netrc
        ("machine ", "default login"),
        re.compile(
            r"(?:machine\s+\S{1,200}|default)\s+(?:account\s+\S{1,80}\s+)?login\s+\S{1,200}\s+(?:account\s+\S{1,80"
            r"}\s+)?"
            r"password\s+(?P<value>\S++)"
        ),
    ),
    ValueForm(  # pgpass
        (":5432:", ":5433:", ":6432:", ":*:", "pgpass"),
        re.compile(
            r"(?m)^(?:[\w.-]{1,100}|\*):(?:\d{1,5}|\*):[\w.*-]{1,80}:[\w.@*-]{1,80}:(?P<value>(?![\d:]{1,8}$)\S{4,})$"
        ),
        around=400,
    ),
    ValueForm(
        ("private-lines:",),
        re.compile(r"(?i:private-lines): ?\d+\s+(?P<value>(?:[A-Za-z0-9+/=]++(?:\r?\n|\\n|\Z))+)"),
        SecretKind.PRIVATE_KEY,
    ),
    ValueForm(  # a private key as JSON has it
        ('"kty"',),
        re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,8}:\s{0,8}\"(?P<value>[\w-]{20,}+)\""),
        SecretKind.PRIVATE_KEY,
        around=6_000,
    ),
    ValueForm(
        ("<rsakeyvalue>",),
        re.compile(r"<(?:D|P|Q|DP|DQ|InverseQ)>(?P<value>[\w+/=\s]{20,}+)</"),
        SecretKind.PRIVATE_KEY,
        around=8_000,
    ),
    ValueForm(  # the words of a wallet
        ("mnemonic", "seed", "recovery", "wallet", "phrase", "bip39", "bip-39"),
        re.compile(
            r"[\w-]{3,10}+[^\n:=]{0,40}?(?:[:=]|\bis\b|[\"'`]|\n)[\s\"'`]{0,4}"
            rf"(?P<value>(?:1[.)] ?)?{_WORD}(?:[ ,\n]{{1,3}}(?:\d{{1,2}}[.)] ?)?{_WORD}){{11,23}}+)(?![ ,]{{0,2}}[A"
            rf"-Za-z])"
        ),
    ),
    ValueForm(  # the key that goes with an id of AWS
        ("akia", "asia"),
        re.compile(
            r"A[KS]IA[A-Z2-7]{16}[^\n]{0,40}?[\s\"',:/=|](?P<value>(?=[^\n]{0,39}\d)[A-Za-z0-9+/]{40})(?![A-Za-z0-"
            r"9+/=])"
        ),
        SecretKind.SECRET,
    ),
    ValueForm(
        (
            "client(",
            "sdk(",
            "api(",
            "apikey(",
            "oauthhandler(",
            "translator(",
            "algoliasearch(",
            "configure(",
            "initialize(",
            "connect(",
        ),
        re.compile(
            r"[a-zA-Z]{3,13}\((?:[\"'`][^\"'`\n]{0,120}[\"'`], ?){0,3}?(?:\w{1,20} ?[=:] ?)?[\"'`](?P<value>[\w-]{"
            r"32,}+)[\"'`]"
        ),
        SecretKind.SECRET,
        True,
    ),
    ValueForm(
        ("chpasswd",),
        re.compile(
            r"[\"'\s](?!-)[\w.-]{1,40}:(?P<value>[^\s\"'$]{4,100})[\"']?[ \t]{0,4}\|[ \t]{0,4}(?:sudo )?chpasswd"
        ),
        around=300,
    ),
    ValueForm(  # what is piped to a command that reads it as its password
        ("--password-stdin", "sudo -s ", "--with-token", "passwd --stdin", "passphrase-fd"),
        re.compile(
            r"\b(?:echo|printf)(?: -\w+)?(?: '%s')? (?P<q>[\"']?)(?P<value>(?![$<{])[^\s\"'|]{4,}+)(?P=q) ?\|[^\n]"
            r"{0,80}?"
            r"(?:--password-stdin|sudo -S|--with-token|passwd --stdin|passphrase-fd)"
        ),
        around=300,
    ),
    ValueForm(  # a name and a password as drivers of Go have them
        ("@tcp(", "@unix("),
        re.compile(r"(?<![\w.-])[\w.-]{1,60}:(?P<value>(?![$<{%])[^\s\"'`@]{1,200})@(?:tcp|unix)\("),
        around=300,
    ),
    ValueForm(
        ("as the password", "as password", "als passwort", "as the passphrase", "comme mot de passe", "como contrase"),
        re.compile(
            r"(?<![^\s\"'`])(?P<value>(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[A-Za-z])[^\s\"'`]{6,200})[\"'`]? "
            r"(?i:as (?:the )?pass|als pass|comme mot|como contr)"
        ),
        around=220,
    ),
    ValueForm(
        ("password)", "passwort)", "passphrase)", " pw)"),
        re.compile(
            r"(?<![^\s\"'`])(?P<value>(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[A-Za-z])[^\s\"'`]{6,200})[\"'`]? "
            r"\((?:[\w']{1,12} ){0,4}(?i:pass|pw)"
        ),
        around=220,
    ),
    ValueForm(  # words in the place of signs
        ("passphrase", "pass phrase"),
        re.compile(
            r"(?i:pass ?phrase)[\"']?(?: (?:is|ist))?[ :=]{1,4}[\"']?"
            r"(?P<value>(?![^\n]{0,120}\b(?:the|you|your|is|to|for|of|a|an|and|if|must|be|in|not|or|that|with)\b)"
            r"[a-z]{3,9}(?:[ -][a-z]{3,9}){3,7})[\"'.]?[ \t]*(?=\n|\Z)"
        ),
    ),
    ValueForm(  # a name and a password side by side
        (
            "credentials",
            "login",
            "zugangsdaten",
            "identifiants",
            "credenciales",
            "credenziali",
            "inloggegevens",
            "anmeldedaten",
        ),
        re.compile(
            r"\w{5,14}(?: (?:is|are|sind|sont|son|sono|zijn|for [\w ]{1,20}))?[: ]\s{0,2}[\"'`]?(?:(?!https?)[\w.@"
            r"-]{2,40})(?: ?/ ?|:)"
            r"(?P<value>(?=[^\s]{0,60}\d)(?=[^\s]{0,60}[A-Za-z])(?=[^\s]{0,60}[A-Z!#$%&*+@^_-])[^\s\"'`/]{8,}+)"
        ),
    ),
    ValueForm(
        ("private key", "privkey", "private-key", "priv key", "wif "),
        re.compile(
            r"[\w-]{3,7}(?: ?key)?[^\n\w]{0,4}(?:(?:is|ist|es|est)[^\n\w]{1,3})?"
            r"(?P<value>0x[0-9a-fA-F]{64}|[0-9a-fA-F]{64}|[5KL9c][1-9A-HJ-NP-Za-km-z]{50,51})(?!\w)"
        ),
        SecretKind.SECRET,
    ),
    ValueForm(  # lines of base64 below one that says what they are
        ("token", "secret", "credential"),
        re.compile(
            r"\w{5,11}+[^\n:=]{0,60}+:?\r?\n[ \t]{0,12}(?P<value>[A-Za-z0-9+/_-]{60,80}(?:\r?\n[ \t]{0,12}[A-Za-"
            r"z0-9+/_-]{60,80})*+"
            r"(?:\r?\n[ \t]{0,12}[A-Za-z0-9+/_-]{2,80}={0,2})?)(?=\s|\Z)"
        ),
        SecretKind.SECRET,
        True,
    ),
    ValueForm(
        ("license", "licence", "product key", "activation", "lizenz"),
        re.compile(
            r"\w{6,10}[ _-]?(?:key|schl\u00fcssel|code)[^\n\w]{1,5}(?:is )?(?P<value>[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8"
            r"}){2,7})(?![\w-])"
        ),
        SecretKind.SECRET,
    ),
    ValueForm(
        (
            "passport",
            "reisepass",
            "passeport",
            "pasaporte",
            "passaporto",
            "paspoort",
            "personalausweis",
            "ausweisnummer",
        ),
        re.compile(
            r"(?i:[a-z]{8,16})[ -]?(?i:no|nr|number|nummer|num[e\u00e9]ro|n[\u00b0\u00ba])?\.?[\"']?[ :#=]{1,4}(?:"
            r"is |ist )?[\"']?"
            r"(?P<value>(?=[A-Z]{0,3}\d)[A-Z0-9]{8,10})(?![A-Za-z0-9])"
        ),
        SecretKind.SSN,
    ),
    ValueForm(
        ("pin",),
        re.compile(
            r"(?i:pin)(?:-| )?(?i:code|nummer|number)?(?: (?:for|of|to|on|f\u00fcr|vom|der|del|de|du|zum)(?: [\w-]"
            r"{1,12}){1,5}?)?"
            r"(?:: ?| is | ist | lautet | est | es | \u00e8 |['\u2019]s )(?P<value>\d{4,8})(?![\w.:-])"
        ),
        SecretKind.SECRET,
    ),
)
"""The forms, in no order."""

_CODE_FOR = re.compile(
    r"(?:verification|security|one[- ]time|login|access|door|gate|alarm|entry|master|lock|safe|garage|keypad|unl"
    r"ock|pairing"
    r"|2fa|mfa|sms|confirmation|authentication)[ -]$|(?:best\u00e4tigungs|sicherheits|zugangs|t\u00fcr|sms-?)$"
)
_CODE_OF = re.compile(
    r" (?:de v\u00e9rification|d'acc\u00e8s|de s\u00e9curit\u00e9|de verificaci\u00f3n|de acceso|de seguridad)"
)
_ONE_CODE = re.compile(
    r"[\w' -]{0,40}?(?: for [\w ]{1,20})?(?:: ?| is | ist | lautet | est | es |['\u2019]s )(?P<value>\d{3}[ -]?"
    r"\d{3}|\d"
    r"{4}|\d{5,8})(?![\w.:-])"
)


def _code(text: ScannedText, place: int) -> SecretSpan | None:
    """A code of digits that lets somebody in once, or through a door."""
    end = place + 4
    if _CODE_FOR.search(text.low, max(place - 24, 0), place) is None and _CODE_OF.match(text.low, end) is None:
        return None
    found = _ONE_CODE.match(text.text, end)
    return SecretSpan(*found.span("value"), SecretKind.SECRET) if found else None


def _one_of(text: ScannedText, place: int) -> SecretSpan | None:
    """One behind a word that says so by itself."""
    if (place and text.text[place - 1].isalpha()) or text.text[place + 3 : place + 4].isalpha() != (
        text.low[place] == "c"
    ):
        return None
    if text.low[place] == "c" and _CODE_OF.match(text.low, place + 6) is None:
        return None
    found = _ONE_CODE.match(text.text, place + 3)
    return SecretSpan(*found.span("value"), SecretKind.SECRET) if found else None


_LIST = ("code", "codici", "c\u00f3dig")  # what a list of codes is called, and what stands before and behind it
_BEFORE_LIST = re.compile(
    r"(?:(?:backup|recovery|rescue|emergency|scratch|one-time)[ -]|wiederherstellungs-?|ersatz-?|backup-?|herstel)$"
)
_BEHIND_LIST = re.compile(
    r"\w{0,4}(?P<of> (?:de|di) (?:secours|r\u00e9cup\u00e9ration|respaldo|recuperaci\u00f3n|recupera\u00e7\u00e3o|"
    r"backup|recupero))?"
    r"(?:[^\n:]{0,60}[:\n]| (?:is|are|ist|sind) )"
)
_CODES_LINE = re.compile(
    rf"\s{{0,8}}(?:\d{{1,2}}[.)]\s{{1,3}}|[-*\u2022]\s{{1,3}})?(?P<value>{_CODE})(?=[ \t]{{0,4}}(?:[,;\n]|\Z|[ \t]{{"
    rf"2,}}|\d))[,;]?"
)


def _form(form: ValueForm, text: ScannedText, place: int) -> SecretSpan | None:
    """The value of a form that begins with one of its literals."""
    if place and text.text[place - 1].isalnum() and text.text[place : place + 3].lower() == "pin":
        return None
    return _in_form(form, form.shape.match(text.text, place))


def _in_form(form: ValueForm, found: re.Match[str] | None) -> SecretSpan | None:
    if found is None or is_placeholder(found["value"]) or (form.random and not random(found["value"])):
        return None
    return SecretSpan(found.start("value"), found.start("value") + len(found["value"].rstrip()), form.kind)


def _near(form: ValueForm, literal: str, text: ScannedText) -> Iterator[SecretSpan]:
    """Values of a form around one of its literals."""
    place, done = text.low.find(literal), 0
    while place >= 0:
        end = place + form.around
        for found in form.shape.finditer(text.text, max(place - form.around, done), end):
            if (span := _in_form(form, found)) is not None:
                yield span
        done = end
        place = text.low.find(literal, end)


def _codes(word: str, text: ScannedText) -> Iterator[SecretSpan]:
    """Codes that stand in a list behind a line that says they let somebody in."""
    place = text.low.find(word)
    while place >= 0:
        end = place + len(word)
        head = _BEHIND_LIST.match(text.low, end)
        if head is not None and (head["of"] or _BEFORE_LIST.search(text.low[max(place - 20, 0) : place])):
            end = head.end()
            while (found := _CODES_LINE.match(text.text, end)) is not None:
                yield SecretSpan(*found.span("value"), SecretKind.SECRET)
                end = found.end()
        place = text.low.find(word, end)


# ---- prose

_KEYS = ("token", "key", "secret", *secret_words.FOREIGN_KEYS)
_PASSWORDS = (
    "password",
    "passwort",
    "passphrase",
    "passcode",
    "passwd",
    "pwd",
    "pw",
    "mdp",
    "pass",
    *secret_words.FOREIGN,
)
_SAID = re.compile(
    r"[^\W\d_]{0,12}?(?:[\"'\u201c\u201d\u00bb)](?!s\b))?(?P<between>(?:[ \t]+[^\W\d][\w'\u2019/-]{0,20}){0,6}?)"
    r"[ \t]{0,3}"
    r"(?:[:\uff1a=]|[\u662f\u4e3a\u70ba\u306f\uc740\ub294]|['\u2019]s(?=\s)|(?:\s|,\s|(?<=[^\x00-\x7f]))(?:is(?:"
    r" now)?|now|was|ist|lautet|war|est|c['\u2019]est|es|era|\u00e8"
    r"|\u00e9|jest|to|on"
    r"|->|\u2192|\u00e4r|er|this|dies|wird|sera|ser\u00e1|sar\u00e0|oli|je|\u2013|\u2014|-|\u662f|\u4e3a|\u70ba|"
    r"\u306f|\uc740"
    r"|\ub294)(?=[\s\"'`\u201c\u201e\u00ab]|[^\x00-\x7f]))"
    r"[ \t]{0,3}(?P<open>[\"'`\u201c\u201e\u00ab]?)(?P<value>[^\s\"'`\u201c\u201d\u00bb\u3002\uff0c]{6,}+)"
)
_NEXT = re.compile(
    r"[^\W\d_]{0,12}(?P<between>)[ \t]{1,3}(?P<open>[\"'`\u201c\u201e\u00ab]?)(?P<value>[^\s\"'`\u201c\u201d\u00bb"
    r"]{8,}+)"
)
_REST = re.compile(r"[^\s\"'`\u201c\u201d\u00bb]*+")
_ABOUT = re.compile(
    r"(?i)hash|policy|length|reset|manager|version|field|file|url|link|\bid\b|expire|ttl|type|limit|count|usage|bu"
    r"cket|error"
)
_UNIT = re.compile(
    r"(?i)[\d.,:/-]+[a-z\u00b0%]{0,8}\W*$|v?\d+(?:\.\d+)+|https?://|[\w./-]*/[\w./-]+\.\w{1,5}\W*$|[\w-]+\.(?:py|j"
    r"s|ts|rs|go|java|md|json|ya?ml|toml|txt|html?)\b"
    r"|[a-z_]+\(|.*[(){}\[\]=]|(?:sha|md|hmac|aes|rsa|rfc|utf|pbkdf|bcrypt|argon|hs|es|rs|oauth|base|http|tls|ipv?"
    r")-?\d|p\d+@|\$|--|@"
)


def _said(text: ScannedText, place: int, end: int, password: bool) -> SecretSpan | None:
    """The password or key that a sentence states: behind a colon or an `is`, or right behind the word."""
    password = password or _WIFI.search(text.low, max(place - 12, 0), place) is not None
    if place and (
        text.text[place - 1] in "_$/.<{" or (not password and _OTHER_KEY.search(text.low[max(place - 20, 0) : place]))
    ):
        return None
    stop = end + _SENTENCE_CHARS + 2 * JUDGED_CHARS
    found = _SAID.match(text.text, end, stop) if end - place != 4 or text.low[place:end] != "pass" else None
    value = found and _worth(found, password)
    if value is None and (password or _OPENS.search(text.low, max(place - 20, 0), end)):
        found = _NEXT.match(text.text, end, stop)
        value = found and (_worth(found, password) if any(char.isdigit() for char in found["value"][:300]) else None)
        loud = text.text[end - 1].isascii() and not text.text[end - 1].islower()
        if value and password and not (_both(value[:300]) or (_signs(value[:300]) and not loud)):
            return None
    if not found or not value:
        return None
    last = found.start("value") + len(value)
    if found.end() == stop:
        last = _REST.match(text.text, last).end()  # type: ignore[union-attr]  # it matches the empty text, too
    return SecretSpan(found.start("value"), last, SecretKind.PASSWORD if password else SecretKind.SECRET)


_WIFI = re.compile(r"(?:wi-?fi|wlan|wireless|network|guest|router)[ -]$")
_OPENS = re.compile(rf"(?:token|secret|\b(?:{'|'.join(sorted(secret_words.SURE))})[ -]key)$")
_JOINED = re.compile(r"[a-z]{2,}(?:-[a-z]{2,}){3,}")
_HINT = re.compile(r"[0-9!#%&*+@^-]")
_LONG = re.compile(r"[A-Za-z0-9_+/=.~-][A-Za-z0-9_+/=.~-]{15}")
_DIGIT = re.compile(r"\d")
_OTHER_KEY = re.compile(rf"\b(?:{'|'.join(sorted(secret_words.NOT_KEYS | secret_words.NOT_TOKENS))})[ _-]?$")


def _worth(found: re.Match[str], password: bool) -> str | None:
    """The value that a sentence names, without its last stop; None where it is a word, a number or a name of som"
    "ething."""
    value = found["value"]
    if not found["open"]:
        value = value.rstrip(".,;:)")
        value = value.rstrip("!?") if value.rstrip("!?").isalpha() else value
    head = value[:300]
    if _ABOUT.search(found["between"]) or is_placeholder(head) or _UNIT.match(head) or len(head) < 6:
        return None
    if password and _JOINED.fullmatch(head):
        return value
    if not any(char.isdigit() or char in "!#%&*+@^" for char in head) or not any(char.isalpha() for char in head):
        return None
    sign = found.string[found.end("between") : found.start("value")].strip(" \t\"'`\u201c\u201e\u00ab").lower()
    if sign in ("to", "on", "er", "-", "now", "this", "je") and not (len(head) >= 8 and (_signs(head) or _both(head))):
        return None
    if (
        not password
        and not random(head)
        and not (len(head) >= 16 and _both(head) and sum(char.isdigit() for char in head) > 2)
    ):
        return None
    return value


def _signs(value: str) -> bool:
    return any(not char.isalnum() and char not in "._/:" for char in value)


def _both(value: str) -> bool:
    return any(char.isupper() for char in value) and any(char.islower() for char in value)


def _prose(word: str, password: bool, text: ScannedText, place: int) -> SecretSpan | None:
    """The value behind the word for a password, a key or a token in prose."""
    end = place + len(word)
    if not _begins(text.text, place, word):
        return None
    line = text.text.find("\n", end, end + _SENTENCE_CHARS)
    hint = (_HINT if password else _LONG).search(text.text, end, line if line >= 0 else end + _SENTENCE_CHARS)
    if hint is None:
        return None
    if not password and not _DIGIT.search(text.text, hint.start(), hint.start() + 40):
        return None
    return _said(text, place, end, password)


_SENTENCE_CHARS = 200  # behind the word, in which a sign must stand that makes something a value


def _begins(text: str, place: int, word: str) -> bool:
    """Whether a word begins here, or ends a longer one that is written with small letters."""
    if not place or not text[place - 1].isalnum():
        return True
    return len(word) > 4 and not (text[place].isupper() and text[place - 1].islower())


# ---- tables

_COLUMN = (
    "password",
    "passwd",
    "passwort",
    "kennwort",
    "pwd",
    "secret",
    "token",
    "api_key",
    "apikey",
    "api key",
    "pin",
)
_DELIMITERS = ",;\t|"


def _tables(word: str, text: ScannedText) -> Iterator[SecretSpan]:
    """The values of a column whose heading says that they are secret."""
    place = text.low.find(word)
    while place >= 0:
        first = text.text.rfind("\n", max(place - 300, 0), place) + 1
        last = text.text.find("\n", place, place + 300)
        end = place + len(word)
        if last > 0 and (first or place < 300) and (sign := _delimiter(text.text[first:place], text.text[end:last])):
            at, fields = text.text[first:place].count(sign), text.text[first:last].count(sign)
            values, end = _column(text.text, last + 1, sign, at, fields)
            yield from values
        place = text.low.find(word, end)


def _delimiter(before: str, after: str) -> str:
    """The delimiter of a heading line's fields around one of them; empty where there is none."""
    left, right = before.rstrip(" \"'")[-1:], after.lstrip(" \"'")[:1]
    sign = left or right
    good = sign in _DELIMITERS and (right or sign) == sign and (left or sign) == sign
    several = len([piece for piece in f"{before}x{after}".split(sign) if piece.strip()]) > 1 if sign else False
    return sign if several and good and _HEADING.fullmatch(before + after) else ""


_HEADING = re.compile(r"[\w \"'.,;\t|-]{2,300}\r?")


def _column(text: str, place: int, sign: str, at: int, fields: int) -> tuple[list[SecretSpan], int]:
    """The secrets of a column, from its first line on, and where its last line ends."""
    values: list[SecretSpan] = []
    while place < len(text):
        end = text.find("\n", place)
        end = len(text) if end < 0 else end
        parts = text[place:end].split(sign)
        if len(parts) != fields + 1:
            break
        start = place + sum(len(part) + 1 for part in parts[:at])
        value = parts[at].strip(" \"'\r")
        start += parts[at].find(value)
        made = any(not char.isalpha() for char in value) and not set(value) <= set("-: ")
        if made and len(value) >= 4 and " " not in value and not is_placeholder(value):
            values.append(SecretSpan(start, start + len(value), SecretKind.PASSWORD))
        place = end + 1
    return values, place - 1


_SECRETS = frozenset((SecretKind.PASSWORD, SecretKind.SECRET, SecretKind.PRIVATE_KEY, SecretKind.SSN))
FORMS: tuple[Literal | TextScan, ...] = (
    *(
        Literal(literal, partial(_form, form), low=True)
        for form in _FORMS
        if not form.around
        for literal in form.literals
    ),
    *(
        TextScan(_SECRETS, partial(_near, form, literal), (literal,))
        for form in _FORMS
        if form.around
        for literal in form.literals
    ),
    *(Literal(word, partial(_prose, word, True), low=True) for word in _PASSWORDS),
    *(Literal(word, partial(_prose, word, False), low=True) for word in _KEYS),
    Literal("code", _code, low=True),
    *(Literal(word, _one_of, low=True) for word in ("otp", "c\u00f3digo")),
    *(TextScan(_SECRETS, partial(_codes, word), (word,)) for word in _LIST),
    *(TextScan(_SECRETS, partial(_tables, word), (word,)) for word in _COLUMN),
)
