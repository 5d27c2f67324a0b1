"""Guards: how many repeated failures of real sessions are warned of at the third, and what else is said.

The repeated failures were labelled from a listing of calls and answers before any guard was asked: three or more
calls of one tool in a session, or in the sessions of one user, whose answers say that they failed for one reason.
One of them has no sign of its source (a form that came back empty to three guesses), and the rule that finds it was
written after it was labelled. The sessions of pi were labelled the same way and used for nothing else. No model is
asked: what an agent would have done with a warning is not measured, only which failures came after one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import vmstore
from benches.parts.rounds import LOWER, Bench, Goal, MissingError, Row, row
from benches.parts.yardsticks import DATA
from vmstore.core.work.trace import GuardType
from vmstore.store.live.host_tool import HostTool
from vmstore.store.live.memory_tools import ToolAnswer
from vmstore.store.work.calls import guard_info, past_calls
from vmstore.store.work.results import GuardInfo
from vmstore.work.failure import same_failures
from vmstore.work.past_call import PastCall
from vmstore.work.skill import skills
from vmstore.work.watch import Alarm, CallWatch

WARNED = Goal("repeated failures of SWE-agent and tau-bench warned of at the third, share", 0.8)
OWN = Goal("within a session, share")
ACROSS = Goal("across the sessions of a user, share")
FALSE = Goal("alarms of all guards on other calls, of 100 calls", 1, LOWER)
COUNTER = Goal("a counter of a tool's failures in a session instead: labels at the third, share")
COUNTER_FALSE = Goal("a counter of a tool's failures in a session instead: alarms on other calls, of 100 calls")
HELD = Goal("pi: repeated failures warned of at the third, share", 0.8)
HELD_FALSE = Goal("pi: alarms on other calls, of 100 calls", 1, LOWER)
HELD_COUNTER = Goal("pi: a counter instead: labels at the third, share")
HELD_COUNTER_FALSE = Goal("pi: a counter instead: alarms on other calls, of 100 calls")
AFTER = Goal("failures of tau-bench that come after a warning of them, across sessions, share")
SKILLS = Goal("skills found in tau-bench, across sessions")
COST = Goal("a tool's call logged with its effects, above its answer alone, ms CPU", 1, LOWER)
GOALS = (
    *(WARNED, OWN, ACROSS, FALSE, COUNTER, COUNTER_FALSE, HELD, HELD_FALSE, HELD_COUNTER, HELD_COUNTER_FALSE),
    *(AFTER, SKILLS, COST),
)

AIRLINE = "airline_even_tasks-"
LABELS = {
    f"{AIRLINE}task0-trial3": ["p163"],  # a certificate that is not found, three times
    f"{AIRLINE}task46-trial3": ["p223"],  # amounts that do not add up
    f"{AIRLINE}task8-trial1": ["p160"],  # amounts that do not add up
    "i_got_id_demo": ["p155"],  # a form that comes back empty, whatever path is guessed
}
"""By session, the third call of each repeated failure."""
LABELS_ACROSS = {
    f"{AIRLINE}task0-trial2": ["p71"],  # amounts, the third session of it
    f"{AIRLINE}task0-trial3": ["p163"],  # the certificate
    f"{AIRLINE}task26-trial0": ["p96"],  # a payment method that is not found
}
LABELS_PI = ["p787", "p1044"]  # a check that fails, a text that is not found
RUNS, ANSWERS = 5, 200


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; a quick run logs fewer calls."""
    if not DATA.is_dir():
        raise MissingError(
            f"{DATA} is not there: the sessions of SWE-agent, tau-bench and pi are measured where they lie"
        )
    with _imported(["swe-agent", "tau-bench"]) as store:
        calls = _calls(store)
        own, other = _alarm_counts(store.work.alarms(), LABELS)
        counted, counted_other = _alarm_counts(_counted(store), LABELS)
        names = sorted(info.session for info in store.sessions() if info.session.startswith(AIRLINE))
        together = [call for name in names for call in past_calls(store.session(name))]
    watch = CallWatch()
    alarms = [alarm for call in together for alarm in watch.take(call) if alarm.type is GuardType.FAILURE]
    across, _ = _alarm_counts([guard_info(alarm.call.session, alarm) for alarm in alarms], LABELS_ACROSS)
    labels, across_labels = _count(LABELS), _count(LABELS_ACROSS)
    yield row(WARNED, [(own + across) / (labels + across_labels)])
    yield row(OWN, [own / labels])
    yield row(ACROSS, [across / across_labels])
    yield row(FALSE, [100 * other / calls])
    yield row(COUNTER, [counted / labels])
    yield row(COUNTER_FALSE, [100 * counted_other / calls])
    with _imported(["pi"]) as store:
        (name,) = [info.session for info in store.sessions()]
        for item, rate, false in (
            (store.session(name).work.alarms(), HELD, HELD_FALSE),
            (_counted(store), HELD_COUNTER, HELD_COUNTER_FALSE),
        ):
            met, other = _alarm_counts(item, {name: LABELS_PI})
            yield row(rate, [met / len(LABELS_PI)])
            yield row(false, [100 * other / _calls(store)])
    yield row(AFTER, [_after(together, alarms) / sum(bool(call.failed) for call in together)])
    yield row(SKILLS, [float(len(skills(together)))])
    yield row(COST, [_cost(bench.size(ANSWERS, 40)) for _ in range(RUNS)])


