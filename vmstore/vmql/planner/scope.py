"""Whose rows a statement sees, and up to when: its sessions, its moment, and the basis of its answer."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NamedTuple

from vmstore.core.address import page_position
from vmstore.core.asof import AsOf, Call, Head, LoggedTime, Position, Time, Turn
from vmstore.core.page import Origin
from vmstore.core.times import iso
from vmstore.errors import InputError, UnknownError
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.lineage import outdated
from vmstore.views.projectors.residency import knower
from vmstore.views.projectors.sessions import NAMED
from vmstore.views.reads.resolve_asof import ResolvedMoment, basis, call_position, last, moment_at
from vmstore.views.session_names import meant
from vmstore.vmql.host import Host
from vmstore.vmql.planner.times import instant
from vmstore.vmql.relations.python_ctes import HANDED, handed
from vmstore.vmql.relations.relation import ACROSS, CHAIN, LANE, ScopedSession, SessionStream
from vmstore.vmql.syntax.errors import QueryError, fault, unknown
from vmstore.vmql.syntax.nodes import (
    NOWHERE,
    AcrossSessions,
    InSession,
    MomentNode,
    Param,
    SourceSpan,
    Subquery,
    Tail,
    Value,
    Word,
)

Params = dict[str, Any]
UNITS: dict[str, type[Turn] | type[Call] | type[Position]] = {"turn": Turn, "call": Call, "position": Position}
NEAREST = "the nearest is '{}'"
CLOCKS = {"time": "at_max", "logged_time": "logged_max"}


def given(node: Value | Param | Word, params: Params) -> Any:
    """The value of a literal, a parameter or a bare word."""
    if isinstance(node, Value):
        return node.value
    if isinstance(node, Word):
        return ".".join(node.path)
    if node.name not in params:
        message, hint = f"there is no parameter ${node.name}", f"pass {_handed(node.name)} beside the text"
        raise fault(message, "unknown-parameter", node.span, hint, expected=tuple(f"${name}" for name in params))
    return params[node.name]


def _handed(name: str) -> str:
    """How a parameter is handed in: by its name, unless that means something else."""
    return f"params={{'{name}': …}}" if name in ("session", "params") else f"{name}=…"


def as_of(moment: MomentNode | None, params: Params, now: int) -> AsOf:
    """A moment as the views are asked for it."""
    if moment is None or moment.unit == "head" or moment.value is None:
        return Head()
    assert not isinstance(moment.value, Subquery), "what a statement within says was put in its place"
    value = given(moment.value, params)
    try:
        if moment.unit in CLOCKS:
            at = instant(value, now, moment.value.span)
            return Time(at) if moment.unit == "time" else LoggedTime(at)
        return UNITS[moment.unit](value)
    except InputError as error:
        raise query_error(error, moment.span) from error


def moment_of(at: AsOf) -> MomentNode:
    """A moment as a statement names it."""
    match at:
        case Head():
            return MomentNode(unit="head")
        case Time(value) | LoggedTime(value):
            return MomentNode(unit="time" if isinstance(at, Time) else "logged_time", value=Value(value=value))
    unit = next(unit for unit, kind in UNITS.items() if isinstance(at, kind))
    return MomentNode(unit=unit, value=Value(value=getattr(at, at.__struct_fields__[0])))  # type: ignore[arg-type]


def query_error(error: Exception, span: SourceSpan, code: str = "no-such-moment") -> QueryError:
    """A refusal of the views as a fault of the text."""
    return error if isinstance(error, QueryError) else fault(str(error), code, span)


class Bounds(NamedTuple):
    """Positions that rows can have: above `low`, up to `high`."""

    low: int = -1
    high: int = NEVER


EVERYWHERE = Bounds()


class Scope(ABC):
    """What a statement sees. `values` are the parameters its SQL takes by name, made when they are needed."""

    shape: str
    lane_sql: str
    basis: dict[str, Any]

    whole = False  # whether it sees all of all sessions

    def __init__(self, world: Host, tail: Tail, params: Params) -> None:
        self.world = world
        self.values: dict[str, Any] = {}
        self.asked = tail, params  # what it is made of
        self.now = world.now() if _timed(tail) else 0
        _check_order(tail, params, self.now)

    def need(self, name: str) -> Any:
        """A parameter of its SQL."""
        if name not in self.values:
            if name in HANDED:
                now = None if self._past() else self.world.now()
                lanes = [
                    lane._replace(now=now, spent=self.world.spent, saved=self.world.saved) for lane in self.lanes()
                ]
                self.values[name] = handed(name, lanes, many=self.shape == ACROSS)
            else:
                self.values[name] = getattr(self, f"_{name}")()
        return self.values[name]

    def _past(self) -> bool:
        """Whether it sees sessions as they stood at an earlier moment."""
        as_of = self.asked[0].as_of
        return as_of is not None and as_of.unit != "head"

    def _valid_at(self) -> int:
        """The time in the world that is asked about: as it is said, else that of the moment asked."""
        tail, params = self.asked
        if tail.valid_at is not None:
            return instant(given(tail.valid_at, params), self.world.now(), tail.valid_at.span)
        last: int | None = self.world.views.execute(f"WITH {self.lane_sql} {_LAST}", self.values).get
        return max(last or 0, 0 if self._past() else self.world.now())

    def _turns(self) -> str:
        return self._numbers(0)

    def _calls(self) -> str:
        return self._numbers(1)

    def _numbers(self, which: int) -> str:
        """The turns, or the calls, that begin in what is asked for, each after its session."""
        found = []
        for own in self.lanes():
            first, last = (moment_at(own.lane, max(at, own.low, 0))[which] for at in (own.since, own.until))
            found += [(own.name, number) for number in range(first + 1, last + 1)]
        return json.dumps(found)

    @abstractmethod
    def lanes(self) -> list[ScopedSession]:
        """Each session it sees, by name."""

    @abstractmethod
    def written(self, session: int | None = None, within: Bounds = EVERYWHERE) -> list[SessionStream]:
        """What each session wrote of the rows that are wanted, or one by its key, with the turn and the call before.

        Where one session alone is seen, `within` bounds its positions further.
        """

    @abstractmethod
    def position_of(self, page: str, span: SourceSpan) -> int:
        """The position a page's name stands for."""


