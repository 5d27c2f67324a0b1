"""Formats values for people: numbers, sizes, times, and text that is safe on a terminal."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from vmstore.core.times import moment_of

LEVELS = ("full", "reduced", "abstract", "reference")
ESTIMATED = "≈"
_OTHER = re.compile(r"[^\x00-\x7f]")
BARS = " ▏▎▍▌▋▊▉█"

# What stands in for our own signs where the output's encoding has none of them.
ASCII = str.maketrans("├└│─·●→←█▉▊▋▌▍▎▏…±✓✗≈", "|`|-.*><#######..~+x~")


def wide(text: str) -> int:
    """Returns the number of terminal columns a text takes."""
    if text.isascii():
        return len(text)
    others = _OTHER.findall(text)
    return len(text) - len(others) + sum(map(_columns, others))


@lru_cache(maxsize=1_024)
def _columns(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


def cut(text: str, columns: int) -> str:
    """A text cut to a number of terminal columns, with an ellipsis where something was cut."""
    if wide(text) <= columns:
        return text
    kept, used = [], 1
    for sign in text:
        used += _columns(sign)
        if used > columns:
            break
        kept.append(sign)
    return "".join(kept) + "…"


def number(value: int | None) -> str:
    """A whole number with its thousands apart; nothing for None."""
    return "" if value is None else f"{value:,}"


def count(value: int, noun: str) -> str:
    """A number and its noun, in the plural where it takes one."""
    plural = noun if value == 1 else noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{value:,} {plural}"


def size(value: int) -> str:
    """Bytes in the unit that suits them."""
    if value < 1000:
        return f"{value} B"
    amount, units = value / 1000, ["kB", "MB", "GB", "TB"]
    while amount >= 999.5 and len(units) > 1:
        amount /= 1000
        units.pop(0)
    return f"{amount:.0f} {units[0]}" if amount >= 100 else f"{amount:.1f} {units[0]}"


def moment(at: int) -> str:
    """Microseconds since 1970 as a date and a time, UTC."""
    return f"{moment_of(at):%Y-%m-%d %H:%M:%S}"


def seconds(value_ms: float | None) -> str:
    """Milliseconds as people say them; nothing for None."""
    if value_ms is None:
        return ""
    return f"{value_ms:.0f} ms" if value_ms < 1000 else f"{value_ms / 1000:.1f} s"


def dollars(value: float | None) -> str:
    """A cost; nothing for None."""
    return "" if value is None else f"${value:.4f}" if value < 1 else f"${value:,.2f}"


def money(cost: float | None, estimated: float | None) -> str:
    """A cost that was recorded, one that is estimated, or both side by side, never added."""
    shown = [dollars(cost)] if cost is not None else []
    shown += [f"{ESTIMATED}{dollars(estimated)}"] if estimated is not None else []
    return " + ".join(shown)


def level(value: int | None) -> str:
    """A level as a word."""
    return "" if value is None else LEVELS[value] if value < len(LEVELS) else str(value)


def change(value: int) -> str:
    """A difference with its sign."""
    return f"+{value:,}" if value > 0 else f"-{-value:,}" if value < 0 else "±0"


def bar(value: int, largest: int, columns: int = 8) -> str:
    """A bar as long as a value's share of the largest."""
    if value <= 0 or largest <= 0:
        return ""
    eighths = max(1, round(8 * columns * value / largest))
    return "█" * (eighths // 8) + BARS[eighths % 8].strip()


def listing(names: Sequence[str], shown: int = 5) -> str:
    """Some names in a row, and how many more there are."""
    rest = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {rest} more" if rest > 0 else "")