def _imported(folders: Sequence[str]) -> vmstore.Store:
    store = vmstore.memory_store()
    for folder in folders:
        for path in sorted((DATA / folder).iterdir()):
            if path.suffix in (".json", ".jsonl", ".traj"):
                store.import_file(path)
    return store


def _calls(store: vmstore.Store) -> int:
    return len(list(store.query("TOOLS page ACROSS SESSIONS")))


def _count(labels: Mapping[str, Sequence[str]]) -> int:
    return sum(map(len, labels.values()))


def _alarm_counts(alarms: Sequence[GuardInfo], labels: Mapping[str, Sequence[str]]) -> tuple[int, int]:
    """How many labels an alarm stands at, with three calls counted, and how many alarms stand elsewhere."""
    places = {(name, page) for name, pages in labels.items() for page in pages}
    rows = {(alarm.session, alarm.page) for alarm in alarms if alarm.count == 3}
    return len(places & rows), sum((alarm.session, alarm.page) not in places for alarm in alarms)


def _counted(store: vmstore.Store) -> list[GuardInfo]:
    """The alarms of the simplest rival: at a tool's third failure in a session, whatever the reason, and each third."""
    alarms: list[GuardInfo] = []
    for info in store.sessions():
        failed: Counter[str] = Counter()
        for call in past_calls(store.session(info.session)):
            if call.failed:
                failed[call.tool] += 1
                if failed[call.tool] % 3 == 0:
                    alarm = Alarm(GuardType.FAILURE, 3, (call,), "")
                    alarms.append(guard_info(info.session, alarm))
    return alarms


def _after(calls: Sequence[PastCall], alarms: Sequence[Alarm]) -> int:
    """How many failures had been warned of before, calls in their order."""
    warned = [alarm.call for alarm in alarms if alarm.times == 3]
    order = {(call.session, call.page): at for at, call in enumerate(calls)}
    first = {at: row for row in warned if (at := order[row.session, row.page]) >= 0}
    return sum(
        any(
            begun < at and item in same_failures([item, call])
            for begun, item in first.items()
            if item.tool == call.tool
        )
        for at, call in enumerate(calls)
        if call.failed
    )


def _cost(answers: int) -> float:
    """CPU of answers with effects less that of answers alone, in ms a call; the two take turns."""
    store = vmstore.memory_store()
    spent = {"plain": 0.0, "effects": 0.0}
    lives = {name: store.live_session(name, l0_tokens_max=64_000) for name in spent}
    for live in lives.values():
        live.claim("The port is 80.", name="port")
    for number in range(answers):
        for name, live in lives.items():
            call_id = f"c{number}"
            function = {"name": "look", "arguments": "{}"}
            call = {"id": call_id, "type": "function", "function": function}
            live.user("Look.")
            live.assistant({"role": "assistant", "content": "I look.", "tool_calls": [call]})
            answer = _answer(live, call_id, effects=name == "effects")
            began = time.process_time()
            live._answered([answer])
            spent[name] += time.process_time() - began
    store.close()
    return 1_000 * (spent["effects"] - spent["plain"]) / answers


def _answer(live: Any, call_id: str, *, effects: bool) -> ToolAnswer:
    """A tool's answer, with pages that it read and changed, or alone."""
    if not effects:
        return ToolAnswer(call_id, "It is 80.", "look")
    host = HostTool(live, "look", lambda: None)
    token, memory = host.begin({})
    memory.get_page("port")
    memory.annotate_page("port", "looked at")
    host.leave(token)
    return ToolAnswer(call_id, "It is 80.", "look", host.end("It is 80.", 0, memory))
