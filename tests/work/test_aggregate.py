"""One form of several observations: counted, each fact once, within its tokens, and nothing made up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.refusals import refused
from tests.work.agents import Done, worked
from vmstore import memory_store
from vmstore.errors import InputError
from vmstore.work.aggregate import TOKENS_MAX, aggregated, runs_of
from vmstore.work.disclosure import LIMITS, SessionRecord, steps_of
from vmstore.work.observation import Observation, compressed, tokens


def did(tool: str, arguments: Any, output: str, *, number: int = 1, turn: int = 1, failed: bool = False) -> Observation:
    """An observation with the tokens it has."""
    made = Observation("s", f"p{number}", f"p{number + 1}", turn, tool, arguments, output, failed, "", 0)
    return made._replace(tokens=tokens(made.text))


def edits(count: int, file: str = "src/a.py") -> list[Observation]:
    """Edits of a file, each of a function of its own, and one that failed."""
    outputs = [f"Replaced one piece of text; the file has {n + 40} lines now. {'.' * 300}" for n in range(count)]
    new = [{"path": file, "newText": f"def part_{n}():\n    return {n}\n"} for n in range(count)]
    made = [did("edit", new[n], outputs[n], number=10 * n + 1) for n in range(count)]
    return [*made, did("edit", {"path": file}, "Error: text not found in the file", number=990, failed=True)]


def test_what_was_done_again_and_again_is_told_once_with_how_often() -> None:
    """Five edits of a file are one form: how many, how many failed, the file once, what went wrong."""
    form = aggregated(edits(4), target_ratio=0.3)
    assert form.summary.startswith("5 × edit, 1 failed; src/a.py (×5); ")
    assert "text not found in the file" in form.summary and "defines part_0" in form.summary
    assert (form.method, form.lossy, form.reconstructible) == ("aggregated", True, True)
    assert form.original_tokens == sum(each.tokens for each in edits(4))


@pytest.mark.parametrize("count", [2, 7, 60])
def test_a_form_of_many_keeps_to_its_share(count: int) -> None:
    """It takes a twelfth of their tokens or 32, never more than 400, and fewer than their own forms together."""
    seen = edits(count)
    form = aggregated(seen)
    assert form.compressed_tokens <= min(max(form.original_tokens * 0.08, 32), TOKENS_MAX)
    assert form.compressed_tokens < sum(compressed(each).compressed_tokens for each in seen)
    assert form.ratio == round(tokens(form.summary) / form.original_tokens, 3)


def test_nothing_is_made_up_of_several() -> None:
    """Each key fact stands in one of them, but for counts."""
    seen = [did("shell", {"command": f"cat log{n}.txt"}, f"worker {n} lost host-{n}: timeout") for n in range(3)]
    for fact in aggregated(seen).key_facts:
        assert any(fact.partition(" (×")[0] in f"{each.output} {each.arguments['command']}" for each in seen)


def test_a_form_alone_is_the_observations_own() -> None:
    """One is told as it is told alone; of none there is no form."""
    (alone,) = edits(0)
    assert aggregated([alone]) == compressed(alone)
    with pytest.raises(ValueError) as refusal:
        aggregated([])
    assert "one observation" in str(refusal.value)


def test_what_is_short_already_is_told_whole() -> None:
    """Two sums are not made longer by counting them."""
    seen = [did("calculate", {"e": f"{n}+1"}, str(n + 1))._replace(tokens=4) for n in range(2)]
    form = aggregated(seen)
    assert (form.method, form.ratio, form.lossy) == ("verbatim", 1.0, False)
    assert all(each.text in form.summary for each in seen)


def test_a_run_is_of_one_kind_and_one_turn() -> None:
    """Reading and searching take turns in one run; an edit, another turn and a tool of another name end it."""
    seen = [
        did("read", {"path": "a"}, "x"),
        did("grep", {"pattern": "b"}, "x"),
        did("edit", {"path": "a"}, "x"),
        did("edit", {"path": "a"}, "x", turn=2),
        did("book", {}, "x", turn=2),
        did("cancel", {}, "x", turn=2),
    ]
    assert [len(run) for run in runs_of(seen)] == [2, 1, 1, 1, 1]


def test_the_account_of_a_long_session_tells_of_every_turn() -> None:
    """Where 43 observations have no room of their own each turn has a line, from the first to the last."""
    seen = [did("edit", {"path": f"f{n}.py"}, "x" * 400, number=n + 1, turn=1 + n // 10) for n in range(100)]
    account = steps_of(SessionRecord("Mend all", None, seen))[-2]
    assert account.step == 3 and account.token_cost <= LIMITS[3]
    assert [text.partition(":")[0] for text in account.content.splitlines()] == [
        f"- p{first} to p{first + 9}" for first in range(1, 100, 10)
    ]


def test_a_session_tells_its_observations_together() -> None:
    """`aggregates` has every call once, up to a moment, and refuses what is no share."""
    store = memory_store()
    turns: list[list[Done]] = [[("read", {"path": f"{n}.py"}, "x = 1\n" * 50) for n in range(3)], [("run", {}, "ok")]]
    worked(store, "s", turns)
    work = store.session("s").work
    forms = work.forms.together()
    assert [len(form.pages) for form in forms] == [3, 1]
    assert [page for form in forms for page in form.pages] == [each.page for each in work.observations()]
    assert forms[0].summary.startswith("3 × read; 0.py") and forms[0].method == "aggregated"
    assert work.forms.together(turn=1) == forms[:1]
    with refused("not-a-share", InputError):
        work.forms.together(target_ratio=0)