class OneSession(Scope):
    """One session up to a moment, its past before its fork included."""

    def __init__(self, world: Host, lane: Branch, name: str, tail: Tail, params: Params) -> None:
        super().__init__(world, tail, params)
        self.lane, self.name, now = lane, name, self.now
        self.as_of = as_of(tail.as_of, params, now)
        self.at = self._moment(tail.as_of, self.as_of)
        self.since = -1 if tail.since is None else self._before(tail.since, params, now, between=tail.between)
        until = self.at if tail.until is None else self._moment(tail.until, as_of(tail.until, params, now))
        self.until = min(until.position, self.at.position)
        if (tail.until is not None or tail.as_of is not None) and self.since > self.until:
            raise _contradiction(tail)
        self.basis = {"session": name, **self.at._asdict(), **_resolved(tail, params, now)}
        stretches = lane.upto(self.at.position)
        self.shape = LANE if len(stretches) < 2 else CHAIN
        self.lane_sql = LISTED if self.shape == CHAIN else _ONE
        rows = [[s.session, s.low, s.high, max(s.low, self.since), min(s.high, self.until)] for s in stretches[::-1]]
        if self.shape == CHAIN:
            self.values["lane"] = json.dumps(rows)
        else:
            self.values.update(zip(("session", "low", "high", "since", "until"), rows[0], strict=True))
        self.values.update(head=lane.session, since=self.since, until=self.until)

    def _moment(self, moment: MomentNode | None, when: AsOf) -> ResolvedMoment:
        try:
            return basis(self.lane, when)
        except UnknownError as error:
            assert moment is not None, "the head is there"
            raise query_error(error, moment.span) from error

    def _before(self, moment: MomentNode, params: Params, now: int, *, between: bool) -> int:
        """The position after which rows are wanted: after the end of a moment, or, between, before its beginning."""
        when = as_of(moment, params, now)
        if isinstance(when, Time | LoggedTime):
            return self._just_before(type(when)(max(when.at - between, 0)))
        if not between:
            return self._moment(moment, when).position
        match when:
            case Turn(number) if number > 0:
                self._moment(moment, when)
                return self._moment(moment, Turn(number - 1)).position
            case Turn():
                return -1
            case Call(number):
                self._moment(moment, when)
                return call_position(self.lane, number, last(self.lane)) - 1
        return self._moment(moment, when).position - 1

    def _just_before(self, when: AsOf) -> int:
        try:
            return basis(self.lane, when).position
        except UnknownError:  # nothing had happened by then
            return -1

    def lanes(self) -> list[ScopedSession]:
        """The one it is."""
        return [ScopedSession(self.lane, self.name, self.lane.session, 0, self.at.position, self.since, self.until)]

    def written(self, session: int | None = None, within: Bounds = EVERYWHERE) -> list[SessionStream]:
        """Its stretches, the oldest first."""
        found = []
        for stretch in self.lane.upto(self.at.position)[::-1]:
            low, high = max(stretch.low, self.since, within.low), min(stretch.high, self.until, within.high)
            if low < high:
                name = self.world.views.execute(_NAME, (stretch.session,)).get
                found.append(SessionStream(stretch.session, name, low, high, *moment_at(self.lane, low)))
        return found

    def position_of(self, page: str, span: SourceSpan) -> int:
        """The page of that name in the session; a QueryError names the nearest."""
        try:
            return self.world.page_position(self.name, page)
        except (UnknownError, InputError) as error:
            raise query_error(error, span, "unknown-page") from error

    def _knower(self) -> int:
        return self._knows()["s"]

    def _known(self) -> int:
        return self._knows()["q"]

    def _knows(self) -> dict[str, int]:
        """Whose rows say what is in the prompt, and where they say it; nobody's before the first pack."""
        return knower(self.lane, self.at.position) or {"s": -1, "q": 0}

    def _stale(self) -> str:
        return json.dumps([(self.lane.owner(page), page) for page in outdated(self.lane, self.at.position)])


