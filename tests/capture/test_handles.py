"""Several handles on one store: nothing is lost, nothing told twice, every request stays equal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capture.words import (
    LONG,
    NOTE,
    answer,
    ask,
    kinds,
    lines,
    model_text,
    request,
    result,
    spelled,
    system,
    user,
)
from vmstore.store.store import Store, memory_store, open_store

HEAD = [system("You look things up."), user("What is in the package?")]


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Does works at the same moment; what each returned, or the error it raised."""
    barrier = threading.Barrier(len(works))
    outcomes: list[Any] = [None] * len(works)

    def run(index: int, work: Callable[[], Any]) -> None:
        barrier.wait(10)
        try:
            outcomes[index] = work()
        except BaseException as error:
            outcomes[index] = error

    threads = [threading.Thread(target=run, args=both) for both in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return outcomes


def test_two_handles_go_on_where_the_other_stopped(store_path: Path) -> None:
    """By turns, each call of either handle continues the conversation the other left, writing only the new."""
    talk = [HEAD[0]]
    sent = []
    with open_store(store_path) as each_store, open_store(store_path) as other:
        for n in range(8):
            store = (each_store, other)[n % 2]
            talk += [user(f"question {n}")]
            sent.append(request(talk))
            assert store.record("s", sent[-1], answer(model_text(f"answer {n}"))).call == n + 1
            talk += [model_text(f"answer {n}")]
        for store in (each_store, other):
            session = store.session("s")
            assert [session.wire.request(call=n) for n in range(1, 9)] == sent
            assert (session.info().turns, session.info().pages) == (8, 17)
        assert each_store.verify().ok


def test_forms_made_by_one_handle_are_known_to_the_other(store_path: Path) -> None:
    """A result that one handle compressed is restored and compressed again by the other without content."""
    shown = [request([*HEAD, ask("c1"), result("c1", text), user("So?")]) for text in (LONG, NOTE)]
    with open_store(store_path) as store, open_store(store_path) as other:
        for n in range(6):
            (store, other)[n % 2].record("s", shown[n // 2 % 2])
        made = kinds(store)
        assert made.count("compress") == 1 and "update" not in made
        assert [other.session("s").wire.request(call=n + 1) == shown[n // 2 % 2] for n in range(6)] == [True] * 6


def test_writers_at_once_lose_nothing(store_path: Path) -> None:
    """Two handles recording into one session as fast as they can: every call is there, equal to what was sent."""
    with open_store(store_path) as store:
        store.record("s", request(HEAD))
    handles = [open_store(store_path) for _ in range(2)]

    def work(store: Store, name: int) -> dict[int, str]:
        sent = {}
        for n in range(15):
            body = request([*HEAD, model_text(f"{name} saw {n}"), user(f"go on, {name}")])
            sent[store.record("s", body, answer(model_text(f"{name} went {n}"))).call] = spelled(body)
        return sent

    outcomes = at_once(*[lambda h=handle, n=n: work(h, n) for n, handle in enumerate(handles)])
    assert not [outcome for outcome in outcomes if isinstance(outcome, BaseException)], outcomes
    sent = {call: body for outcome in outcomes for call, body in outcome.items()}
    assert sorted(sent) == list(range(2, 32))
    session = handles[0].session("s")
    assert all(spelled(session.wire.request(call=call)) == body for call, body in sent.items())
    assert handles[1].verify().ok
    for handle in handles:
        handle.close()


def test_one_name_is_one_session_whoever_opens_it_first(store_path: Path) -> None:
    """Two handles that record a session's first call at once make one session of two calls."""
    open_store(store_path).close()
    handles = [open_store(store_path) for _ in range(2)]
    works = [lambda h=handle: h.record("s", request(HEAD)) for handle in handles]
    outcomes = at_once(*works)
    assert not [outcome for outcome in outcomes if isinstance(outcome, BaseException)], outcomes
    assert [(info.session, info.calls) for info in handles[0].sessions()] == [("s", 2)]
    for handle in handles:
        handle.close()


def test_a_name_taken_meanwhile_is_no_second_session(store_path: Path) -> None:
    """A handle that has not looked since another opened a session still finds it by its name."""
    with open_store(store_path) as store, open_store(store_path) as other:
        other.sessions()
        store.record("s", request(HEAD))
        assert other.record("s", request(HEAD)).call == 2
        assert other.session("s", create=True).info().calls == 2
        assert len(store.sessions()) == 1


def test_one_file_imported_twice_at_once_is_one_session(store_path: Path, tmp_path: Path) -> None:
    """Two imports of one file at the same moment end in one session with each record once."""
    file = lines(
        tmp_path / "talk.jsonl", [m for n in range(150) for m in request([user("go"), model_text(f"{n}")])["messages"]]
    )
    open_store(store_path).close()
    handles = [open_store(store_path) for _ in range(2)]
    at_once(*[lambda h=handle: h.import_file(file) for handle in handles])
    infos = handles[0].sessions(hidden=True)
    assert [(info.session, info.calls, info.messages) for info in infos] == [("talk", 150, 300)]
    for handle in handles:
        handle.close()


def test_request_ids_hold_across_handles(store_path: Path) -> None:
    """A retry through another handle gives the first answer."""
    with open_store(store_path) as store, open_store(store_path) as other:
        other.record("s", request(HEAD))
        first = store.record("s", request(HEAD), request_id="r1")
        assert other.record("s", request(HEAD), request_id="r1") == first
        assert other.session("s").info().calls == 2


def test_more_sessions_than_are_kept_at_hand_lose_nothing() -> None:
    """Sessions in turn, more than a handle keeps in memory: each is found again as it was left."""
    with memory_store() as store:
        for n in range(3):
            for k in range(70):
                talk = [user(f"{k}"), *[item for i in range(n) for item in (model_text(f"{k} {i}"), user(f"and {i}"))]]
                store.record(f"s{k}", request(talk), answer(model_text(f"{k} {n}")))
        infos = store.sessions()
        assert [(info.turns, info.calls, info.pages) for info in infos] == [(3, 3, 6)] * 70
        assert store.verify().ok


def test_a_file_that_grows_while_its_session_is_recorded_into_ends_whole(store_path: Path, tmp_path: Path) -> None:
    """Import and recording through two handles, by turns, leave each record and each call there once."""
    file = tmp_path / "talk.jsonl"
    records = [m for n in range(6) for m in request([user(f"q{n}"), model_text(f"a{n}")])["messages"]]
    with open_store(store_path) as store, open_store(store_path) as other:
        for n in range(2, 13, 2):
            store.import_file(lines(file, records[:n]))
            other.record("talk", {"model": "m", "messages": [*records[:n], *request([user(f"aside {n}")])["messages"]]})
        session = store.session("talk")
        assert session.info().calls == 12
        assert session.wire.request(call=12)["messages"][:-1] == records
        assert store.import_file(file).new == 0
        assert other.verify().ok


def test_readers_see_whole_calls_while_others_write(store_path: Path) -> None:
    """Whatever moment a reader meets, each call it can name gives back a whole request."""
    sent = [request([*HEAD, *[model_text(f"answer {k}") for k in range(n)]]) for n in range(25)]
    with open_store(store_path) as store:
        store.record("s", sent[0])

    def write() -> None:
        with open_store(store_path) as store:
            for body in sent[1:]:
                store.record("s", body)

    def look() -> list[tuple[int, bool]]:
        seen: list[tuple[int, bool]] = []
        with open_store(store_path, "r") as store:
            while not seen or (seen[-1][0] < len(sent) and len(seen) < 2000):
                context = store.session("s").context()
                seen.append((context.basis.call, context.request() == sent[context.basis.call - 1]))
        return seen

    outcomes = at_once(write, look)
    assert outcomes[0] is None, outcomes
    assert not isinstance(outcomes[1], BaseException), outcomes
    calls = [call for call, _ in outcomes[1]]
    assert calls == sorted(calls) and calls[-1] == len(sent)
    assert all(equal for _, equal in outcomes[1])


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_a_store_opens_while_others_open_and_close_it(store_path: Path, mode: str) -> None:
    """Opening waits its turn: no handle is refused because another comes or goes."""
    with open_store(store_path) as store:
        store.record("s", request(HEAD))

    def work() -> int:
        calls = 0
        for _ in range(12):
            with open_store(store_path, mode) as store:
                calls += store.session("s").info().calls
        return calls

    assert at_once(work, work, work) == [12, 12, 12]
