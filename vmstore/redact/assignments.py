"""Secrets that a name beside them gives away: `DB_PASSWORD=…`, `"api_key": "…"`, `<password>…`.

What is masked is the value, to its end. A name says what its value is, not that there is one: references to a
variable, types, placeholders and prose stay as they are. A value is judged by its first characters, so that a text
full of names is read once; what is taken for a secret is then followed to where it ends, however far that is.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from vmstore.redact import secret_words
from vmstore.redact.span import Literal, ScannedText, SecretKind, SecretSpan
from vmstore.redact.vendor_keys import SAMPLE, pair
from vmstore.redact.vendors import PUBLIC

JUDGED_CHARS = 300  # of a value, by which it is judged
_NAME_CHARS = 60
_EQUALS_MAX = 12  # what has more of them, or of colons, is a list of names and values

_REST = re.compile(r"(?:[\w-]|\.(?=\w)){0,60}+")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z][^\W\d_]*|\d+")
_SIGN = re.compile(
    r"(?P<close>\\{0,3}[\"'`]\]?|\]|\*{1,2}(?=[ \t]?[:=]))?(?P<gap>[ \t]{0,12})"
    r"(?:(?P<pair>(?:/?>)?[ \t\r\n]{0,20},?[ \t\r\n]{0,20}(?:\\{0,3}[\"'])?(?i:value|<string)"
    r"(?:\\{0,3}[\"'])?[ \t]{0,4}(?:=>|[:=>])|</key>\s{0,20}<string>)"
    r"|(?P<typed>:[ ]?&?(?:'\w{1,12} )?[A-Za-z_][\w.]{0,24}(?:\[\w{0,12}\])?\??[ ]?=(?![=~>])(?=[ ]?[\"'`]))"
    r"|(?P<sign>(?:\?\?|\|\||[?:+])?=(?![=~>])|(?:\?\?|\|\|)(?=[ ]?[\"'`])|:-(?=[^\s\-])|=>|(?:->|\u2192|\|)(?=["
    r" \t])|:(?![:=])|\uff1a|,|\(|>|(?<=[ \t])(?i:is|was)(?=[ \t])|))"
    r"(?:\*{1,2}(?=[ \t]))?(?P<space>[ \t]{0,12})(?:!{1,2}(?:str|string|binary)[ \t]{1,4})?(?:(?<=[=:] )\((?=\s"
    r"{0,20}[\"'])\s{0,20})?"
)
_QUOTE = re.compile(r"[NbBrfuL@]{0,2}(\"\"\"|'''|\\{0,3}[\"'`])(?!\1?[,)\]}:;])")
_INSIDE = {
    quote: re.compile(rf"(?:[^{quote}\\\n]++|\\(?:\r?\n|.))*+") for quote in "\"'`"
}  # up to the closing quote; a line that ends in a backslash is continued
_NESTED = re.compile(r"(?:[^\n\\]++|(?!\\+[\"'`])\\)*+")
_PLAIN = re.compile(
    r"(?:[^\s\"'`,;&<>()\[\]{}\\|]++|&(?![\w.-]{1,40}=)|\\\r?\n[ \t]*(?=[\w+/])|(?<=[\w!#$%*+@^]);(?=[\w!#$%*+@^])(?"
    r"![\w .-]{1,40}=))*+"
)
_CODE = re.compile(r"(?:[^\s\"'`,;&<>()\[\]{}\\|]++|&(?![\w.-]{1,40}=)|\\\r?\n[ \t]*(?=[\w+/]))*+")
_LINE = re.compile(
    r"(?:[^\s\"'`\\&;]++|&(?![&\w.-]{1,40}=)|;(?=[\w!#$%*+@^])(?![\w .-]{1,40}=)|[\"'](?=[\w!#$%*+@^])|\\(?![nrt\"'\s"
    r"]))*+"
)
_ELEMENT = re.compile(r"[^<\s]*+")
_FOURS = re.compile(r"[a-z]{4}(?: [a-z]{4}){3}(?![\w ]*\w)")
_FOLD = re.compile(r"[|>][+-]?\d?[ \t]*\r?\n([ \t]+)([^\s:]{16,}+(?:\r?\n(?:\1[^\s:]++[ \t]*(?:\r?\n|\Z))*+)?)")
_LINES = re.compile(
    r"(?:[ \t]*\r?\n[ \t]*[A-Za-z0-9+/=_-]{16,}+(?=[ \t]*(?:\r?\n|\Z|[\"'])))*+"
    r"(?:(?<=[\w+/=-]{60})[ \t]*\r?\n[ \t]*(?=[\w+/-]*[\d=])[A-Za-z0-9+/=_-]{2,15}(?=[ \t]*(?:\r?\n|\Z|[\"'])))?"
)
_STRINGS = re.compile(r"(?:[\"'][ \t]*[+.\\]?[ \t]*\r?\n?[ \t]*[+.]?[ \t]*[\"'][\w+/=.~-]{8,}+(?=[\"']))*+")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]{40,}+")
_CALL = re.compile(r"[A-Za-z_][\w.]*[(\[{<]|.*[;,{(]$|[(\[{<]")

_PLACEHOLDER = re.compile(
    r"""(?ix) ^(?:
      [<$%{\[*#(@] (?:.*) | [x.\-_?\u2022]{3,} | .*(?:\.\.\.|\u2026) | .{0,8}x{4,}
      | (?!.*\d)(?:your|my|the|some|an?|insert|enter|example|sample|dummy|fake|placeholder|change|replace|put|add|new
        |old|set|type|use|see)
        [\W_]?.{0,6}(?:pass|pwd|secret|token|key|api|cred|me|it|this|value|here|$).*
      | (?:passw(?:or[dt]|d)|secret|token|(?:api_?)?key)[_-](?:here|goes.*)
      | (?:required|nullable|sometimes|confirmed|string)\|.* | !(?:vault|secret|ref|sub|env\w*|getatt)\b.*
      | (?:your|insert|replace|change|enter|put|placeholder|dummy|fake|sample|example)[-_ .]\S.* | change(?:me|it)\w*
      | (?:[a-z]{1,12}[-_]){0,4}(?:your|placeholder|example|changeme|dummy|sample|redacted|insert|replace)
        (?:[-_][a-z]{1,12}){1,5}
      | \[?(?:string|int|float|boolean|id|datetime|date)!?\]?!
      | pass(?:word|wd|wort|phrase)?|pwd|secret|token|(?:api|access|secret|private)[_-]?key|credentials?|key|value
      | """
    + "|".join(secret_words.OPTIONAL)
    + r""" )$"""
)
_REFERENCE = re.compile(
    r"(?:op|vault|ref\+\w+|arn|ssm|awssm|gcpsm|gcp-sm|secretsmanager|keychain|keyvault|akv|bw|doppler|infisical|ch"
    r"amber):"
    r"|ENC[\[(]|AgA[A-Za-z]|projects/[\w-]+/secrets/"
    r"|\$(?:2[abxy]|[156y]|7|apr1|argon2\w*|pbkdf2[\w-]*|scrypt|sha\d*)\$|pbkdf2_\w+\$|s?sha\d*[:$-]|\{\w{3,12}\}|"
    r"md5[0-9a-f]{32}$"
    r"|scrypt:|bcrypt[:$]|" + "|".join(re.escape(one) for one in PUBLIC)
)  # where a value is kept, one that is encrypted or a hash, and what is for everybody to see
_SHOWN = re.compile(r"(?:test|dummy|fake|example|sample|foo|bar|abc|demo|mock|stub|my)(?:[-_]?[a-z0-9]{1,12}){0,3}$")
_SIGNED = re.compile(r"[$%#@*(\[{<]")
_SCHEME = re.compile(r"[A-Z][A-Za-z]{2,9}\d? (?=\S+$)")
_WORDS = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)*\Z")
_MEMBER = re.compile(r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+\Z")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_PIECES = re.compile(r"[-_.:/\s]+")
_SWITCH = re.compile(r"\d[A-Za-z]|[A-Za-z]\d|[a-z][A-Z]")
_BLANK = ("requirepass", "masterauth", "rootpw")  # settings that a blank joins to their values
_SAME = {"??": "=", "||": "=", ":-": "=", "->": "->"}  # what joins a name and its value as `=` does
_SAYS = ("is", "was", "->", "\u2192", "|")  # what does so in a sentence or a table
_SET = re.compile(r"\b(?:env|setx|setenv|set)[ \t]$")
_ENDS = frozenset((*").;}!&%@#^~", ""))
_NOT_BEFORE = ("${", "{{", "%{", "$")


class NameHint(NamedTuple):
    """The hint of a name about its value: a kind, and whether the value may look ordinary."""

    kind: SecretKind
    sure: bool = True


@lru_cache(4096)
def called(name: str) -> NameHint | None:
    """The hint of a name about its value; None where it gives none."""
    parts = [part.lower() for part in _PARTS.findall(name)]
    while len(parts) > 1 and (parts[-1].isdigit() or parts[-1] in secret_words.NEUTRAL):
        parts.pop()
    if not parts:
        return None
    hint = _noun(parts)
    if (
        hint is None
        and len(parts) > 1
        and name.isupper()
        and parts[-1] not in secret_words.ABOUT
        and len(parts[-1]) <= 16
    ):
        hint = _noun(parts[:-1]) if parts[-2] != "pass" else None  # `TOKEN_BEDROCK`
    return hint


def _noun(parts: list[str]) -> NameHint | None:
    last, before = parts[-1], parts[-2] if len(parts) > 1 else ""
    if last.endswith("key"):
        whose = before if last == "key" else last[:-3]
        if whose in secret_words.WHOSE and whose not in secret_words.NOT_KEYS:
            return NameHint(SecretKind.SECRET, whose in secret_words.SURE)
    if last in secret_words.PASSWORDS or last.endswith(secret_words.PASS_ENDS):
        return NameHint(SecretKind.PASSWORD)
    if last.endswith(("pass", "pw")) and last.removesuffix("pass").removesuffix("pw") in secret_words.PASS_HEADS:
        return NameHint(SecretKind.PASSWORD)
    if last == "token" and before in secret_words.NOT_TOKENS:
        return None
    if last in secret_words.SECRETS or last.endswith(secret_words.SECRET_ENDS):
        return NameHint(SecretKind.SECRET)
    if last in secret_words.WEAK or (last in ("response", "assertion") and before == "saml"):
        return NameHint(SecretKind.SECRET, False)
    if last in secret_words.FILES or (last == "config" and before == "kube"):
        return NameHint(SecretKind.SECRET, False)
    if last == "key" and before and before not in secret_words.NOT_KEYS:
        return NameHint(SecretKind.SECRET, False)
    if not last.isascii():
        return NameHint(SecretKind.PASSWORD) if last.startswith(secret_words.FOREIGN) else None
    return None


class _Value(NamedTuple):
    start: int
    end: int
    text: str  # its first characters
    quoted: bool
    after: str
    more: re.Pattern[str] | None = None  # what continues a value longer than is judged


def _named(text: ScannedText, place: int) -> SecretSpan | None:
    end = _REST.match(text.text, place).end()  # type: ignore[union-attr]  # it matches the empty text, too
    while end > place and text.text[end - 1] == "-":
        end -= 1
    if _only_spoken_of(text, place, end):
        return None
    found = _SIGN.match(text.text, end)
    if found is None or end - place >= _NAME_CHARS:
        return None
    sign = "=" if found["pair"] or found["typed"] else _SAME.get(found["sign"], found["sign"].lower())
    if sign == "" and not found["space"] and not found["gap"]:
        return None
    start = place
    while start > max(place - _NAME_CHARS, 0) and (text.text[start - 1].isalnum() or text.text[start - 1] in "_.-"):
        start -= 1
    name = text.text[start:end]
    hint = called(name)
    if sign == "" and not found["close"] and _SET.search(text.low, max(start - 8, 0), start):
        sign = "="
    if hint is None or not _joined(text, start, name, sign, found):
        return None
    if sign == ":" and "arn:" in text.low[max(start - 80, 0) : start]:
        return None
    within = text.text[max(start - 2, 0) : start].endswith(_NOT_BEFORE)
    if within and sign not in ("=", ":"):
        return None
    fold = _FOLD.match(text.text, found.end()) if sign == ":" else None
    if fold is not None:
        return SecretSpan(fold.start(2), fold.start(2) + len(fold[2].rstrip()), hint.kind)
    value = _value(text.text, found, start, name, sign)
    if value is None or not _worth(text, found, start, name, sign, value, hint):
        return None
    if within and sign == ":" and not (value.after == "}" and _strong(value.text, 6)):
        return None
    return SecretSpan(value.start, _to_the_end(text.text, value), hint.kind)


def _only_spoken_of(text: ScannedText, place: int, end: int) -> bool:
    """Whether no value can follow a name: where it ends a phrase, or another word of a sentence follows."""
    follows = text.text[end : end + 2]
    if follows[:1] in _ENDS:
        return True
    if follows[:1] != " " or not follows[1:].isalpha() or follows[1:] in "iIwWNbBrfuL":
        return False
    before = text.low[max(place - 7, 0) : place]
    return (
        not before[-1:].isalnum()
        and before[-1:] not in ("_", "-", ".")
        and not _SET.search(before)
        and "_" not in text.text[place:end]
    )


def _joined(text: ScannedText, start: int, name: str, sign: str, found: re.Match[str]) -> bool:
    """Whether a sign joins a name and a value: a blank does after an option, a bracket after an opening one."""
    close = found["close"]
    if sign == "":
        quoted = text.text[found.end() : found.end() + 1] in ("'", '"')
        return close is None and (
            name.startswith("-") or "_" in name or name in _BLANK or (quoted and found["gap"] != "")
        )
    if sign == ">":
        return (start > 0 and text.text[start - 1] == "<") or (close or "") in ('"', "'")
    if sign == ",":
        return (close or "]") != "]"
    if sign == "(":
        return close is None and found["gap"] == ""
    if sign == "|":
        return text.text[max(start - 2, 0) : start].rstrip("*`_ ")[-1:] == "|" or text.text[start - 1 : start] == "|"
    return sign not in _SAYS or close is None


def _value(text: str, found: re.Match[str], start: int, name: str, sign: str) -> _Value | None:
    at = found.end()
    quote = _QUOTE.match(text, at)
    if quote is not None and (inside := _quoted(text, quote)) is not None:
        return None if quote[1] == "`" and " " in inside.text else inside  # what a command prints
    if quote is not None and (quote.end() == at + 1 or sign in (",", "(", "")):
        at = quote.end()  # never closed: up to the end of its run
    if sign in (",", "("):
        return None
    fours = _FOURS.match(text, at)
    if fours is not None:
        return _Value(at, fours.end(), fours[0].replace(" ", "-1"), True, "")
    shape = _shape(text, found, start, name, sign)
    run = shape.match(text, at, at + JUDGED_CHARS)
    long = run.end() - at if run else 0
    if long < 3:
        return None
    value = text[at : at + long]
    if long == JUDGED_CHARS:
        return _Value(at, at + long, value, False, "", shape)
    if shape is not _LINE and shape is not _ELEMENT:
        whole = _LINE.match(text, at, at + JUDGED_CHARS)
        begins = text[text.rfind("\n", max(start - 40, 0), start) + 1 : start].strip(" \t-") == ""
        if whole is not None and begins and _whole_line(text, whole, long):
            return _Value(at, whole.end(), whole[0], False, "")
    kept = value if shape is _LINE or value.endswith("...") else value.rstrip(".:?")
    if shape is _LINE and text[at + long : at + long + 1] in (" ", "\t"):
        kept = value.rstrip(",;)")  # the sentence continues
    return _Value(at, at + len(kept), kept, False, text[at + long : at + long + 1])


def _whole_line(text: str, whole: re.Match[str], long: int) -> bool:
    """Whether a value takes the rest of its line though signs of code are in it, and it is no code."""
    if len(whole[0]) <= long or text[whole.end() : whole.end() + 1] not in ("", "\n", "\r"):
        return False
    return _CALL.match(whole[0]) is None and _strong(whole[0], 6)


def _shape(text: str, found: re.Match[str], start: int, name: str, sign: str) -> re.Pattern[str]:
    """The pattern of an unquoted value, by its surroundings."""
    if sign == ">" or (found["pair"] or "").endswith(">"):
        return _ELEMENT
    if _settings(name, sign, found):
        return _LINE
    return _PLAIN if text[max(start - 1, 0) : start] == ";" else _CODE


def _settings(name: str, sign: str, found: re.Match[str]) -> bool:
    """Whether a name and its value stand as a file of settings has them."""
    return name.isupper() and sign == "=" and not (found["gap"] or found["space"] or found["close"])


def _quoted(text: str, quote: re.Match[str]) -> _Value | None:
    """A quoted value; None where the quotes are not closed and it is no key on several lines."""
    mark, at = quote[1], quote.end()
    if len(mark) == 3 and mark[0] != "\\":
        close = text.find(mark, at, at + 4 * JUDGED_CHARS)
        if close <= at:
            return None
        within = text[at:close].removeprefix("\\").strip()
        start, lines = text.index(within, at), [line.strip() for line in within.splitlines()]
        made = len(lines) > 1 and all(_BASE64.fullmatch(line) for line in lines[:-1])
        return _Value(start, start + len(within), "".join(lines) if made else within, True, "")
    shape = _NESTED if mark[0] == "\\" else _INSIDE[mark]
    inside = shape.match(text, at, at + JUDGED_CHARS)
    end = inside.end() if inside else at
    if end - at == JUDGED_CHARS:
        return _Value(at, end, text[at:end], True, "", shape)
    if text.startswith(mark, end):
        return _Value(at, end, text[at:end], True, "") if end - at >= 3 else None
    if _BASE64.fullmatch(text, at, end):
        return _Value(at, end, text[at:end], True, "", _LINES)
    return None


def _to_the_end(text: str, value: _Value) -> int:
    """The end of a value that was taken for a secret."""
    end = value.end
    if value.more is not None:
        found = value.more.match(text, value.start if value.more is not _LINES else end)
        end = max(end, found.end()) if found else end
    if _BASE64.match(text, max(end - 40, value.start), end):
        for shape in (_LINES, _STRINGS):
            found = shape.match(text, end)
            end = found.end() if found else end
    return end


def _worth(
    text: ScannedText, found: re.Match[str], start: int, name: str, sign: str, value: _Value, hint: NameHint
) -> bool:
    """Whether a value is a secret."""
    if value.text.count("=") > _EQUALS_MAX or value.text.count(":") > _EQUALS_MAX:
        return False
    if value.more is not None and len(value.text) >= JUDGED_CHARS:
        rest = value.text[scheme.end() :] if (scheme := _SCHEME.match(value.text)) else value.text
        return " " not in rest and (hint.sure or random(rest))
    if is_placeholder(value.text) or value.text.startswith(("/", "./", "~/", "http://", "https://", "=")):
        return False
    if not hint.sure:
        return random(value.text) or (name.lower().endswith("auth") and pair(value.text))
    if sign in ("(", ",") or (sign == ">" and found["close"]):
        return (
            value.quoted is (sign != ">") and _strong(value.text, 6) and ("/" not in value.text or random(value.text))
        )
    password = hint.kind is SecretKind.PASSWORD
    if not password and _SHOWN.match(value.text):
        return False
    if sign == "" and not name.startswith("-") and not value.quoted and name not in _BLANK:
        return random(value.text)
    if sign == "" and not name.startswith("-") and name not in _BLANK:
        return password and (_strong(value.text, 6) or name.isupper()) and not _prose(value.text)
    if name.lower() in ("pass", "pw") and not _bare(name, sign, value):
        return False
    if value.quoted:
        return _worth_quoted(value.text, password, _parts_end(name))
    return _worth_plain(text, found, start, name, sign, value, password)


def _parts_end(name: str) -> bool:
    return name.lower().endswith(("phrase", "mnemonic"))


def _bare(name: str, sign: str, value: _Value) -> bool:
    """Whether `pass` alone is a name: tests pass, too."""
    if value.quoted:
        return True
    made = _strong(value.text, 6) and "/" not in value.text and "::" not in value.text
    return made and (
        sign == "=" or name.islower() or any(sign_in_value in "!@#$%^&*+?" for sign_in_value in value.text)
    )


def _worth_quoted(value: str, password: bool, phrase: bool = False) -> bool:
    """Whether a value in quotes is a secret: no prose, and, where the name is not sure, no plain word."""
    if (scheme := _SCHEME.match(value)) is not None:
        return random(value[scheme.end() :])
    if " " in value.strip():
        return password and (not _prose(value) or (phrase and 3 <= value.count(" ") <= 24))
    if password and (_MEMBER.match(value) or (_WORDS.match(value) and called(value) is not None)):
        return False  # a member of something, or the word itself in another language
    return password or _strong(value, 6)


def _worth_plain(
    text: ScannedText, found: re.Match[str], start: int, name: str, sign: str, value: _Value, password: bool
) -> bool:
    """Whether a value without quotes is a secret and no piece of code."""
    plain = value.text
    if _settings(name, sign, found):
        return not (plain.isdigit() and not password) and not (_CALL.match(plain) and "(" in plain)
    if (value.after in ("(", "[", "{") and value.after) or len(plain) < 4:
        return False
    if sign in _SAYS:
        return _strong(plain, 6)
    tight = sign[-1:] in ("=", ":", "\uff1a") and not found["gap"] and not found["space"]
    if _MEMBER.match(plain):
        return False
    if _WORDS.match(plain) and not any(char.isdigit() for char in plain):
        return _bare_word(text, found, value, start, sign, password)
    if password:
        return any(not char.isalpha() for char in plain)
    return _strong(plain, 8 if tight or sign in ("", ":", ">") else 12)


def _bare_word(text: ScannedText, found: re.Match[str], value: _Value, start: int, sign: str, password: bool) -> bool:
    """Whether a plain word is the value: in an address or a tag it is, and, of a password, alone on its line."""
    if sign == ">" or (start and text.text[start - 1] in "?&;"):
        return True
    if not password or sign != ":" or not value.text.islower():
        return False
    line = text.text.rfind("\n", max(start - 80, 0), start) + 1
    after = text.text[value.end : value.end + 1]
    return text.text[line:start].strip(" \t-") == "" and after in ("", "\n", "\r")


def is_placeholder(value: str) -> bool:
    """Whether a value only says that one belongs there."""
    value = value[:JUDGED_CHARS]
    if _REFERENCE.match(value):
        return True
    if _PLACEHOLDER.match(value):
        return not (_SIGNED.match(value) and _strong(value[1:], 8) and value[0] in "$%#@*" and _mixed(value))
    return len(value) < JUDGED_CHARS and SAMPLE.search(value) is not None and _strong(value, 12)


def _mixed(value: str) -> bool:
    """Whether signs stand among letters and digits, as in no name of a variable."""
    return any(not char.isalnum() and char not in "_{}()<>[].:-" for char in value[1:])


def _strong(value: str, least: int) -> bool:
    """Whether a value looks made and not written: long enough, letters beside digits or signs."""
    if len(value) < least or " " in value:
        return False
    return any(char.isdigit() for char in value) and any(char.isalpha() for char in value)


def random(value: str) -> bool:
    """Whether a value looks drawn at random: a long piece of it in which letters and digits, or cases, change of"
    "ten."""
    if len(value) < 20 or " " in value or _UUID.match(value):
        return False
    if sum(char.isdigit() for char in value) < 2:
        return False
    return any(len(piece) >= 12 and len(_SWITCH.findall(piece)) >= 3 for piece in _PIECES.split(value))


def _prose(value: str) -> bool:
    return all(char.isalpha() or char in " .,:;!?'-" for char in value) or value.count(" ") > 8


def named(key: str, value: str) -> SecretKind | None:
    """The kind of a field's value by the field's name; None where it need not be hidden."""
    hint = called(key)
    head = value[:JUDGED_CHARS]
    if hint is None or len(value) < 3 or is_placeholder(head):
        return None
    if head.startswith(("/", "./", "~/", "http://", "https://", "=")) and len(value) < JUDGED_CHARS:
        return None
    if len(value) >= JUDGED_CHARS:
        good = " " not in head and (hint.sure or random(head))
    elif not hint.sure:
        good = random(head) or (key.lower().endswith("auth") and pair(head))
    else:
        good = _worth_quoted(head, hint.kind is SecretKind.PASSWORD, _parts_end(key))
    return hint.kind if good else None


_DEFAULT = re.compile(
    r"default[\w-]{0,6}[\"'`]?[ \t]{0,12}(?:\?\?|\|\|)?[=:,>]{1,2}[ \t]{0,8}(?:!{1,2}str )?(?P<q>[\"'`]?)(?P<val"
    r"ue>[^\s\"'`,;)}]{3,300}+)",
    re.IGNORECASE,
)
_DEFAULT_OF = re.compile(r"(?:[\"'`](?:--?)?([\w.-]{2,60})[\"'`]|^[ \t]*([\w.-]{2,60}):[ \t]*$)", re.MULTILINE)
_UNQUOTED = re.compile(r"[^\s\"'`,;)}]*+")
_DEFAULT_CHARS = 240  # before it, in which the name must stand


def _default(text: ScannedText, place: int) -> SecretSpan | None:
    """The value that a variable, an option or a parameter has by default, by the last name before it."""
    found = _DEFAULT.match(text.text, place)
    if found is None or is_placeholder(found["value"]) or not _strong(found["value"][:JUDGED_CHARS], 6):
        return None
    before = max(text.text.rfind("}", 0, place) + 1, place - _DEFAULT_CHARS, 0)
    names = _DEFAULT_OF.findall(text.text, before, place)
    kinds = [of for pair in names for name in pair if name and (of := called(name)) is not None]
    if not kinds or (not kinds[-1].sure and not random(found["value"][:JUDGED_CHARS])):
        return None
    rest = _UNQUOTED.match(text.text, found.end())
    return SecretSpan(found.start("value"), rest.end() if rest else found.end(), kinds[-1].kind)


_LITERALS = (
    "pass",
    "pw",
    "psk",
    "secret",
    "token",
    "cred",
    "key",
    "auth",
    "jwt",
    "bearer",
    "saml",
    "cookie",
    "kennwort",
    "mdp",
    "_pat",
    "pepper",
    "sessionid",
    "sessid",
    "mnemonic",
    "clave",
    "senha",
    "wachtwoord",
    "parola",
    "haslo",
    "heslo",
    "salasana",
    "contrase",
    "adgangskode",
    *("kube", "keystore", "keytab", "pfx"),
    *(one for one in secret_words.FOREIGN if not one.isascii() and " " not in one),
)
NAMES = (*(Literal(word, _named, low=True) for word in _LITERALS), Literal("default", _default, low=True))
