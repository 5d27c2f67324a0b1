"""What a reader may set in the shell, and where its files are."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from vmstore.errors import InputError
from vmstore.shell.vmql.output.formats import MODES
from vmstore.vmql.syntax.errors import QueryError, near
from vmstore.vmql.syntax.nodes import NOWHERE, MomentNode, Param, Set, SourceSpan, Subquery, Value, Word
from vmstore.vmql.syntax.printer import show as shown_moment

LIMIT = 1000  # rows of one answer on a terminal
AUTO = "auto"


class ShellSettings(msgspec.Struct):
    """Values that hold until they are changed; `session` and `moment` hold for statements that name none."""

    mode: str = AUTO
    timing: bool = False
    pager: str = "on"  # on, off, or a command that is given what would go to the terminal
    limit: int = LIMIT  # 0 is none
    session: str | None = None
    moment: MomentNode | None = None
    params: dict[str, Any] = {}
    timeout: float | None = None  # seconds that a statement may take
    rows: int | None = None  # rows that its answer may have
    memory: int | None = None  # bytes that it may take
    history: bool = True  # whether what is asked is kept for the next time

    def put(self, name: str, value: Any, span: SourceSpan = NOWHERE, text: str = "") -> None:
        """Sets one of NAMES, None for what it is by itself; raises InputError where it cannot be that."""
        if name not in NAMES:
            meant = near(name, NAMES)
            hint = f"did you mean {meant}?" if meant else f"they are {', '.join(NAMES)}"
            message = f"there is no setting {name!r}"
            raise QueryError(message, code="unknown-setting", text=text, span=span, expected=NAMES, hint=hint)
        setattr(self, "moment" if name == "as_of" else name, TAKERS[name](value))

    @property
    def limits(self) -> dict[str, float | int]:
        """What a statement may take, as the store is asked for it."""
        asked = {"timeout_s": self.timeout, "rows": self.rows, "memory": self.memory}
        return {name: limit for name, limit in asked.items() if limit is not None}

    def shown(self) -> list[tuple[str, str]]:
        """Each setting with its value, as people read them."""
        return [
            ("session", self.session or ""),
            ("as_of", "HEAD" if self.moment is None else shown_moment(self.moment)),
            ("limit", str(self.limit)),
            ("mode", self.mode),
            ("timing", "on" if self.timing else "off"),
            ("pager", self.pager),
            *((name, "" if (limit := getattr(self, name)) is None else str(limit)) for name in LIMITS),
            ("params", ", ".join(f"${name} = {json.dumps(value)}" for name, value in self.params.items())),
        ]


def set_to(statement: Set, params: dict[str, Any]) -> Any:
    """What SET gives: a value, a word's letters, a moment; None for NULL."""
    match statement.value:
        case Value(value=value):
            return value
        case Word(path=path):
            return ".".join(path)
        case Param(name=name):
            if name not in params:
                raise InputError(f"${name} is not given; \\param {name}=VALUE gives it")
            return params[name]
        case moment:
            return moment


def turn(word: str) -> MomentNode | None:
    """The moment of `\\turn`; None for the head."""
    if word.upper() == "HEAD":
        return None
    if word.isdecimal():
        return MomentNode(unit="turn", value=Value(value=int(word)))
    raise InputError(f"{word!r} is no turn; write its number, or HEAD")


# ---- what each setting takes


def _moment(value: Any) -> MomentNode | None:
    if value is None or (isinstance(value, MomentNode) and value.unit == "head"):
        return None
    if isinstance(value, MomentNode) and isinstance(value.value, Subquery):
        raise InputError("a setting holds one moment; ask the statement, and SET what it gives")
    if isinstance(value, MomentNode):
        return value
    if str(value).upper() == "HEAD":
        return None
    raise InputError(f"{value!r} is no moment; write SET as_of = TURN 42, or CALL, POSITION, TIME, HEAD")


def _limit(value: Any) -> int:
    if value is None:
        return LIMIT
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise InputError(f"{value!r} is not a number from 0 up; 0 is no limit")


def _mode(value: Any) -> str:
    return AUTO if value is None else mode_named(str(value))


def _timing(value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    if str(value).lower() in ("on", "off"):
        return str(value).lower() == "on"
    raise InputError(f"{value!r} is neither on nor off")


def _pager(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "off" if value is False else "on"
    return str(value).lower() if str(value).lower() in ("on", "off") else str(value)


def _most(name: str, value: Any) -> float | int | None:
    """A limit: seconds, rows, or bytes, which may be written as 64MB."""
    if value is None:
        return None
    number, unit = str(value).strip().lower(), 1
    if name == "memory":
        number, unit = next(
            ((number.removesuffix(sign), size) for sign, size in SIZES.items() if number.endswith(sign)), (number, 1)
        )
    try:
        found = float(number) * unit
    except ValueError:
        found = 0.0
    whole = name != "timeout"
    if isinstance(value, bool) or not 0 < found < float("inf") or (whole and found != int(found)):
        what = {"timeout": "number of seconds", "rows": "number of rows", "memory": "number of bytes, as 64MB"}[name]
        raise InputError(f"{name} {value!r} is no {what} above 0", code="not-a-limit")
    return int(found) if whole else found


SIZES = {"kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


def _session(value: Any) -> str | None:
    return None if value is None else str(value)


TAKERS: dict[str, Callable[[Any], Any]] = {
    "session": _session,
    "as_of": _moment,
    "limit": _limit,
    "mode": _mode,
    "timing": _timing,
    "pager": _pager,
    "timeout": partial(_most, "timeout"),
    "rows": partial(_most, "rows"),
    "memory": partial(_most, "memory"),
}
LIMITS = ("timeout", "rows", "memory")
NAMES = tuple(TAKERS)
SETTINGS = "settings"


def mode_named(word: str) -> str:
    """The mode of a name; raises InputError with those there are."""
    if word.lower() in (AUTO, *MODES):
        return word.lower()
    raise InputError(f"there is no mode {word!r}; the modes are {', '.join((AUTO, *MODES))}")


def value_of(word: str) -> Any:
    """The value a parameter is given: a number, true, false or null as in JSON, text in quotes or bare."""
    try:
        found = json.loads(word)
    except ValueError:
        quoted = len(word) > 1 and word[0] == word[-1] == "'"
        return word[1:-1].replace("''", "'") if quoted else word
    return word if isinstance(found, list | dict) else found


def parameter(text: str) -> tuple[str, Any]:
    """The name and value of `NAME=VALUE`."""
    name, equals, word = text.partition("=")
    name = name.strip().removeprefix("$")
    if not equals or not name.isidentifier():
        raise InputError(f"{text!r} is no parameter; write NAME=VALUE")
    return name, value_of(word.strip())


# ---- files


def config_folder() -> Path:
    """Where what the reader wrote is: the rc file and the favourites."""
    return _xdg("XDG_CONFIG_HOME", ".config")


def state_folder() -> Path:
    """Where what the shell remembers is: the history."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def _xdg(variable: str, otherwise: str) -> Path:
    value = os.environ.get(variable, "")
    base = Path(value) if value.startswith("/") else Path(os.path.expanduser("~")) / otherwise
    return base / "vmstore"
