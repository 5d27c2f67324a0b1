"""Retention: what rules state, what is due by them, and what is erased when they are applied."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import vmstore
from tests.erasure.found import found_in
from tests.refusals import refused
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.core.mutation import Mark
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, UnknownError, VmstoreError
from vmstore.namespace import system_session
from vmstore.retention.apply import apply, drop, keep, rules
from vmstore.retention.rules import RetentionRule, span, words
from vmstore.store.store import Store

DAY = 86_400_000_000
START = 1_795_301_701_000_000


def record_on_day(store: Store, session: str, day: int, text: str, user: str | None = None) -> None:
    """A call that was recorded on a day."""
    if user is not None:
        store.session(session, create=True, user=user)
    request: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": text}]}
    reply = {"choices": [{"message": {"role": "assistant", "content": f"Noted: {text}"}, "finish_reason": "stop"}]}
    store.record(session, request, reply, at_us=START + day * DAY)


def opened(path: Path, day: int) -> Store:
    """A store on a day."""
    return vmstore.open(path, clock=ManualClock(START + day * DAY), ids=SeededIds(day + 1))


def files_with(folder: Path, text: bytes) -> list[str]:
    """The files below a folder that hold a text, packed or not."""
    return found_in(folder, [text]).get(text, [])


def test_a_rule_is_stated_listed_replaced_and_taken_away(store_path: Path) -> None:
    """Rules are in the namespace's own session: another handle reads them, the last of a name holds."""
    with opened(store_path, 0) as store:
        record_on_day(store, "s", 0, "Hello.")
        assert rules(store) == []
        keep(store, "90d")
        keep(store, "2w", where="role = tool", user="ann", name="tools")
    with opened(store_path, 1) as store:
        assert rules(store) == [
            RetentionRule("default", 90 * DAY),
            RetentionRule("tools", 14 * DAY, "role = tool", "ann"),
        ]
        ordinal = store.admin.log.ordinal
        keep(store, "90d")
        assert store.admin.log.ordinal == ordinal, "what is so already is not stated again"
        keep(store, "30d")
        assert rules(store)[0].keep == 30 * DAY
        drop(store, "tools")
        assert [rule.name for rule in rules(store)] == ["default"]
        assert [info.session for info in store.sessions()] == ["s"] and store.verify().ok
        with refused("no-rule", UnknownError):
            drop(store, "tools")


def test_a_rule_is_a_policy_of_the_namespace(store_path: Path) -> None:
    """What states a rule and what takes it away are mutations of a kind of their own, and no mark is written."""
    with opened(store_path, 0) as store:
        keep(store, "90d", name="old")
        drop(store, "old")
        entries = system_session.entries(store._ns)
        assert [entry.mutation.kind for entry in entries] == ["namespace_policy"] * 2 and store.verify().ok


def test_a_rule_of_an_earlier_version_holds_until_another_is_stated(store_path: Path) -> None:
    """Marks that stated rules before there was a kind for them keep their meaning, and policies go on from there."""

    def marked(name: str, rule: RetentionRule | None) -> Callable[[Batch], object]:
        note = None if rule is None else msgspec.json.encode(rule)
        return lambda batch: batch.add(
            Mark(Mark.NAMED, name=batch.cell(name.encode()), note=None if note is None else batch.cell(note))
        )

    with opened(store_path, 0) as store:
        record_on_day(store, "s", 0, "Hello.", user="ann")
        for name in ("a", "b", "c"):
            system_session.append(store._ns, marked(f"retention:{name}", RetentionRule(name, DAY, user="ann")))
        system_session.append(store._ns, marked("else:d", RetentionRule("d", DAY)))
        system_session.append(store._ns, marked("retention:c", None))
        assert rules(store) == [RetentionRule("a", DAY, user="ann"), RetentionRule("b", DAY, user="ann")]
        keep(store, "2d", name="a")
        drop(store, "b")
        assert rules(store) == [RetentionRule("a", 2 * DAY)]
        keep(store, "3d", name="b", user="ann")
        system_session.append(store._ns, marked("retention:a", RetentionRule("a", 4 * DAY)))
        assert rules(store) == [RetentionRule("a", 4 * DAY), RetentionRule("b", 3 * DAY, user="ann")]
        vmstore.erase(store, user="ann")
        assert rules(store) == [RetentionRule("a", 4 * DAY)] and store.verify().ok
    assert files_with(store_path, b'"user":"ann"') == []


