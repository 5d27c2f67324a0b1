"""Writes what is learned of calls: guards with their warnings, skills with their pages."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from vmstore.core.address import page_name, page_position
from vmstore.core.decision import Cause
from vmstore.core.mutation import Annotate, Evict, GuardTrip, Link, Promote, Update
from vmstore.core.page import LinkKind, Modality, Standing
from vmstore.core.text.token_estimate import estimate
from vmstore.core.work.trace import CALLS_MAX
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Page
from vmstore.store.host import SessionHost
from vmstore.store.recall.fact_reads import engine_of
from vmstore.store.recall.pen import Pen, write
from vmstore.store.work.calls import guard_info
from vmstore.store.work.results import GuardInfo, SkillInfo
from vmstore.work.past_call import PastCall
from vmstore.work.skill import Skill, commonly_read, skills, typical_arguments
from vmstore.work.watch import Alarm

WARNING, SKILL = "warning", "skill"


class WorkHost(SessionHost, Protocol):
    """A session whose pages can be looked up, as skills are weighed again."""

    def page(self, reference: str | int) -> Page:
        """A page as it stands."""
        ...


WARNINGS_MAX = 3
PPM = 1_000_000
_GUARD = ("session", "type", "tool", "count", "page", "calls", "text", "warning")
_SKILL = (
    *("session", "skill", "tools", "success_rate", "successes", "tries", "arguments", "prerequisites", "calls", "page"),
)
_GUARDS = f"GUARDS {', '.join(_GUARD)}"
_SKILLS = f"SKILLS {', '.join(_SKILL)}, status, at"


def guards_of(ns: Namespace, session: str | None, user: str | None = None, moment: str = "") -> list[GuardInfo]:
    """The guards that are logged of a session, of a user's sessions, or of all."""
    answer = engine_of(ns).ask(f"{_GUARDS} {_scope(session, user)} {moment}", session=session, params=_params(user))
    rows = [dict(zip(_GUARD, row, strict=True)) for row in answer]
    return [GuardInfo(**{**row, "text": row["text"] or ""}) for row in rows]


def skills_of(ns: Namespace, session: str | None, user: str | None = None, moment: str = "") -> list[SkillInfo]:
    """The skills that are logged and hold; of one name the last that was weighed."""
    answer = engine_of(ns).ask(f"{_SKILLS} {_scope(session, user)} {moment}", session=session, params=_params(user))
    rows: list[dict[str, Any]] = [dict(zip((*_SKILL, "status", "at"), row, strict=True)) for row in answer]
    named: dict[str, SkillInfo] = {}
    for row in sorted(rows, key=lambda row: str(row["at"])):
        fields = {name: row[name] for name in _SKILL}
        named[row["skill"]] = SkillInfo(
            **{**fields, "arguments": fields["arguments"] or {}}, importance=min(0.9, 0.5 + 0.4 * row["success_rate"])
        )
        if row["status"] in ("superseded", "abandoned"):
            del named[row["skill"]]
    return list(named.values())


class _Withdrawal(NamedTuple):
    """Somebody's word that a skill holds no more: in which session, at which position and time."""

    session: str
    position: int
    at_us: int

    def precedes(self, call: PastCall) -> bool:
        """Whether a call was made after it."""
        return call.page > self.position if call.session == self.session else call.at_us > self.at_us


def _withdrawn(session: SessionHost) -> dict[str, _Withdrawal]:
    """The skills of a session, or of its user's sessions, of which somebody said last that they hold no more."""
    ns, user = session._ns, session.info().user
    scope = None if user is not None else session.name
    text = f"SKILLS session, skill, page, at {_scope(scope, user)} WHERE status IN (superseded, abandoned)"
    found: dict[str, _Withdrawal] = {}
    for name, skill, page, _ in sorted(engine_of(ns).ask(text, session=scope, params=_params(user)), key=itemgetter(3)):
        with ns.asking():
            row: Any = ns.views.execute(_SAID, (ns.key(name), page_position(page))).fetchone()
        if row is not None:
            found[skill] = _Withdrawal(name, *row)
    return found


def _scope(session: str | None, user: str | None) -> str:
    if session is not None:
        return ""
    return "ACROSS SESSIONS" if user is None else "ACROSS SESSIONS OF USER $user"


def _params(user: str | None) -> dict[str, Any]:
    return {} if user is None else {"user": user}


# ---- guards


def warn(session: SessionHost, alarms: Sequence[Alarm], at_us: int | None = None) -> list[GuardInfo]:
    """Writes a guard and its warning for each alarm of a session that is not logged yet."""
    logged = {(guard.type, guard.page) for guard in guards_of(session._ns, session.name)}
    new = [alarm for alarm in alarms if (alarm.type.word, page_name(alarm.call.page)) not in logged]
    if not new:
        return []
    return write(session, lambda pen: [_warned(session, pen, alarm) for alarm in new], at_us)


