"""Questions that take long are bounded: what one may ask, how many are answered at once, and for how long."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import vmstore
from tests.debug.conftest import Serve, Served
from tests.refusals import refused
from tests.replay.lives import live
from vmstore.debug import app
from vmstore.debug.api import SWEEP_MAX
from vmstore.replay import sweep as sweeping
from vmstore.vmql.execution.executor import Runner
from vmstore.vmql.execution.result import Cancellation
from vmstore.vmql.syntax.errors import QueryError

BUDGETS = ",".join(str(5_000 + 100 * step) for step in range(SWEEP_MAX))


def until(condition: Callable[[], object]) -> None:
    """Waits for something to come true."""
    for _ in range(15_000):
        if condition():
            return
        time.sleep(0.002)
    raise AssertionError("it never came true")


@pytest.fixture
def served(serve: Serve) -> Served:
    """A debugger of a store with a live session."""
    store = vmstore.memory_store()
    live(store, "s", turns=6)
    return serve(store)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> tuple[list[object], threading.Event]:
    """The what-ifs that were begun; each goes on when the event is set."""
    begun, go, whole = list[object](), threading.Event(), sweeping.SweepWorker.run

    def run(self: Any, task: Any) -> Any:
        begun.append(task)
        assert go.wait(60)
        return whole(self, task)

    monkeypatch.setattr(sweeping.SweepWorker, "run", run)
    return begun, go


def left(served: Served, question: str = f"sweep?session=s&budgets={BUDGETS}") -> None:
    """Asks a question, and leaves before it is answered."""
    asker = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
    asker.request("GET", f"/api/{question}", headers={"Host": f"127.0.0.1:{served.port}"})
    time.sleep(2 * app.LOOK_S)
    asker.close()


def test_one_question_asks_for_so_many(served: Served) -> None:
    """A sweep of more what-ifs than one question may have is refused with the number, and nothing is computed."""
    value = served.get("sweep", session="s", budgets=BUDGETS, policies="lru,s3fifo")
    assert value.status == 400 and f"{2 * SWEEP_MAX:,} what-ifs" in value.error["reason"]


def test_who_left_is_computed_nothing_more(served: Served, runs: tuple[list[object], threading.Event]) -> None:
    """A sweep whose asker has left ends with the what-if that is under way."""
    begun, go = runs
    left(served)
    until(lambda: begun)
    time.sleep(4 * app.LOOK_S)
    go.set()
    assert served.read("sweep", session="s", budgets="7000")["runs"]
    assert len(begun) == 3  # what was under way, then the recorded one and the one of another budget


def test_what_takes_long_keeps_others_from_nothing(served: Served, runs: tuple[list[object], threading.Event]) -> None:
    """With as many slow questions as may be at once one more is turned away, and everything else is answered."""
    begun, go = runs
    statuses = list[int]()

    def ask() -> None:
        statuses.append(served.get("sweep", session="s", budgets="6000").status)

    threads = [threading.Thread(target=ask) for _ in range(app.SLOW_MAX)]
    for thread in threads:
        thread.start()
    until(lambda: len(begun) == app.SLOW_MAX)
    value = served.get("sweep", session="s", budgets="6000")
    assert value.status == 429 and f"{app.SLOW_MAX} questions" in value.error["reason"]
    assert served.get("store").status == served.get("film", session="s").status == served.ask("/").status == 200
    go.set()
    for thread in threads:
        thread.join()
    assert statuses == [200] * app.SLOW_MAX
    assert served.get("sweep", session="s", budgets="6000").status == 200


def test_a_statement_whose_asker_left_is_stopped(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement whose asker has left ends in its midst, and what another thread asked goes on."""
    mine, watches, whole = served.store.query("PAGES IN SESSION 's'"), list[Cancellation](), Runner.viewed

    def viewed(self: Runner, sql: str, values: Any, watch: Cancellation, *wrong: Any) -> Any:
        watches.append(watch)
        until(lambda: watch.stopped)
        return whole(self, sql, values, watch, *wrong)

    with monkeypatch.context() as patch:
        patch.setattr(Runner, "viewed", viewed)
        left(served, "vmql?session=s&q=PAGES")
        until(lambda: watches and watches[0].stopped)
    assert next(mine) and served.read("vmql", session="s", q="PAGES count(*)")["rows"]
    served.store.admin.interrupt(threading.get_ident())
    with refused("cancelled", QueryError):
        next(mine)
