"""The tools view: which pages are calls of a tool and which are its answers, as their sources say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import apsw

from vmstore.core.page import LinkKind, Modality, Role
from vmstore.core.text.json_text import plain, strict
from vmstore.core.text.tool_call import NAME_CHARS_MAX, arguments_text, call_in, path_in
from vmstore.core.text.tool_outcome import Around, JudgedOutcome, OutcomeRule, around, microseconds, outcome_of
from vmstore.views.branch import Branch
from vmstore.views.projector import PlacedMutation, Projector, columns
from vmstore.views.projectors.pages import object_of
from vmstore.views.tool_cells import ANSWER_BYTES_MAX, CALL_BYTES_MAX, answers_a_tool

if TYPE_CHECKING:
    from vmstore.core.mutation import Create, Message, Reply

KNOWN_MAX = 50_000  # calls kept at hand
ACTING = "swe-agent:"  # sources whose answers name the action they ask for beside their message


class _Call(NamedTuple):
    """A call that may be answered: its page, its tool, the id it is answered by."""

    page: int
    tool: str | None
    name: str | None


class _Around(NamedTuple):
    """The message a page is part of, as far as it is read: where each part stands, and what is kept beside it."""

    parts: dict[int, Around]
    skeleton: Any
    aside: Any


class ToolsProjector(Projector):
    """One row for each page that calls a tool or answers a call.

    `call` is the page of the call, a call's own page in its row, 0 where nobody knows which call is
    answered. `name` is the provider's id, `latency` in microseconds the source's own figure. `arguments`
    are those of a call whose page does not hold them. An answer without an id answers the first call
    without one that is open. Of contents only these are kept, and a fold that meets an erasure starts over.
    """

    name = "tools"
    version = 3  # claims that tools stated, too, and all parts of an answer without an id
    schema: ClassVar = {
        "tools": """session INTEGER, page INTEGER, call INTEGER, tool TEXT, name TEXT, outcome INTEGER, rule INTEGER,
            latency INTEGER, path TEXT, arguments TEXT, tokens INTEGER, at INTEGER, PRIMARY KEY(session, page)"""
    }
    indexes = ("CREATE INDEX tools_path ON tools(session, path) WHERE path IS NOT NULL",)

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._known: dict[tuple[int, int], _Call] = {}  # calls by session and page
        self._open: dict[int, tuple[int, list[_Call]]] = {}  # the last message that called, its calls that wait
        self._acting: dict[int, bool] = {}  # sessions whose messages are kept with an action
        self._message: tuple[int, _Around] = (0, _Around({}, None, None))
        self._messages: dict[int, Message] = {}  # of the commit
        self._actions: dict[int, str] = {}  # of the commit, by message
        self._took: dict[int, int | None] = {}
        self._unnamed: tuple[int, _Call] = (0, _Call(0, None, None))  # of the commit, by its message

    def on_commit(self, placed: PlacedMutation, mutations: Sequence[Any]) -> None:
        """Notes the messages of a commit, which its pages are parts of, and the actions they name."""
        from vmstore.core.mutation import Message, Open

        self._messages = {at: m for at, m in enumerate(mutations, placed.commit.first) if type(m) is Message}
        self._message, self._actions, self._took = (0, _Around({}, None, None)), {}, {}
        self._unnamed = (0, _Call(0, None, None))
        if type(opening := mutations[0]) is Open:
            self._acting[placed.session] = (placed.text(opening.source) or "").startswith(ACTING)
        if self._messages and self._acts(placed.session):
            self._act(placed, mutations)

    def _acts(self, session: int) -> bool:
        if session not in self._acting:
            source: Any = self.db.execute("SELECT source FROM sessions WHERE session = ?", (session,)).get
            self._acting[session] = str(source or "").startswith(ACTING)
        return self._acting[session]

    def _act(self, placed: PlacedMutation, mutations: Sequence[Any]) -> None:
        """Finds the actions of a commit: beside a message, else beside the reply that it is."""
        from vmstore.core.mutation import Create, Reply

        calls = {m.message for m in mutations if type(m) is Create and m.modality == Modality.STRUCTURED}
        replies = [_beside(placed, m) for m in mutations if type(m) is Reply and m.aside is not None]
        for at, message in self._messages.items():
            if message.role != Role.ASSISTANT:
                continue
            beside = {} if message.aside is None else object_of(placed.content(message.aside))
            said = next((each for each in (beside, *replies) if isinstance(each.get("action"), str)), beside)
            took = next((us for each in (beside, *replies) if (us := microseconds(each.get("execution_time")))), None)
            self._took[at] = took
            if at not in calls and (action := plain(said.get("action")) or "").strip():
                self._actions[at] = action.strip()

    def on_create(self, placed: PlacedMutation, m: Create) -> None:
        """Adds a row where the page is a call or an answer."""
        if m.role == Role.ASSISTANT:
            if m.modality == Modality.STRUCTURED and m.message:
                self._call(placed, m)
            elif m.message in self._actions:
                self._action(placed, m)
        elif m.message and answers_a_tool(m.type, m.role):
            self._answer(placed, m)

    def _call(self, placed: PlacedMutation, m: Create) -> None:
        """A part that asks for a tool."""
        asks = plain(_labels(placed, m).get("asks"))
        content = placed.read(m.content) if m.size <= CALL_BYTES_MAX else None
        found = call_in(_json(content), known=asks is not None)
        if asks is None and found is None:
            return
        tool = None if found is None else found.tool
        arguments = None if found is None else found.arguments
        judged = outcome_of((), None, content) if asks is None else JudgedOutcome()  # what the provider ran itself
        latency = judged.took_us if judged.took_us is not None else self._took.get(m.message)
        row = (judged.outcome, judged.rule, latency, path_in(arguments), None)
        self._add(placed, m, _Call(placed.position, tool, asks), row)

    def _action(self, placed: PlacedMutation, m: Create) -> None:
        """An action that a source names beside the answer that holds it in words of its own."""
        action = self._actions.pop(m.message)
        row = (None, None, self._took.get(m.message), None, arguments_text(action))
        self._add(placed, m, _Call(placed.position, action.split()[0][:NAME_CHARS_MAX], None), row)

    def _add(self, placed: PlacedMutation, m: Create, call: _Call, row: tuple[Any, ...]) -> None:
        assert call.page == placed.position, "a call is named by its own page"
        outcome, rule = (None if word is None else int(word) for word in row[:2])
        who = (placed.session, call.page, call.page, call.tool, call.name)
        self.rows["tools"].append((*who, outcome, rule, *row[2:], m.tokens, placed.at))
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[placed.session, call.page] = call
        message, waiting = self._open.get(placed.session, (0, []))
        if message != m.message:  # what asked before gets no answer now
            waiting = list[_Call]()
            self._open[placed.session] = m.message, waiting
        if call.name is None:
            waiting.append(call)

    def _answer(self, placed: PlacedMutation, m: Create) -> None:
        """A part that answers a call."""
        outer = self._around(placed, m.message)
        stands = outer.parts.get(m.part, ())
        judged, content = outcome_of(stands, outer.aside, None), None
        if judged.rule != OutcomeRule.IS_ERROR and m.size <= ANSWER_BYTES_MAX:
            content = placed.read(m.content)
            judged = outcome_of(stands, outer.aside, content)
        named = _named(outer.skeleton, stands, content)
        answers = plain(_labels(placed, m).get("answers"))
        linked = next((to for kind, to in m.links if kind == LinkKind.CAUSED_BY and to < placed.position), None)
        if (
            linked is None
            and answers is None
            and named is None
            and m.role == Role.USER
            and not self._acts(placed.session)
        ):
            return  # what a person attached
        is_whole = m.role == Role.TOOL and not any(key in each for each in stands for key in _RESPONSES)
        if linked is None and answers is None and is_whole and self._unnamed[0] == m.message:
            call = self._unnamed[1]  # a message of a tool's is one answer, of however many parts
        else:
            call = self._asked(placed, linked, answers, named)
            if linked is None and answers is None:
                self._unnamed = m.message, call
        tool = named if call.tool is None else call.tool
        ended = (
            None if judged.outcome is None else int(judged.outcome),
            None if judged.rule is None else int(judged.rule),
        )
        row = (placed.session, placed.position, call.page, tool, answers, *ended, judged.took_us, None, None)
        assert call.page < placed.position, "a call comes before its answer"
        self.rows["tools"].append((*row, m.tokens, placed.at))

    def _asked(self, placed: PlacedMutation, linked: int | None, answers: str | None, named: str | None) -> _Call:
        """The call that is answered: the one linked, else of those without an id the first that waits."""
        if linked is not None:
            return self._called(placed, linked) or _Call(linked, None, answers)
        waiting = [] if answers is not None else self._waiting(placed)
        for at, call in enumerate(waiting):
            if named is None or call.tool is None or call.tool == named:
                return waiting.pop(at)
        return _Call(0, None, None)

    def _called(self, placed: PlacedMutation, page: int) -> _Call | None:
        """A call by its page, which may be of the session that this one was forked from."""
        found = self._known.get((placed.session, page))
        if found is None:
            owner = Branch(self.db, placed.session).owner(page)
            found = self._known.get((owner, page))
            if found is None:
                row: Any = self.db.execute(_CALL, (owner, page)).fetchone()
                found = None if row is None else _Call(*row)
        return found

    def _waiting(self, placed: PlacedMutation) -> list[_Call]:
        """The calls without an id of the last message that called anything, as far as they wait for an answer."""
        found = self._open.get(placed.session)
        if found is None:
            found = self._open[placed.session] = (0, [])
            lane = Branch(self.db, placed.session).upto(placed.position - 1)
            for stretch in lane:
                rows: list[Any] = self.db.execute(_LAST, {"session": stretch.session, "high": stretch.high}).fetchall()
                if rows:
                    answered = {page for s in lane for (page,) in self.db.execute(_ANSWERED, (s.session, s.high))}
                    calls = [_Call(*call) for *call, _ in rows if call[2] is None and call[0] not in answered]
                    found = self._open[placed.session] = (rows[0][3], calls)
                    break
        return found[1]

    def _around(self, placed: PlacedMutation, message: int) -> _Around:
        """The objects around the parts of a message of this commit; empty for an earlier message."""
        if self._message[0] != message:
            said = self._messages.get(message)
            skeleton = None if said is None else _json(placed.read(said.envelope))
            aside = None if said is None or said.aside is None else placed.read(said.aside)
            beside = object_of(aside) if said is not None and said.role == Role.TOOL else {}
            self._message = message, _Around(around(skeleton), skeleton, beside)
        return self._message[1]

    def forget(self) -> None:
        """Drops the calls at hand too."""
        super().forget()
        self._known.clear()
        self._open.clear()
        self._acting.clear()


def _labels(placed: PlacedMutation, m: Create) -> dict[str, Any]:
    return {} if m.labels is None else object_of(placed.content(m.labels))


def _beside(placed: PlacedMutation, m: Reply) -> dict[str, Any]:
    """The fields of an answer that a source keeps beside its messages."""
    found = object_of(placed.content(m.aside)).get("response")
    return found if isinstance(found, dict) else {}


def _named(skeleton: Any, outer: Around, content: bytes | None) -> str | None:
    """The tool that an answer names itself, in its message or around its part."""
    value = _json(content) if content is not None and content[:1] == b"{" and not outer else None
    for each in (*outer, skeleton, value):
        if isinstance(each, dict):
            inner = next((each[key] for key in _RESPONSES if isinstance(each.get(key), dict)), each)
            found = plain(inner.get("toolName")) or (plain(inner.get("name")) if _is_answer(each) else None)
            if found:
                return found[:NAME_CHARS_MAX]
    return None


def _is_answer(value: dict[str, Any]) -> bool:
    return value.get("role") in ("tool", "function") or any(key in value for key in _RESPONSES)


def _json(content: bytes | None) -> Any:
    try:
        return None if content is None else strict(content)
    except ValueError:
        return None


_RESPONSES = ("functionResponse", "function_response")
_CALL = "SELECT page, tool, name FROM tools WHERE session = ? AND page = ?"
_LAST = """SELECT t.page, t.tool, t.name, p.message FROM tools t CROSS JOIN pages p ON p.session = t.session
  AND p.page = t.page WHERE t.session = :session AND t.page <= :high AND t.call = t.page AND p.message = (
   SELECT y.message FROM tools x CROSS JOIN pages y ON y.session = x.session AND y.page = x.page
   WHERE x.session = :session AND x.page <= :high AND x.call = x.page ORDER BY x.page DESC LIMIT 1) ORDER BY t.page"""
_ANSWERED = "SELECT call FROM tools WHERE session = ? AND page <= ? AND call <> page AND call"

assert columns(ToolsProjector.schema["tools"])[1:5] == ("page", "call", "tool", "name"), (
    "a call's row begins as `_Call` does"
)