class ManySessions(Scope):
    """Many sessions, each with the rows it wrote itself; all, those of a user, or those a pattern names."""

    def __init__(self, world: Host, tail: Tail, params: Params, rows: tuple[str, Params]) -> None:
        super().__init__(world, tail, params)
        self.shape, now = ACROSS, self.now
        self.values["never"] = NEVER
        high = self._bound("as_of", tail.as_of, params, now) or "position"
        since = self._bound("since", tail.since, params, now, early=tail.between) or "-1"
        until = self._bound("until", tail.until, params, now) or "position"
        condition, values = rows
        self.values.update(values)
        self.whole = condition == "1" and not (tail.as_of or tail.since or tail.until)
        of = partial(_BOUNDS.format, high=high, since=since, until=until)
        self.lane_sql = _MANY.format(of(condition=condition))
        self._one_sql = _MANY.format(of(condition=f"({condition}) AND session = :key"))
        count = world.views.execute(f"SELECT count(*) FROM ({of(condition=condition)})", self.values).get
        ordinal = world.views.execute("SELECT min(ordinal) FROM positions").get
        self.basis = {"sessions": count, "ordinal": ordinal, **_resolved(tail, params, now)}

    def _bound(self, name: str, moment: MomentNode | None, params: Params, now: int, early: bool = False) -> str:
        """The SQL of where each session stood at a time."""
        if moment is None or moment.unit == "head":
            return ""
        if moment.unit not in CLOCKS:
            message = f"a {moment.unit} is of one session; of many at once only TIME and LOGGED TIME can be asked"
            hint = "write AS OF TIME '2026-11-21', or IN SESSION and a name"
            raise fault(message, "moment-of-one-session", moment.span, hint, expected=("TIME", "LOGGED TIME"))
        when = as_of(moment, params, now)
        assert isinstance(when, Time | LoggedTime), "units of clocks are times"
        self.values[name] = when.at - early
        return (
            f"coalesce((SELECT max(c.last) FROM commits c WHERE c.session = sessions.session"
            f" AND c.{CLOCKS[moment.unit]} <= :{name}), -1)"
        )

    def lanes(self) -> list[ScopedSession]:
        """Each of them by name."""
        sql = f"WITH {self.lane_sql} SELECT lane.*, w.name FROM lane JOIN sessions w ON w.session = lane.session"
        rows: list[Any] = self.world.views.execute(sql, self.values).fetchall()
        return [ScopedSession(self.world.lane(key), name, key, *bounds) for key, *bounds, name in rows]

    def written(self, session: int | None = None, within: Bounds = EVERYWHERE) -> list[SessionStream]:
        """What each wrote, by name."""
        sql = f"""WITH {self.lane_sql if session is None else self._one_sql}
          SELECT lane.session, w.name, lane.low, lane.since, lane.until, w.turn_before, w.call_before
          FROM lane JOIN sessions w ON w.session = lane.session WHERE lane.until > lane.since"""
        found = []
        for key, name, low, since, until, turn, call in self.world.views.execute(sql, {**self.values, "key": session}):
            before = (turn, call) if since <= low else moment_at(self.world.lane(key), since)
            found.append(SessionStream(key, name, since, until, *before))
        return found

    def position_of(self, page: str, span: SourceSpan) -> int:
        """The position a name like p17 says; of many sessions a hint says no one page."""
        position = page_position(page)
        if position is None:
            message = f"{page!r} can name a page in each session"
            hint = f"write hint = '{page}', or IN SESSION and a name"
            raise fault(message, "page-of-one-session", span, hint)
        return position


