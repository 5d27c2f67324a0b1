"""The rows of VMQL's relations, as dicts made of a list of facts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from specs.decided import Decided as Model
from tests.vmql import known
from tests.vmql.kinds import about, cause_of, level_of, tiers_of, use_of, versions_of
from tests.vmql.measured import metrics
from tests.vmql.moved import compactions, moves
from tests.vmql.planned import artifacts, atoms, segments, tasks
from tests.vmql.said import notes, tag_rows
from tests.vmql.stated import facts
from tests.vmql.worked import guards, recalls, skills, tools
from vmstore.core import mutation as m
from vmstore.core.decision import Cause, Denial, Holder, Load
from vmstore.core.page import (
    Fidelity,
    Level,
    LinkKind,
    Method,
    Modality,
    Origin,
    PageType,
    Role,
    Slot,
    Standing,
    Status,
)
from vmstore.core.tags import TagMethod
from vmstore.core.text.tool_outcome import ToolOutcome
from vmstore.core.work.trace import GuardType

Row = dict[str, Any]
ENDS = ("type", "role", "tool", "outcome")  # what a link says of the page at either end


def iso(at: int | None) -> str | None:
    """A time as answers tell it."""
    if at is None:
        return None
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")


def _status(reply: m.Reply | None) -> str:
    """How a call ended, by its last reply."""
    return "open" if reply is None else Status(reply.status).word


def _tokens_of(mutation: m.AnyMutation) -> int | None:
    """The tokens that a mutation brings or makes room for; what a search was answered with it neither brings."""
    if isinstance(mutation, m.Search):
        return None
    tokens: int | None = getattr(mutation, "tokens", getattr(mutation, "tokens_out", None))
    return tokens


def _joined(texts: list[str]) -> str | None:
    return "\n".join(texts) if texts else None


def _first_tool(pages: list[Row]) -> Row:
    """The first tool that some pages call or answer for, and the worst of their outcomes."""
    return {
        "tool": pages[0]["tool"] if pages else None,
        "outcome": max((p["outcome"] for p in pages if p["outcome"]), default=None, key=["ok", "error"].index),
    }


class Naive:
    """Answers relations of one session up to a position, or of every session for itself."""

    def __init__(self, model: Model) -> None:
        self.model = model

    # ---- rows

    def rows(self, relation: str, session: str, position: int) -> list[Row]:
        """The rows of a relation as one session sees them, in its order."""
        made: Callable[[str, int], list[Row]] = getattr(self, f"_{relation.lower()}")
        return made(session, position)

    def across(self, relation: str, ends: dict[str, int]) -> list[Row]:
        """The rows that each session wrote itself, in the order of their names; mutations in that of the log."""
        rows = []
        for name in sorted(ends):
            listed = (
                self._facts(name, ends[name], own=True)
                if relation == "FACTS"
                else self.rows(relation, name, ends[name])
            )
            rows += [row for row in listed if row["session"] == name]
        if relation == "MUTATIONS":
            logged = {(fact.session, fact.position): at for at, fact in enumerate(self.model.facts)}
            rows.sort(key=lambda row: logged[row["session"], row["position"]])
        return rows

    def writer(self, session: str, position: int) -> str:
        """Who wrote a position of a session's past."""
        return next(fact.session for fact in self.model.seen(session) if fact.position == position)

    def _pages(self, session: str, position: int) -> list[Row]:
        other_notes = notes(self.model, session, position)
        since = {shown.page: shown.since for shown in self.model.context(session, position)}
        links = self.model.links(session, position)
        last = {
            page: [c.position for c in listed if c.level == Level.FULL][-1]
            for page, listed in self.model.versions(session, position).items()
        }
        numbers = self.model.pinned(session, position)
        flushed = {
            f.mutation.page: f.position for f in self.model.seen(session, position) if type(f.mutation) is m.Flush
        }
        dirty = {
            e.source
            for e in links
            if e.kind == LinkKind.DERIVES and last[e.target] > max(e.position, last[e.source], flushed.get(e.source, 0))
        }
        also = known.pages(self, session, position)
        return [
            {
                **also[page.page],
                "page": f"p{page.page}",
                "session": self.writer(session, page.page),
                "user": None,
                "message": f"m{page.born.message}" if page.born.message else None,
                "type": PageType(page.born.type).word,
                "role": Role(page.born.role).word,
                "modality": Modality(page.born.modality).word,
                "tier": int(page.tier),
                "level": page.level,
                "tokens": page.counted.told.tokens,
                "bytes": page.counted.told.size,
                "importance": other_notes[page.page]["importance"] / 1_000_000,
                "tags": sorted(other_notes[page.page]["tags"]),
                "status": None if (status := other_notes[page.page].get("status")) is None else Standing(status).word,
                "valid_from": iso(other_notes[page.page].get("valid_from")),
                "valid_to": iso(other_notes[page.page].get("valid_to")),
                "version": page.version,
                "pinned": page.page in numbers,
                "dirty": page.page in dirty,
                "created_turn": page.turn,
                "created_call": page.call,
                "created_at": iso(page.at),
                "position": page.page,
                "since_position": since.get(page.page),
            }
            for page in self.model.pages(session, position)
        ]

    def _context(self, session: str, position: int) -> list[Row]:
        """The context of the last call packed up to a position."""
        pack = max(call.position for call in self.model.calls(session, position).values())
        born = {page.page: page.born for page in self.model.pages(session, pack)}
        contents = {c.position: c for listed in self.model.versions(session, pack).values() for c in listed}
        moments = {fact.position: (turn, call) for fact, turn, call in self.model.moments(session, pack)}
        return [
            {
                "order": order,
                "page": f"p{shown.page}",
                "message": f"m{born[shown.page].message}" if born[shown.page].message else None,
                "role": Role(born[shown.page].role).word,
                "type": PageType(born[shown.page].type).word,
                "level": shown.level,
                "tokens": contents[shown.content].told.tokens,
                "since_turn": moments[shown.since][0],
                "since_call": moments[shown.since][1],
            }
            for order, shown in enumerate(self.model.context(session, pack), 1)
        ]

    def _calls(self, session: str, position: int) -> list[Row]:
        records = []
        voided = self.model.invalidated(session, position)
        replaced: dict[int, int] = {}
        for row in compactions(self, session, position):
            replaced[row["call"]] = replaced.get(row["call"], 0) + row["pages"]
        also = known.calls(self, session, position)
        for number, call in self.model.calls(session, position).items():
            reply = call.reply
            records.append(
                {
                    **also[number],
                    "session": self.writer(session, call.position),
                    "call": number,
                    "turn": call.turn,
                    "position": call.position,
                    "at": iso(call.at),
                    "status": _status(reply),
                    "fidelity": Fidelity(call.pack.fidelity).word,
                    "tokens": call.pack.tokens,
                    "pages": call.pack.leaves,
                    "tokens_reported": None if reply is None else reply.tokens_in,
                    "tokens_out": None if reply is None else reply.tokens_out,
                    "budget": self._budget(session, call.position),
                    "invalidated": voided[number],
                    "compacted": replaced.get(number, 0),
                }
            )
        return records

    def _budget(self, session: str, position: int) -> int | None:
        factors = [f.mutation.factor_ppm for f in self.model.seen(session, position) if type(f.mutation) is m.Configure]
        tokens = (self.model.settings(session, position) or {}).get("l0_tokens_max")
        return None if tokens is None else tokens * 1_000_000 // (factors or [1_000_000])[-1]

    def _turns(self, session: str, position: int) -> list[Row]:
        made: dict[int, list[Any]] = {}
        for fact, turn, _ in self.model.moments(session, position):
            if isinstance(fact.mutation, m.Create):
                made.setdefault(turn, []).append(fact.mutation)
        ats = {fact.position: fact.at for fact in self.model.seen(session, position)}
        return [
            {
                "session": self.writer(session, where),
                "turn": turn,
                "position": where,
                "at": iso(ats[where]),
                "calls": calls,
                "tokens": sum(page.tokens for page in made.get(turn, [])),
                "user_tokens": sum(page.tokens for page in made.get(turn, []) if page.role == Role.USER),
                "reply_tokens": sum(page.tokens for page in made.get(turn, []) if page.role == Role.ASSISTANT),
                **self._turn_moves(session, position, turn),
            }
            for turn, where, calls in self.model.turns(session, position)
        ]

    def _turn_moves(self, session: str, position: int, turn: int) -> Row:
        faults, left = self.model.moves(session, position)
        searches, load = self.model.told(session, position).get(turn, (0, None))
        return {
            "searches": searches,
            "load": load,
            "cost": known.costs(self, session, position).get(turn),
            "faults": sum(fault.turn == turn for fault in faults),
            "evictions": sum(when == turn for _, when in left),
        }

    def _faults(self, session: str, position: int) -> list[Row]:
        contents = {c.position: c for listed in self.model.versions(session, position).values() for c in listed}
        moments = {fact.position: (turn, call) for fact, turn, call in self.model.moments(session, position)}
        rows: list[Row] = []
        here: set[int] = set()
        left: dict[int, int] = {}
        for call in self.model.calls(session, position).values():
            now = {shown.page: shown for shown in self.model.context(session, call.position)}
            for page in sorted((now.keys() - here) & left.keys()):
                rows.append(
                    {
                        "position": call.position,
                        "session": self.writer(session, call.position),
                        "turn": moments[call.position][0],
                        "call": moments[call.position][1],
                        "page": f"p{page}",
                        "level_served": now[page].level,
                        "out_since": left[page],
                        "tokens": contents[now[page].content].told.tokens,
                    }
                )
            left |= dict.fromkeys(here - now.keys(), call.position)
            here = set(now)
        return rows

    def _mutations(self, session: str, position: int) -> list[Row]:
        return [
            {
                "position": fact.position,
                "session": fact.session,
                "turn": turn,
                "call": call,
                "kind": fact.mutation.kind,
                "page": about(fact),
                "cause": cause_of(fact.mutation),
                "at": iso(fact.at),
                "tier_before": tiers_of(fact.mutation)[0],
                "tier_after": tiers_of(fact.mutation)[1],
                "version_before": versions_of(fact.mutation)[0],
                "version_after": versions_of(fact.mutation)[1],
                "level": level_of(fact.mutation),
                "reason": self._reason(session, fact.mutation),
                "tokens": _tokens_of(fact.mutation),
            }
            for fact, turn, call in self.model.moments(session, position)
        ]

    def _reason(self, session: str, value: Any) -> str | None:
        """Why something was asked for or decided; what came has the reason of what asked."""
        match value:
            case m.FaultIn(reference=asked) | m.Prefetch(reference=asked):
                fact = next(fact for fact in self.model.seen(session) if fact.position == asked)
                return use_of(fact.mutation) if isinstance(fact.mutation, m.Reference) else None
            case m.Reference():
                return use_of(value)
            case m.FaultDenied(because=because):
                return Denial(because).word
            case m.Evict(cause=cause):
                return Cause(cause).word
            case m.Pin(holder=holder) | m.Unpin(holder=holder):
                return Holder(holder).word
            case m.Recall(corrected=corrected):
                return "corrected" if corrected else "right"
            case m.Pressure(level=level):
                return Load(level).word
            case m.Close(status=status):
                return Standing(status).word
            case m.Tag(method=method):
                return TagMethod(method).word
            case m.ToolRun(outcome=outcome):
                return ToolOutcome(outcome).word
            case m.GuardTrip(type=guard):
                return GuardType(guard).word
        return None

    def _faults(self, session: str, position: int) -> list[Row]:
        calls = {fact.position: call for fact, _, call in self.model.moments(session, position)}
        tools, records = known.of_tools(self, session, position), []
        for fault in self.model.moves(session, position)[0]:
            answer, asked = fault.answer, fault.asked
            level, tokens = getattr(answer, "level", None), getattr(answer, "tokens", None)
            if answer is None:
                shown = next(s for s in self.model.context(session, fault.position) if s.page == fault.page)
                contents = self.model.versions(session, position)[fault.page]
                level, tokens = shown.level, next(c.told.tokens for c in contents if c.position == shown.content)
            records.append(
                {
                    "position": fault.position,
                    "session": self.writer(session, fault.position),
                    "turn": fault.turn,
                    "call": calls[fault.position],
                    "page": f"p{fault.page}" if fault.page else None,
                    "reason": None if asked is None else use_of(asked),
                    "level_asked": None if asked is None else asked.level,
                    "level_served": level,
                    "from_tier": 2 if answer is None else getattr(answer, "tier", None),
                    "out_since": fault.out_since,
                    "away_calls": None if fault.out_since is None else calls[fault.position] - calls[fault.out_since],
                    "tool": tools.get(fault.page, known.BARE)["tool"],
                    "tokens": tokens,
                    "granted": not isinstance(answer, m.FaultDenied),
                    "denied_because": Denial(answer.because).word if isinstance(answer, m.FaultDenied) else None,
                }
            )
        return records

    def _versions(self, session: str, position: int) -> list[Row]:
        moments = {fact.position: (fact.at, turn) for fact, turn, _ in self.model.moments(session, position)}
        records = [
            {
                "turn": moments[content.position][1],
                "at": iso(moments[content.position][0]),
                "text": self._text(session, content),
                "page": f"p{page}",
                "session": self.writer(session, content.position),
                "version": content.version,
                "parent": content.version if content.level else content.version - 1 or None,
                "position": content.position,
                "level": content.level,
                "bytes": content.told.size,
                "tokens": content.told.tokens,
                "method": Method(content.told.method).word if content.level else None,
            }
            for page, contents in self.model.versions(session, position).items()
            for content in contents
        ]
        return sorted(records, key=lambda row: row["position"])

    def _text(self, session: str, content: Any) -> str | None:
        ref = content.told.content
        return None if ref is None else self.model.cell(session, content.position, ref).decode()

    def _links(self, session: str, position: int) -> list[Row]:
        ends = known.sides(self, session, position)
        mutations = {fact.position: fact.mutation for fact in self.model.seen(session, position)}
        edges = sorted(self.model.links(session, position), key=lambda e: (e.position, e.source, e.target, e.kind))
        return [
            {
                "session": self.writer(session, edge.position),
                "source": f"p{edge.source}",
                "target": f"p{edge.target}",
                "kind": LinkKind(edge.kind).word,
                "position": edge.position,
                "valid_from": iso(getattr(mutations[edge.position], "valid_from", None)),
                "valid_to": iso(getattr(mutations[edge.position], "valid_to", None)),
                **{f"source_{name}": ends[edge.source][name] for name in ENDS},
                **{f"target_{name}": ends[edge.target][name] for name in ENDS},
            }
            for edge in edges
        ]

    def _vectors(self, session: str, position: int) -> list[Row]:
        return [
            {
                "page": f"p{mutation.page}",
                "session": fact.session,
                "model": self.model.cell(session, fact.position, mutation.model).decode(),
                "chunk": chunk,
                "dimension": mutation.dimension,
                "content": mutation.content,
                "begins": begins,
                "ends": ends,
                "position": fact.position,
                "at": iso(fact.at),
            }
            for fact in self.model.seen(session, position)
            if isinstance(mutation := fact.mutation, m.Embed) and mutation.vectors is not None
            for chunk, (begins, ends) in enumerate(mutation.chunks, 1)
        ]

    def _tags(self, session: str, position: int) -> list[Row]:
        return tag_rows(self.model, session, position)

    def _messages(self, session: str, position: int) -> list[Row]:
        born = [f.mutation for f in self.model.seen(session, position) if isinstance(f.mutation, m.Create)]
        ats = {fact.position: fact.at for fact in self.model.seen(session, position)}
        calls = self.model.calls(session, position)
        tools, arrived = known.of_tools(self, session, position), self._arrived(session, position)
        return [
            {
                **_first_tool([tools[page] for page, _ in arrived.get(number, ()) if page in tools]),
                "text": _joined([text for _, text in arrived.get(number, ()) if text is not None]),
                "message": f"m{number}",
                "session": self.writer(session, number),
                "turn": message.turn,
                "call": message.call,
                "position": number,
                "at": iso(ats[number]),
                "role": Role(message.message.role).word,
                "slot": Slot(message.message.slot).word,
                "status": None if message.message.reply_to is None else _status(calls[message.message.reply_to].reply),
                "tokens": sum(page.tokens for page in born if page.message == number),
                "pages": sum(page.message == number for page in born),
            }
            for number, message in self.model.messages(session, position).items()
        ]

    def _arrived(self, session: str, position: int) -> dict[int, list[tuple[int, str | None]]]:
        """The pages of each message, with their texts as they arrived."""
        arrived: dict[int, list[tuple[int, str | None]]] = {}
        for page, contents in self.model.versions(session, position).items():
            arrived.setdefault(contents[0].told.message, []).append((page, self._text(session, contents[0])))
        return arrived

    def _residencies(self, session: str, position: int) -> list[Row]:
        contents = {c.position: c for listed in self.model.versions(session, position).values() for c in listed}
        numbers = {call.position: number for number, call in self.model.calls(session, position).items()}
        rows: list[Row] = []
        here: dict[int, tuple[Any, Row]] = {}
        left: dict[int, int] = {}
        for call in self.model.calls(session, position).values():
            now = {shown.page: shown for shown in self.model.context(session, call.position)}
            entered = {new[0] for new in call.pack.entered}
            for page in [page for page in here if page not in now or page in entered]:
                _, row = here.pop(page)
                row["to_position"], row["to_call"] = call.position, numbers[call.position]
                left[page] = numbers[call.position]
            for page, shown in now.items():
                if page not in here:
                    row = {
                        "page": f"p{page}",
                        "session": self.writer(session, call.position),
                        "level": shown.level,
                        "from_position": call.position,
                        "to_position": None,
                        "from_call": numbers[call.position],
                        "to_call": None,
                        "since_position": shown.since,
                        "tier": 0,
                        "away_calls": (numbers[call.position] - left[page] or None) if page in left else None,
                        "tokens": contents[shown.content].told.tokens,
                        "reason": self._let_in(session, page, call.position),
                    }
                    here[page] = (shown, row)
                    rows.append(row)
        for row in rows:
            end = position + 1 if row["to_position"] is None else row["to_position"]
            moments = range(row["from_position"], end)
            row["uses"] = known.used_in(self, session, int(row["page"][1:]), row["from_position"], end)
            row["pinned"] = any(int(row["page"][1:]) in self.model.pinned(session, at) for at in moments)
        return sorted(rows, key=lambda row: (row["from_position"], int(row["page"][1:])))

    def _let_in(self, session: str, page: int, pack: int) -> str | None:
        """The last move of a page since the pack before, where it left it in the prompt."""
        text: str | None = None
        for fact in self.model.seen(session, pack - 1):
            match fact.mutation:
                case m.Pack():
                    text = None
                case m.FaultIn(page=moved) | m.Prefetch(page=moved) | m.Evict(page=moved) as move if moved == page:
                    gone = isinstance(move, m.Evict) and move.level is None
                    text = None if gone else f"{move.kind}: {self._reason(session, move)}"
        return text

    def _moves(self, session: str, position: int) -> list[Row]:
        return moves(self, session, position)

    def _compactions(self, session: str, position: int) -> list[Row]:
        return compactions(self, session, position)

    def _tools(self, session: str, position: int) -> list[Row]:
        return tools(self, session, position)

    def _tasks(self, session: str, position: int) -> list[Row]:
        return tasks(self, session, position)

    def _atoms(self, session: str, position: int) -> list[Row]:
        return atoms(self, session, position)

    def _metrics(self, session: str, position: int) -> list[Row]:
        return metrics(self, session, position)

    def _artifacts(self, session: str, position: int) -> list[Row]:
        return artifacts(self, session, position)

    def _segments(self, session: str, position: int) -> list[Row]:
        return segments(self, session, position)

    def _guards(self, session: str, position: int) -> list[Row]:
        return guards(self, session, position)

    def _skills(self, session: str, position: int) -> list[Row]:
        return skills(self, session, position)

    def _recalls(self, session: str, position: int) -> list[Row]:
        return recalls(self, session, position)

    def _facts(self, session: str, position: int, *, own: bool = False) -> list[Row]:
        return facts(self, session, position, own=own)

    def _sessions(self, session: str, position: int) -> list[Row]:
        own = [fact for fact in self.model.own(session) if fact.position <= position]
        opened = own[0].mutation
        assert isinstance(opened, m.Open)
        _, turns, calls = self.model.last(session, position)
        born = [fact.mutation for fact in own if isinstance(fact.mutation, m.Create)]
        parent = self.model.names[opened.parent] if opened.parent else None
        return [
            {
                "session": session,
                "origin": Origin(opened.origin).word,
                "parent": parent,
                "fork_position": opened.parent_position if parent else None,
                "turns": turns,
                "calls": calls,
                "pages": len(born),
                "messages": sum(isinstance(fact.mutation, m.Message) for fact in own),
                "mutations": len(own),
                "tokens": sum(page.tokens for page in born),
                "tools": sum(page.role == Role.TOOL for page in born),
                "position": own[-1].position,
                **known.session(self, session, position),
            }
        ]
