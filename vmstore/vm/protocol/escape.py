"""Text that others wrote, as it stands inside protocol: JSON in which nothing can pass for a tag or hide."""

from __future__ import annotations

import json
import math
import re
from typing import Any
from urllib.parse import unquote

# A `<` that could begin a protocol tag, also to a reader that overlooks blanks, case and joiners.
TAG = re.compile(r"<(?=(?:\\[nrtf]|[\s/\u200c\u200d])*V[\u200c\u200d]*M[\u200c\u200d]*:)", re.IGNORECASE)
# What is not seen on a screen: controls, line separators, direction marks, invisible letters, halves
# of pairs. The joiners U+200C and U+200D stay: ordinary Persian and ordinary emoji hold them.
UNSEEN = re.compile(
    "[\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
DELETE = "\x7f"  # the one unseen sign of ASCII that JSON leaves as it is
CONTROL = re.compile("[\x00-\x1f]")
# What could pass for a page's label: a name in brackets where a paragraph begins.
LABEL = re.compile(
    r"(?P<before>\A|\n[ \t\r]*\n)(?P<blank>[ \t]*)"
    r"\[(?=(?:p\d+|[\w.:%-]*_[\w.:%-]*)(?:, (?:reduced|abstract|reference))?\])"
)
UNNAMED = re.compile(r"[^\w.:-]")
BRACKETS = re.compile(r"[\[\]{}]")
DEPTH_MAX = 200  # brackets within brackets: what is written again must not be deeper than Python can go


def dumps(value: Any) -> str:
    """A value as JSON on one line; ordinary text looks ordinary, and whatever could forge is a JSON escape.

    Keys keep their order. Raises ValueError where a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if "<" in text:
        text = TAG.sub(r"\\u003c", text)
    return text if text.isascii() and DELETE not in text else UNSEEN.sub(_escaped, text)


def loads(text: str) -> Any:
    """The value a JSON text stands for; raises ValueError for anything that `dumps` could not write again."""
    if text.count("[") + text.count("{") > DEPTH_MAX:
        depth = 0
        for found in BRACKETS.finditer(text):
            depth += 1 if found[0] in "[{" else -1
            if depth > DEPTH_MAX:
                raise ValueError("too many brackets within brackets")
    return json.loads(text, parse_constant=_refuse, parse_float=_number)


def tagless(text: str) -> str:
    """A text outside of JSON with nothing in it that could pass for a tag: such a `<` becomes `&lt;`."""
    return TAG.sub("&lt;", text)


def unlabelled(text: str) -> str:
    """A text in which no paragraph begins with what could pass for a page's label: such a `[` becomes `&#91;`."""
    return LABEL.sub(r"\g<before>\g<blank>&#91;", text) if "[" in text else text


def harmless(value: Any) -> Any:
    """A JSON value with nothing in its texts that could pass for a tag or for a page's label."""
    if isinstance(value, str):
        return unlabelled(tagless(value))
    if isinstance(value, dict):
        return {unlabelled(tagless(key)): harmless(inner) for key, inner in value.items()}
    return [harmless(inner) for inner in value] if isinstance(value, list) else value


def finite(value: Any) -> Any:
    """A JSON value whose numbers are finite; another stays the text that it prints as."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list) else value


def printed(name: str) -> str:
    """A page's name as protocol prints it: anything but letters, digits and `.:-_` percent-encoded.

    What is printed reads as the same name wherever vmstore takes references.
    """
    return UNNAMED.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass")), name
    )


def name_of(text: str) -> str:
    """The name that was printed so; an address (`vm://…`) stays as it is, for it has codes of its own."""
    return text if "://" in text else unquote(text, errors="surrogatepass")


def is_plain(text: str) -> bool:
    """Tells whether a text can stand in a line of protocol just as it is."""
    return not (CONTROL.search(text) or UNSEEN.search(text) or TAG.search(text))


def _number(text: str) -> float | str:
    """A number; one too large to be a number here stays the text it is."""
    number = float(text)
    return number if math.isfinite(number) else text


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