def scope_of(world: Host, tail: Tail, params: Params, session: str | None, *, wide: bool = False) -> Scope:
    """What a statement with a tail sees: the session it names, else the one handed in, else the only one."""
    named = tail.scope
    if isinstance(named, AcrossSessions):
        return ManySessions(world, tail, params, _of_user(world, named, params))
    if isinstance(named, InSession):
        name = given(named.name, params)
        if not isinstance(name, str):
            raise fault(f"{name!r} names no session", "not-text", named.span)
        if "%" in name:
            _check_any(world, name, named.span)
            return ManySessions(world, tail, params, ("name LIKE :named", {"named": name}))
        name = meant_by(world, named.name, params)
        if not wide:
            return OneSession(world, world.lane(key_of(world, name, named.span)), name, tail, params)
        return _alone(world, tail, params, key_of(world, name, named.span), name)
    if wide:
        return ManySessions(world, tail, params, ("1", {}))
    name = session if session is not None else _only(world)
    return OneSession(world, world.lane(key_of(world, name, NOWHERE)), name, tail, params)


def _alone(world: Host, tail: Tail, params: Params, key: int, name: str) -> Scope:
    """One session among many: without the past it shares with its parent."""
    scope = OneSession(world, world.lane(key), name, tail, params)
    low = scope.lane.stretches[0].low
    row = [key, low, max(scope.at.position, low), max(low, scope.since), max(scope.until, low)]
    scope.shape, scope.lane_sql = ACROSS, _ONE
    scope.values.update(zip(("session", "low", "high", "since", "until"), row, strict=True))
    return scope


def meant_by(world: Host, written: Value | Param | Word, params: Params) -> str:
    """The session that a statement names: by the beginning of its name or `-` too, where that is written out.

    What is handed in as a parameter is a whole name: a program means the session it names and no other.
    """
    name = str(given(written, params))
    if isinstance(written, Param):
        return name
    found = meant(world.views, name)
    if len(found) > 1:
        some = ", ".join(f"'{one}'" for one in found[:5])
        message = f"several sessions begin with {name!r}"
        hint = f"write more of its name: {some}{' …' if len(found) > 5 else ''}"
        raise fault(message, "which-session", written.span, hint, expected=tuple(found[:5]))
    return found[0] if found else name


def key_of(world: Host, name: str, span: SourceSpan) -> int:
    """A session's key by its name; a QueryError names the nearest."""
    key: int | None = world.views.execute(f"SELECT session FROM sessions WHERE name = ? AND {NAMED}", (name,)).get
    if key is None:
        names = names_of(world)
        message = f"there is no session {name!r}{'' if names else ', nor any other yet'}"
        otherwise = "SESSIONS lists them" if names else None
        raise unknown(message, "unknown-session", span, name, names, otherwise, NEAREST)
    return key


def names_of(world: Host) -> list[str]:
    """The names of all sessions."""
    return [row[0] for row in world.views.execute("SELECT name FROM sessions WHERE hidden = 0 ORDER BY name")]


