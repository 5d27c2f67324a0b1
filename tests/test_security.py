"""SECURITY.md names the test of each promise, and each is there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.prose import CHECKOUT, broken_links

PAGE = CHECKOUT / "SECURITY.md"
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def missing(text: str) -> list[str]:
    """The tests a page names that are not there."""
    return [
        f"{file}::{name}"
        for file, name in NAMED.findall(text)
        if not (CHECKOUT / file).is_file()
        or name not in {node.name for node in ast.parse((CHECKOUT / file).read_text()).body if hasattr(node, "name")}
    ]


def test_every_promise_names_a_test_that_is_there() -> None:
    """Each row of a table that promises something names a test, and the test exists."""
    text = PAGE.read_text()
    assert missing(text) == [] and len(NAMED.findall(text)) > 20
    assert broken_links(PAGE) == []


@pytest.mark.parametrize("wrong", ["test_every_flap_is_named", "nothing"])
def test_a_promise_without_its_test_is_found(wrong: str) -> None:
    """A page that names a test that is not there does not pass."""
    text = PAGE.read_text().replace("test_every_flip_is_named", wrong)
    assert len(missing(text)) == 1
