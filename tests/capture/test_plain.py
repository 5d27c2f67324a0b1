"""What agents hold becomes plain JSON, or is refused with its path."""

from __future__ import annotations

import dataclasses
import enum
from typing import Any

import msgspec
import pytest

from tests.refusals import refused
from vmstore.errors import InputError
from vmstore.providers import plain


class Colour(enum.StrEnum):
    RED = "red"


@dataclasses.dataclass
class HeldText:
    name: str


class Packed(msgspec.Struct, rename="camel"):
    long_name: int


class Older:
    """What an SDK without `model_dump` offers."""

    def dict(self) -> dict[str, Any]:
        return {"old": True}


class Broken:
    """An object whose own conversion fails."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        raise RuntimeError("no such luck")


class Model:
    """What an SDK's response objects look like."""

    def model_dump(self, *, mode: str, exclude_unset: bool, warnings: bool) -> dict[str, Any]:
        assert (mode, exclude_unset, warnings) == ("json", True, False)
        return {"role": "assistant", "held": (HeldText("a"),)}


class NotGiven:
    """What an SDK puts where an argument was left out."""


def test_plain_opens_what_agents_hold() -> None:
    """SDK objects, dataclasses, tuples and enumerations become JSON; what was not given goes."""
    taken = plain({"m": Model(), "c": Colour.RED, "t": (1, 2.5, Packed(3), Older()), "n": NotGiven()})
    assert taken == {
        "m": {"role": "assistant", "held": [{"name": "a"}]},
        "c": "red",
        "t": [1, 2.5, {"longName": 3}, {"old": True}],
    }
    assert type(taken["c"]) is str


def test_plain_leaves_plain_values_as_they_are() -> None:
    """A value that is plain already is not copied."""
    value = {"a": [1, {"b": None}]}
    assert plain(value) is value


@pytest.mark.parametrize("bad", [b"x", {1}, print, Model, object(), float("nan"), float("inf"), {1: 2}, iter([])])
def test_plain_refuses_what_is_not_json(bad: Any) -> None:
    """What JSON cannot say is refused with its path."""
    with refused("not-json", InputError, "messages[3].content[0]"):
        plain({"messages": [0, 0, 0, {"content": [bad]}]})


def test_plain_names_the_object_that_fails() -> None:
    """An SDK object whose own conversion raises is refused with its reason."""
    with refused("not-json", InputError):
        plain({"a": Broken()})


def test_plain_refuses_the_bottomless() -> None:
    """A value nested too deeply to be read back is refused, a merely deep one is not."""
    deep: Any = []
    for _ in range(150):
        deep = [deep]
    assert plain(deep) is deep
    for _ in range(100):
        deep = [deep]
    with refused("too-deep", InputError):
        plain(deep)
    deep = []
    deep.append(deep)
    with refused("too-deep", InputError):
        plain(deep)