@pytest.mark.parametrize("time", ["", "90", "d", "0d", "-1d", "1.5d", "90 d", "9999999d"])
def test_what_is_no_time_is_refused(time: str) -> None:
    """A time that cannot be read is refused with what can."""
    with refused("not-a-period", InputError):
        span(time)


@pytest.mark.parametrize("time", ["1h", "90d", "6w", "2y", "25h"])
def test_a_time_reads_back(time: str) -> None:
    """What a rule keeps is printed as it can be stated."""
    assert span(words(span(time))) == span(time)


def test_a_condition_that_is_none_is_refused(store_path: Path) -> None:
    """A rule whose condition cannot be asked is not stated."""
    with opened(store_path, 0) as store:
        record_on_day(store, "s", 0, "Hello.")
        with pytest.raises(VmstoreError):
            keep(store, "1d", where="nothing = like that")
        assert rules(store) == []
        with refused("no-rule", InputError):
            apply(store)


def test_sessions_go_by_when_they_were_last_used(store_path: Path) -> None:
    """A session goes after its time, wherever its words lay; one used since, or of a used fork, stays whole."""
    with opened(store_path, 0) as store:
        record_on_day(store, "old", 0, "quokka in the margins")
        record_on_day(store, "busy", 0, "walrus in the margins")
        record_on_day(store, "parent", 0, "ibis in the margins")
        record_on_day(store, "busy", 60, "walrus again")
        store.session("parent").fork("child")
        keep(store, "90d")
    with opened(store_path, 100) as store:
        record_on_day(store, "child", 95, "ibis again")
        dry = apply(store, dry_run=True)
        assert (dry.sessions, dry.pages, dry.done) == (["old"], [], False)
        assert [(session.session, session.why) for session in dry.spared] == [("parent", "its fork child is used")]
        ordinal = store.admin.log.ordinal
        done = apply(store)
        assert done.erased is not None and done.erased.reason == "retention"
        assert done.erased.certificate is not None and Path(done.erased.certificate).exists()
        assert store.admin.log.ordinal > ordinal and store.verify().ok
        assert [page.session for page in store.pages(role="user")] and "walrus" in str(
            store.session("busy").wire.messages()
        )
        assert "ibis" in str(store.session("child").wire.messages())
        again = apply(store)
        assert again.erased is None and store.verify().ok
    assert files_with(store_path, b"quokka") == [] and files_with(store_path, b"walrus") != []


def test_pages_go_by_when_they_were_made(store_path: Path) -> None:
    """A rule with a condition takes the pages it holds for, of the user it names, that were made before."""
    with opened(store_path, 0) as store:
        record_on_day(store, "a", 0, "quokka of ann", user="ann")
        record_on_day(store, "b", 0, "walrus of bob", user="bob")
        record_on_day(store, "a", 99, "heron of ann")
        keep(store, "30d", where="role = user", user="ann", name="said")
    with opened(store_path, 100) as store:
        done = apply(store)
        assert len(done.pages) == 1 and done.pages[0].startswith("a/") and done.sessions == []
        assert store.verify().ok
        assert [p.session for p in store.pages(role="user")].count("b") == 1
    assert files_with(store_path, b"heron of ann") and files_with(store_path, b"walrus of bob")


def test_what_is_held_stays(store_path: Path) -> None:
    """A page tagged `hold` or pinned by hand stays, and so does a session it is in; untagged, it goes."""
    with opened(store_path, 0) as store:
        live = store.live_session("live", l0_tokens_max=3_000, reserve_faults_tokens=200, system="Be brief.")
        (pinned,) = live.user("ibis is pinned")
        live.pin(pinned)
        record_on_day(store, "held", 0, "quokka is held")
        (page,) = store.session("held").pages(role="user")
        store.session("held").annotate(page.page, tags=["hold"])
        keep(store, "10d")
        keep(store, "10d", where="role = user", name="said")
    with opened(store_path, 100) as store:
        report = apply(store)
        assert report.erased is None and report.sessions == report.pages == []
        assert {(page.rule, page.session) for page in report.spared} == {
            (rule, session) for rule in ("default", "said") for session in ("held", "live")
        }
        store.session("held").annotate(page.page, untags=["hold"])
        drop(store, "default")
        assert apply(store).pages == [f"held/{page.page}"]
        assert "ibis" in str(store.session("live").pack().messages().request)
        with refused("erased", VmstoreError):
            store.session("held").content(page.page)
