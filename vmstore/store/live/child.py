"""Sub-agents: sessions that another begins, and whose result comes back into it with where it comes from."""

from __future__ import annotations

from typing import Any, NamedTuple

from vmstore.core.address import Address, page_name
from vmstore.core.draft import Draft, Part
from vmstore.core.page import Modality, Origin, PageType, Role
from vmstore.core.redaction import Redaction
from vmstore.engine.head import NewSession
from vmstore.errors import ConflictError, InputError
from vmstore.live import messages
from vmstore.live.runtime import Act, Runtime
from vmstore.namespace.results import SessionInfo
from vmstore.store.live.open_live import begun
from vmstore.store.session import Session
from vmstore.views.projectors.redactions import policy_at
from vmstore.vm.protocol.citation_filter import unmarked


class ChildResult(NamedTuple):
    """Result of a child: its words, and the versioned address of the page that holds them."""

    text: str
    origin: str


def opening_of(parent: Session, runtime: Runtime, name: str, call: str | None) -> NewSession:
    """The opening of a child: its parent's user and redaction, and the call that began it."""
    info = parent.info()
    owner = {word: text for word in ("user", "agent") if (text := getattr(info, word)) is not None}
    if call is not None and call not in runtime.spoken.calls:
        known = ", ".join(list(runtime.spoken.calls)[-3:]) or "none"
        raise InputError(f"no tool call has the id {call!r:.60}; the last ones are {known}", code="no-tool-call")
    policy = policy_at(parent._lane())
    return NewSession(
        name,
        owner,
        origin=Origin.SPAWN,
        parent=parent._key,
        parent_position=runtime.state.position,
        spawned_by=None if call is None else runtime.spoken.calls[call],
        redaction=None if policy is Redaction.OFF else policy,
    )


def begin_child(parent: Session, opening: NewSession, settings: dict[str, Any], options: dict[str, Any]) -> int:
    """The key of the child of a name, opened with its parent's settings except those given, or continued."""
    ns = parent._ns
    key = ns.key(opening.name)
    if key is None:
        return begun(ns, parent._recording, opening, **{**settings, **options})
    with ns.asking():
        _of(parent.name, ns.session_info(key))
    return begun(ns, parent._recording, opening, **options)


def children_of(parent: Session) -> list[SessionInfo]:
    """The sessions that another began, in the order they were opened."""
    keys: list[Any] = parent._ns.views.execute(_CHILDREN, (parent._key, int(Origin.SPAWN))).fetchall()
    return [parent._ns.session_info(key) for (key,) in keys]


def result_of(parent: Session, child: Session, runtime: Runtime, text: str | None) -> ChildResult:
    """The result of a child: its last answer, or `text` instead, without citations of its own pages."""
    with parent._ns.asking():
        _of(parent.name, child.info())
    answers = [
        message for message in runtime.spoken.messages.values() if message.role is Role.ASSISTANT and message.parts
    ]
    if not answers:
        raise InputError(
            f"session {child.name!r} has said nothing yet, so it came to nothing; run it first", code="nothing-said"
        )
    pages = [runtime.state.pages[page] for page in answers[-1].parts if page not in runtime.spoken.thoughts]
    texts = [managed for managed in pages if managed.modality is Modality.TEXT]
    at = texts[0].page if texts else answers[-1].parts[0]
    if text is None:
        forms = [managed.forms[0].position for managed in texts if managed.forms[0] is not None]
        text = "\n\n".join(runtime.forms.of(form).decode("utf-8", "replace") for form in forms)
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"what session {child.name!r} said last has no words; give the result as text")
    place = Address(namespace=parent._ns.name, session=child.name, page=page_name(at), position=runtime.state.position)
    return ChildResult(unmarked(text), str(place))


def taken_in(act: Act, child: str, result: ChildResult, call: str | None) -> list[int]:
    """Writes a result: as the answer to a tool call, else as a page of its own, with where it comes from; its pages."""
    if call is not None:
        return messages.tool(act, call, result.text, None, origin=result.origin).pages
    part = Part(result.text.encode("utf-8", "backslashreplace"), type=PageType.ARTIFACT)
    draft = Draft(Role.ASSISTANT, b"", (part,), hint=child, actor=child, origin=result.origin)
    return [messages.alone(act, draft)]


def call_of(act: Act, parent: Session, child: int) -> str | None:
    """The tool call that began a child, where nothing has answered it."""
    page: int | None = parent._ns.views.execute(_SPAWNED_BY, (child,)).get
    answered = {managed.answers for managed in act.state.pages.values()}
    if page is None or page in answered:
        return None
    return next((call for call, asked in act.spoken.calls.items() if asked == page), None)


def _of(parent: str, info: SessionInfo) -> None:
    if info.origin != Origin.SPAWN.word or info.parent != parent:
        raise ConflictError(
            f"session {info.session!r} is no child of {parent!r}, which is its {info.origin}; name one that "
            f"{parent!r} began, or another name for a new one",
            code="no-child",
        )


_CHILDREN = "SELECT session FROM sessions WHERE parent = ? AND origin = ? AND hidden = 0 ORDER BY session"
_SPAWNED_BY = "SELECT spawned_by FROM sessions WHERE session = ?"
