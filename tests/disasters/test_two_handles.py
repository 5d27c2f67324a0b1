"""Two handles write one store in turn, as two processes would, and neither trips over the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import vmstore
from tests.engine.stories import answer, chat
from tests.refusals import refused
from vmstore.errors import InputError

Handles = tuple[vmstore.Store, vmstore.Store]


@pytest.fixture
def handles(store_path: Path) -> Iterator[Handles]:
    """Two handles on one store that holds a session of three calls."""
    with vmstore.open(store_path) as file:
        for text in ("a", "b", "c"):
            file.record("s", chat(f"from {text}"))
        with vmstore.open(store_path) as two:
            yield file, two


def test_turns_and_calls_stay_right(handles: Handles) -> None:
    """Whichever handle folds a commit, every row of the views has the turn and the call of its moment."""
    first, two = handles
    texts: list[str] = []
    for number, store in enumerate((first, two, first, two, two, first)):
        texts.append(f"question {number}")
        store.record("t", chat(*texts), answer(f"answer {number}"))
        texts.append(f"answer {number}")
    assert first.verify().problems == []
    assert two.verify().problems == []


def test_a_call_after_anothers_is_recorded(handles: Handles) -> None:
    """A handle whose session another one moved records its next call, though its last one was refused."""
    first, two = handles
    with pytest.raises(InputError):
        first.record("s", {"messages": 5})
    two.record("s", chat("from d"))
    two.record("s", chat("from e"))
    assert first.record("s", chat("from f")).call == 6
    assert two.session("s").wire.messages(call=6) == chat("from f")["messages"]
    assert first.verify().ok


def test_a_retry_on_another_handle_has_the_first_answer(handles: Handles) -> None:
    """A request id used on one handle is known on the other, and the call is recorded once."""
    each_first, two = handles
    first = each_first.record("s", chat("d"), answer("yes"), request_id="r")
    assert two.record("s", chat("d"), answer("yes"), request_id="r") == first
    assert two.session("s").info().calls == 4


@pytest.mark.parametrize(("first", "second"), [("a", "ab"), ("r-10", "r-1"), ("a", "a "), ("%", "_"), ("ä", "a")])
def test_request_ids_are_not_mixed_up(handles: Handles, first: str, second: str) -> None:
    """Two request ids are two, however alike they are."""
    each_first, two = handles
    assert each_first.record("s", chat("d"), request_id=first).call == 4
    assert two.record("s", chat("e"), request_id=second).call == 5


@pytest.mark.parametrize("request_id", ["a\nb", "a\n", "\x00", "\ud800", 7])
def test_a_request_id_is_printable_text(handles: Handles, request_id: object) -> None:
    """An id that no cell or view could keep apart is refused with the reason, and nothing is written."""
    store, _ = handles
    with refused("not-a-name", InputError):
        store.record("s", chat("d"), request_id=request_id)  # type: ignore[arg-type]
    assert store.session("s").info().calls == 3


def test_a_fork_made_on_one_handle_is_written_on_the_other(handles: Handles) -> None:
    """A fork is at once a session of the other handle, with its parent's past."""
    first, two = handles
    first.session("s").fork("f", call=2)
    two.record("f", chat("from b", "yes", "and?"), answer("so"))
    assert [first.session(name).info().calls for name in ("s", "f")] == [3, 3]
    assert first.session("f").wire.messages(call=2) == chat("from b")["messages"]
    assert first.verify().ok