def _warned(session: SessionHost, pen: Pen, alarm: Alarm) -> GuardInfo:
    own = list(dict.fromkeys(call.page for call in alarm.calls if call.session == session.name))[-CALLS_MAX:]
    if pen.act is not None:
        make_place(pen.act)
    links = [(int(LinkKind.DERIVES), page) for page in own]
    name = f"{WARNING}:{alarm.call.tool}:{alarm.type.word}"[:100]
    text = alarm.text.encode("utf-8", "backslashreplace")
    page = pen.procedure(text, name=name, tags=[WARNING], links=links)
    tool = pen.cell(alarm.call.tool.encode("utf-8", "backslashreplace"))
    pen.add(GuardTrip(int(alarm.type), tool, alarm.times, tuple(own), page))
    return guard_info(session.name, alarm, page)


def make_place(act: Any, room: int = 1) -> None:
    """Takes the oldest warnings out of the prompt where there are as many as it may hold."""
    here = warnings_in(act)
    for page in here[: max(0, len(here) + room - WARNINGS_MAX)]:
        if not act.state.here[page].holders:
            act.tell(Evict(page, Cause.ASKED, act.state.here[page].tokens))


def warnings_in(act: Any) -> list[int]:
    """The warnings in the prompt of a live session, the oldest first."""
    return [page for page in sorted(act.state.here) if WARNING in _tags(act, page)]


def _tags(act: Any, page: int) -> tuple[str, ...]:
    labels = act.spoken.known.get(page)
    return () if labels is None else labels.tags


# ---- skills


def promote(session: WorkHost, found: Sequence[Skill], at_us: int | None = None) -> list[SkillInfo]:
    """Writes the skills that a session has not got yet, and those that were tried again since.

    One that was abandoned, or deleted, is written again once it has succeeded since as often as a new one must.
    """
    before = {skill.skill: skill for skill in skills_of(session._ns, session.name)}
    withdrawn = _withdrawn(session) if found else {}
    found = [skill for skill in found if skill.name not in withdrawn or _shown_since(skill, withdrawn[skill.name])]
    new = [
        skill
        for skill in found
        if skill.name not in before or (before[skill.name].tries, before[skill.name].successes) != _counted(skill)
    ]
    if not new:
        return []
    pages = {skill.name: before[skill.name].page or "" for skill in new if skill.name in before}
    versions = {name: session.page(page).version for name, page in pages.items()}

    def do(pen: Pen) -> list[SkillInfo]:
        return [_promoted(session, pen, skill, before.get(skill.name), versions.get(skill.name, 0)) for skill in new]

    return write(session, do, at_us)


def _shown_since(skill: Skill, withdrawal: _Withdrawal) -> bool:
    """Whether the calls after a withdrawal alone would make the skill one."""
    since = skills(filter(withdrawal.precedes, skill.calls), rate=0.0)
    return any(shown.tools == skill.tools for shown in since)


def _counted(skill: Skill) -> tuple[int, int]:
    return skill.tries, skill.successes


def _promoted(session: WorkHost, pen: Pen, skill: Skill, before: SkillInfo | None, version: int) -> SkillInfo:
    own = [call for call in skill.calls if call.session == session.name]
    shown = _own(skill, own)
    pages = list(dict.fromkeys(call.page for call in own))[-CALLS_MAX:]
    content = shown.described()
    page = page_position(before.page or "") if before is not None else None
    if page is None:
        links = [(int(LinkKind.DERIVES), number) for number in pages]
        page = pen.procedure(content, name=skill.name, tags=[SKILL], links=links, structured=True)
    else:
        assert before is not None and before.page is not None, "its page is the one that was found"
        tokens = estimate(content, Modality.STRUCTURED)
        pen.add(Update(page, version + 1, pen.cell(content), len(content), tokens))
        known = {page_position(call) for call in before.calls}
        for number in pages:
            if number not in known:
                pen.add(Link(page, number, int(LinkKind.DERIVES)))
    name = pen.cell(skill.name.encode("utf-8", "backslashreplace"))
    pen.add(Promote(page, name, skill.successes, skill.tries, tuple(pages)))
    pen.add(Annotate(page, importance=skill.importance))
    return skill_info(session.name, shown, page, [page_name(number) for number in pages])


def _own(skill: Skill, own: Sequence[PastCall]) -> Skill:
    """A skill as a session may describe it: values and names from its own calls alone, so that they go with these."""
    typical = {tool: typical_arguments([call for call in own if call.tool == tool]) for tool in skill.tools}
    return skill._replace(typical_args=typical, page_prereqs=commonly_read(own))


def skill_info(session: str, skill: Skill, page: int | None = None, calls: Collection[str] = ()) -> SkillInfo:
    """A skill as it is answered."""
    return SkillInfo(
        session,
        skill.name,
        list(skill.tools),
        round(skill.rate, 3),
        skill.successes,
        skill.tries,
        skill.typical_args,
        list(skill.page_prereqs),
        list(calls) or [page_name(call.page) for call in skill.calls if call.session == session],
        skill.importance / PPM,
        None if page is None else page_name(page),
    )


_SAID = f"""SELECT n.position, (SELECT k.at FROM commits k WHERE k.session = n.session AND k.last >= n.position
  ORDER BY k.last LIMIT 1) FROM notes n WHERE n.session = ? AND n.page = ?
 AND n.status IN ({int(Standing.SUPERSEDED)}, {int(Standing.ABANDONED)}) ORDER BY n.position DESC LIMIT 1"""
