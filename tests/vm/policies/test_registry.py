"""Policies are found by name, by version and by number, and what is wrong is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import refusals
from vmstore.core.decision import POLICY_NAMES
from vmstore.errors import InputError
from vmstore.vm.policies import registry
from vmstore.vm.policies.lru import LRU1
from vmstore.vm.policies.min_residency import CLASSES
from vmstore.vm.policies.registry import DEFAULT, SHIPPED, full_name, names, numbered, policy, shipped


class LRU2(LRU1):
    """A newer version, as there may be one."""

    VERSION, NUMBER = 2, 99


def test_a_number_stands_for_one_name_and_version() -> None:
    """The log's numbers are those of the closed vocabulary, each used once."""
    assert {policy.NUMBER: full_name(policy) for policy in SHIPPED} == POLICY_NAMES
    for item in SHIPPED:
        assert numbered(item.NUMBER) is item


def test_a_bare_name_is_the_newest_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """`lru` means the newest version of LRU, `lru@1` stays what it was."""
    assert shipped("lru") is shipped("lru@1") is LRU1
    monkeypatch.setattr(registry, "SHIPPED", (LRU2, *SHIPPED))
    assert shipped("lru") is LRU2
    assert shipped("lru@1") is LRU1
    assert "lru@2" in names()


def test_default_names_a_policy_that_is_shipped() -> None:
    """`default` is one of the others, and makes it."""
    assert DEFAULT in names()
    assert shipped(DEFAULT) in SHIPPED
    assert policy(DEFAULT, 1_000).NUMBER == shipped(DEFAULT).NUMBER


@pytest.mark.parametrize(
    ("name", "near"), [("lur", "'lru'"), ("s3-fifo", "'s3fifo'"), ("LRU@1", "lru@1"), ("lru@3", "'lru@1'")]
)
def test_an_unknown_name_is_told_the_names(name: str, near: str) -> None:
    """What is no policy is refused with the list of those there are, and the near one."""
    with refusals.refused("no-policy", InputError) as refused:
        policy(name, 1_000)
    assert near in str(refused.value)
    assert all(name in str(refused.value) for name in names())


def test_a_name_that_is_near_to_none_gets_no_guess() -> None:
    """Nothing is suggested where nothing is like it."""
    with pytest.raises(InputError) as refused:
        policy("zzzz", 1_000)
    assert "did you mean" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "counts", "words"),
    [
        ("lru", {"weight": 3}, "no parameter 'weight'; it has transcript"),
        ("demand", {"half_lief": 3}, "half_life, burst"),
        ("demand", {"half_life": 0}, "it is from 100 to 1,000,000"),
        ("recency", {"decay_ppm": 999}, "it is from 1000 to"),
        ("importance", {"weight": -1}, "it is from 0 to"),
        ("lru", {"claim": 10}, "it is from 0 to 9"),
    ],
)
def test_a_wrong_parameter_is_refused(name: str, counts: dict[str, int], words: str) -> None:
    """A parameter a policy has not, or a value it cannot take, is refused with what it can."""
    with pytest.raises(InputError) as refused:
        policy(name, 1_000, **counts)
    assert words in str(refused.value)


def test_a_number_of_a_later_version_is_said() -> None:
    """A number nobody knows yet is an error that says where it comes from."""
    with refusals.refused("no-policy", InputError):
        numbered(98)


# ---- specs/policies.md

PAGE = (Path(__file__).resolve().parents[3] / "specs" / "policies.md").read_text()


def test_the_table_of_policies_is_the_code_s() -> None:
    """Every policy stands in the spec with its number, its name, and its parameters as they are where nobody says."""
    rows = re.findall(r"^\| (\d+) \| `(.+?)` \| .+? \|(.*)\|$", PAGE, re.MULTILINE)
    values = {int(number): (name, _parameters(cell)) for number, name, cell in rows}
    assert values == {queues.NUMBER: (full_name(queues), dict(queues.PARAMETERS)) for queues in SHIPPED}
    assert f"`default` names `{registry.CHOSEN}`" in PAGE


def _parameters(cell: str) -> dict[str, int]:
    return {name: int(value) for name, value in re.findall(r"`(\w+)` (\d+)", cell)}


def test_the_table_of_classes_is_the_code_s() -> None:
    """Every type of page stands in the spec with the class it is kept in."""
    rows = re.findall(r"^\| ([a-z, ]+) \| (\d) \|$", PAGE, re.MULTILINE)
    numbers = {word: int(kept) for words, kept in rows for word in words.split(", ")}
    assert numbers == {type_.word: kept for type_, kept in CLASSES.items()}
