"""An agent's work in a live session: answers of its tools, guards as they come, lessons of before in its prompt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from vmstore.core.address import Address
from vmstore.core.asof import Head
from vmstore.core.decision import Holder
from vmstore.errors import VmstoreError
from vmstore.live import messages
from vmstore.namespace.namespace import Namespace
from vmstore.store.live.copy_page import Copy, copied, take
from vmstore.store.live.host_tool import answer
from vmstore.store.live.memory_tools import ToolAnswer
from vmstore.store.session import Session
from vmstore.store.work import lessons
from vmstore.store.work.calls import UnsaidBefore, past_calls, past_failures, room_of, user_sessions
from vmstore.store.work.lessons import WARNINGS_MAX, skills_of, warnings_in
from vmstore.store.work.session_work import usable
from vmstore.views.reads.resolve_asof import basis
from vmstore.vm.protocol.functions import names_in
from vmstore.work.past_call import PastCall
from vmstore.work.skill import skills
from vmstore.work.watch import Alarm, CallWatch

SKILLS_MAX = 3
FAILURES_MAX = 1_000  # of the user's other sessions, the last, that guards know


class _Watched(msgspec.Struct):
    """How far the calls of a session were watched, and the last erasure that this takes into account."""

    watch: CallWatch
    position: int
    erasure: int


_WATCHED: WeakKeyDictionary[Namespace, dict[int, _Watched]] = WeakKeyDictionary()


def take_answers(session: Any, answers: Sequence[ToolAnswer]) -> None:
    """Logs what several tools answer as one commit, and what each wrote with it.

    Where the session refuses what one would write, that one has failed and writes nothing; then each is a commit.
    """
    try:
        session._act(lambda act: _answer(act, answers))
    except VmstoreError:
        if not any(one.end is not None and one.end.writes for one in answers):
            raise
        for one in answers:
            _take_one(session, one)
    guard(session)


def _answer(act: Any, answers: Sequence[ToolAnswer]) -> None:
    for one in answers:
        answer(act, *one)


def take_tool(session: Any, call_id: str, content: Any, name: str | None, at_us: int | None) -> list[int]:
    """Logs what a tool of the host's answers; its pages."""
    pages: list[int] = session._act(lambda act: messages.tool(act, call_id, content, name), at_us).pages
    guard(session)
    return pages


def _take_one(session: Any, one: ToolAnswer) -> None:
    try:
        session._act(lambda act: answer(act, *one))
    except VmstoreError as error:
        if one.end is None or not one.end.writes:
            raise
        refused = one.refused(error)
        session._act(lambda act: answer(act, *refused))


def learning(session: Any) -> str:
    """The calls a live session learns from: none, its own, or those of all sessions of its user."""
    settings = session.look(lambda runtime: runtime.state.settings)
    return "off" if settings is None or session.runtime().in_block else str(settings.learning)


def guard(session: Any) -> None:
    """Has the guards look at the calls that were answered since, and writes what they say."""
    scope = learning(session)
    if scope == "off":
        return
    with session._ns.lock:
        alarms = _alarms(session, scope)
        if alarms:
            lessons.warn(session, alarms)


def _alarms(session: Any, scope: str) -> list[Alarm]:
    ns: Namespace = session._ns
    kept = _WATCHED.setdefault(ns, {})
    with ns.asking():
        position, erasure = basis(session._lane(), Head()).position, ns.projection.last_erasure
    watched = kept.get(session._key)
    if watched is None or watched.erasure != erasure or watched.position > position:
        watched = _Watched(_begun(session, scope), 0, erasure)
        kept[session._key] = watched
    calls = past_calls(session, after=watched.position)
    watched.position = position
    return [alarm for call in calls for alarm in watched.watch.take(call)]


def _begun(session: Any, scope: str) -> CallWatch:
    """Guards that know the last failures of the user's other sessions."""
    watch = CallWatch(room_of(session), UnsaidBefore(session))
    user = session.info().user if scope == "user" else None
    failures: list[list[PastCall]] = []
    left = FAILURES_MAX
    for key, name in reversed(user_sessions(session._ns, user) if user is not None else ()):
        if key != session._key and left:
            failures.append(past_failures(Session(session._ns, session._recording, key, name), left))
            left -= len(failures[-1])
    for call in chain.from_iterable(reversed(failures)):
        watch.remember(call)
    return watch


def inject(session: Any) -> None:
    """Brings what the user's other sessions learned of the tools at hand into the prompt: warnings and skills."""
    if learning(session) != "user":
        return
    user = session.info().user
    tools = session.look(_offered)
    if user is None or not tools:
        return
    copies = _copies(session, user, tools)
    if copies:
        session._act(lambda act: _take(act, copies))


def _take(act: Any, copies: Sequence[Copy]) -> None:
    new = [copy for copy in copies if copy.origin not in act.spoken.origins]
    warned = [copy for copy in new if lessons.WARNING in copy.page.tags]
    left = max(0, WARNINGS_MAX - len(warnings_in(act)))
    take(act, [copy for copy in new if copy not in warned[left:]])


def _copies(session: Any, user: str, tools: frozenset[str]) -> list[Copy]:
    """The newest warnings of these tools, and the skills that need no others, of the user's other sessions."""
    ns, found = session._ns, list[Copy]()
    guards = [one for one in lessons.guards_of(ns, None, user) if one.session != session.name and one.tool in tools]
    newest = [(one.session, one.warning) for one in guards[::-1] if one.warning and one.type == "failure"]
    known = [one for one in usable(skills_of(ns, None, user), tools) if one.session != session.name]
    wanted = [*newest[:WARNINGS_MAX], *((one.session, one.page) for one in known[:SKILLS_MAX])]
    for name, page in wanted:
        if page is None:
            continue
        with suppress(VmstoreError):  # what was erased, or holds no more
            found.append(copied(ns, session, Address(namespace=ns.name, session=name, page=page)))
    return found


def _offered(runtime: Any) -> frozenset[str]:
    """The tools that the model is offered, by the schemas that stand before the conversation."""
    names: set[str] = set()
    for page in runtime.state.here.values():
        if page.holders >> Holder.TOOLS & 1 and page.forms[0] is not None:
            names.update(names_in(runtime.forms.of(page.forms[0].position)))
    return frozenset(names)


def promote(session: Any) -> None:
    """Writes the skills that a session, or all of its user's, have shown, as it ends."""
    scope = learning(session)
    if scope == "off":
        return
    user = session.info().user if scope == "user" else None
    others = [one for one in user_sessions(session._ns, user) if one[0] != session._key] if user is not None else []
    calls = [call for key, name in others for call in past_calls(Session(session._ns, session._recording, key, name))]
    own = past_calls(session)
    shown = [skill for skill in skills([*calls, *own]) if any(call.session == session.name for call in skill.calls)]
    lessons.promote(session, shown)
