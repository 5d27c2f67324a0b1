"""`vmstore facts`: what is known, found and chosen by its words."""

from __future__ import annotations

from pathlib import Path

import pytest

import vmstore
from tests.shell.conftest import Run
from vmstore.facts.verbs import of_another


def test_facts_are_found_and_listed(run: Run, tmp_path: Path) -> None:
    """With --find facts are stated once; they are listed as a table and as JSON, chosen by their words."""
    path = tmp_path / "s.vms"
    with vmstore.open(path) as store:
        store.session("talk", create=True, user="ann")
        store.record("talk", {"messages": [{"role": "user", "content": "I love rowing and I live in Ghent"}]})
    assert "no fact is known" in run("facts", path).err
    first = run("facts", path, "talk", "--find", "--json").json
    assert [fact["what"] for fact in first["facts"]] == ["Ghent", "rowing"] and len(first["found"]) == 2
    assert run("facts", path, "--find", "--json").json["found"] == []
    assert "rowing" in run("facts", path, "--verb", "adores").out
    assert [f["what"] for f in run("facts", path, "--user", "ann", "--type", "preference", "--json").json["facts"]] == [
        "rowing"
    ]
    assert "leave the session out" in run("facts", path, "talk", "--user", "ann").err


VERBS = [
    ("live in", "lives in"), ("have", "has"), ("am", "is"), ("trying to", "is trying to"), ("carry", "carries"),
    ("don't eat", "doesn't eat"), ("play", "plays"), ("watch", "watches"), ("need", "needs"), ("miss", "misses"),
    ("moved to", "moved to"), ("chose", "chose"), ("is into", "is into"), ("would like", "would like"),
    ("lives in", "lives in"), ("never eat", "never eat"), ("bring", "brings"),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "of_others"), VERBS)
def test_a_verb_reads_of_somebody_else(verb: str, of_others: str) -> None:
    """A fact is stored as its speaker said it and listed as told of somebody else."""
    assert of_another(verb) == of_others