def _only(world: Host) -> str:
    names = names_of(world)
    if len(names) == 1:
        return names[0]
    if not names:
        raise fault("there is no session yet", "which-session", hint="record or import one")
    some = f"'{names[0]}'" if len(names) < 3 else "'name'"
    hint = f"add IN SESSION {some}, or ACROSS SESSIONS; in the shell \\session NAME; SESSIONS lists them"
    message = f"which session? this store has {len(names):,}"
    raise fault(message, "which-session", hint=hint, expected=tuple(names[:20]))


def _of_user(world: Host, across: AcrossSessions, params: Params) -> tuple[str, Params]:
    if across.user is None:
        return "1", {}
    user = given(across.user, params)
    rows: list[Any] = world.views.execute(
        "SELECT DISTINCT user FROM sessions WHERE hidden = 0 AND user IS NOT NULL ORDER BY user"
    ).fetchall()
    users = [session for (session,) in rows]
    if user not in users:
        message = f"no session is of user {user!r}"
        raise unknown(message, "unknown-user", across.user.span, str(user), users, meant=NEAREST)
    return "user = :of_user", {"of_user": user}


def _check_any(world: Host, pattern: str, span: SourceSpan) -> None:
    found = world.views.execute("SELECT 1 FROM sessions WHERE name LIKE ? AND hidden = 0 LIMIT 1", (pattern,)).get
    if found is None:
        raise fault(f"no session is named like {pattern!r}", "unknown-session", span)


def _resolved(tail: Tail, params: Params, now: int) -> dict[str, str]:
    """The times a statement names, as they were understood."""
    if not _timed(tail):
        return {}
    named = {"as_of": tail.as_of, "since": tail.since, "until": tail.until}
    found = {}
    for name, moment in named.items():
        when = as_of(moment, params, now)
        if isinstance(when, Time | LoggedTime):
            found[f"{name}_{moment.unit}" if moment is not None else name] = iso(when.at)
    return found


def _check_order(tail: Tail, params: Params, now: int) -> None:
    """Refuses bounds of one unit of which the last is before the first, wherever sessions stand."""
    first = None if tail.since is None else as_of(tail.since, params, now)
    for end in (tail.until, tail.as_of):
        last = None if end is None else as_of(end, params, now)
        if type(first) is type(last) and not isinstance(first, Head | None):
            name = first.__struct_fields__[0]
            if getattr(first, name) > getattr(last, name):
                raise _contradiction(tail)


def _contradiction(tail: Tail) -> QueryError:
    """What to say of bounds that leave nothing between them."""
    assert tail.since is not None, "nothing ends before the beginning"
    message = "what is asked for ends before it begins, so no row can be in it"
    hint = "name the earlier first" if tail.between else "SINCE takes the earlier moment, UNTIL and AS OF the later"
    return fault(message, "no-such-moment", tail.since.span, hint=hint)


def _timed(tail: Tail) -> bool:
    return any(m is not None and m.unit in CLOCKS for m in (tail.as_of, tail.since, tail.until))


_LAST = """SELECT max(c.at_max) FROM lane JOIN commits c ON c.session = lane.session AND c.first <= lane.high
 AND c.last > lane.low"""
_NAME = "SELECT name FROM sessions WHERE session = ?"
_COLUMNS = "lane(session, low, high, since, until)"
_ONE = f"{_COLUMNS} AS (VALUES(:session, :low, :high, :since, :until))"
LISTED = f"""{_COLUMNS} AS MATERIALIZED (
 SELECT CAST(value ->> 0 AS INTEGER), value ->> 1, value ->> 2, value ->> 3, value ->> 4 FROM json_each(:lane))"""
_BOUNDS = f"""
 SELECT session, low, high, max(low, since), min(high, until) FROM (
  SELECT session, name, iif(origin = {int(Origin.FORK)}, fork_position, 0) AS low,
   {{high}} AS high, {{since}} AS since, {{until}} AS until
  FROM sessions WHERE hidden = 0 AND {{condition}})
 WHERE high > low"""
_MANY = f"{_COLUMNS} AS MATERIALIZED ({{}} ORDER BY name)"
