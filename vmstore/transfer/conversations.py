"""Sessions as conversations, for people and for programs that train or test models: Markdown, and chat messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from vmstore.capture.thought_parts import is_thought, thoughts
from vmstore.core.address import page_name
from vmstore.core.draft import Part
from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.page import Mime, Modality, PageType, Role, Slot
from vmstore.core.text.json_text import loads
from vmstore.core.text.page_line import MEDIA, about, shown_part, shown_request, tool_request
from vmstore.core.text.page_line import ToolRequest as Asked
from vmstore.log.port import Log
from vmstore.redact.mask import Mask
from vmstore.redact.span import HANDED_OUT
from vmstore.transfer.redacted_export import EVERYWHERE, UNSEEN, MaskedCounts
from vmstore.views.branch import Branch
from vmstore.views.compactions import compactions_at
from vmstore.views.projection import Projection
from vmstore.views.selection import Portion
from vmstore.views.stored_cells import read_cells
from vmstore.vm.protocol.messages import messages
from vmstore.vm.protocol.prompt_page import PromptPage


class Break(NamedTuple):
    """A compaction: the position it happened at, how many pages of how many tokens left, and the summary's text."""

    position: int
    pages: int
    tokens: int
    summary: str


class SpokenSession(NamedTuple):
    """A session as it was spoken: each part as it arrived, in order, with its turn; and its compactions."""

    name: str
    parts: tuple[tuple[int, PromptPage], ...]
    breaks: tuple[Break, ...]


Writer = Callable[[SpokenSession], str]


def spoken_sessions(projection: Projection, portions: Sequence[Portion]) -> Iterator[SpokenSession]:
    """The sessions that were asked for, one by one; what their forks share stands in each."""
    for portion in portions:
        if portion.asked:
            yield _spoken(Branch(projection.db, portion.session), projection.log, portion)


def masked_sessions(make: Callable[[], Iterable[SpokenSession]], counts: MaskedCounts) -> Iterator[SpokenSession]:
    """The same with placeholders; a content in which nothing can be masked is left out and counted."""
    first, mask = Mask(HANDED_OUT), Mask(HANDED_OUT)
    for session in make():
        _masked(session, first, MaskedCounts())
    mask.trust(first)
    for session in make():
        yield _masked(session, mask, counts)
    counts.counts, counts.values = mask.counts, len(mask.record)


def chat_line(session: SpokenSession) -> str:
    """A session as one line, `{"messages": […]}`: what instructs, then what was said, each call with its result."""
    request = messages([leaf for _, leaf in session.parts], shape="chat-system").request
    return msgspec.json.encode({"messages": request["messages"]}).decode() + "\n"


def markdown(session: SpokenSession) -> str:
    """A session as Markdown: a heading a turn, who speaks, calls as a line, results in fences, compactions marked."""
    calls = {leaf.call_id: _asked(leaf) for _, leaf in session.parts if leaf.is_call}
    blocks = [f"# {_flat(session.name)}"]
    waiting = list(session.breaks)
    heading: int | None = None
    for (turn, _, role), group in groupby(session.parts, key=_speaker):
        leaves = [leaf for _, leaf in group]
        while waiting and waiting[0].position < int(leaves[0].name[1:]):
            blocks += _break(waiting.pop(0))
        if turn != heading:
            blocks.append(f"## Turn {turn}" if turn else "## Before the first turn")
            heading = turn
        blocks += [f"**{role.word}**", *(block for leaf in leaves for block in _blocks(leaf, calls))]
    blocks += [block for one in waiting for block in _break(one)]
    return "\n\n".join(blocks) + "\n\n"


CONVERSATIONS: dict[str, Writer] = {"markdown": markdown, "chat": chat_line}


# ---- reading


def _spoken(lane: Branch, log: Log, portion: Portion) -> SpokenSession:
    rows: list[Any] = [
        row
        for stretch in reversed(lane.upto(portion.upto))
        for row in lane.db.execute(_SAID, (stretch.session, stretch.low, stretch.high))
    ]
    compactions = compactions_at(lane, portion.upto)
    summaries = dict(_cells(lane, [one.summary for one in compactions]))
    sealed = {cell: commitment for row in rows for cell, commitment in (row[8:10], row[10:12]) if cell is not None}
    cells = read_cells(log, lane.db, {**sealed, **dict(summaries.values())}, gone)
    thinking = {row[1]: thoughts(cells[row[10]]) for row in rows if row[10] is not None}
    parts = [
        (turn, leaf)
        for turn, *row in rows
        for leaf in _leaves(row, cells.get(row[7], b""), thought=row[2] in thinking.get(row[0], ()))
    ]
    breaks = (
        Break(one.position, len(one.left), one.tokens, _text(cells[summaries[one.summary][0]]))
        for one in compactions
        if one.summary in summaries
    )
    return SpokenSession(portion.name, tuple(parts), tuple(breaks))


def _cells(lane: Branch, pages: Sequence[int]) -> Iterator[tuple[int, tuple[int, bytes]]]:
    for page, cell, commitment in lane.rows(_CELLS, pages):
        if cell is not None:
            yield page, (cell, commitment)


def _leaves(row: Sequence[Any], content: bytes, *, thought: bool) -> Iterator[PromptPage]:
    """The page of a row; an action that a source keeps beside its message is a call after it."""
    message, page, part, modality, role, mime, slot, _, _, _, _, call, tool, name, arguments = row
    if isinstance(content, ErasedContent):
        modality, mime = Modality.TEXT, Mime.TEXT
    is_call = call == page
    leaf = PromptPage(
        name=page_name(page),
        modality=Modality(modality),
        role=Role(role),
        slot=Slot(slot),
        content=content,
        mime=Mime(mime).type,
        message=message,
        part=part,
        thought=thought or is_thought(Part(content, Modality(modality))),
        tool=tool or "",
        call_id=name or (page_name(call) if call else ""),
        is_call=is_call and arguments is None,
        is_result=call is not None and not is_call,
    )
    yield leaf if leaf.is_call or leaf.is_media else _readable(leaf)
    if is_call and arguments is not None:
        yield msgspec.structs.replace(leaf, content=arguments.encode(), mime=Mime.JSON.type, is_call=True)


def _readable(leaf: PromptPage) -> PromptPage:
    """The page with a structured part as the words in it."""
    if leaf.modality is not Modality.STRUCTURED or leaf.content is None or leaf.slot is Slot.TOOLS:
        return leaf
    try:
        words = shown_part(loads(leaf.content))
    except ValueError:
        return leaf
    content = words.encode("utf-8", "replace")
    return msgspec.structs.replace(leaf, modality=Modality.TEXT, content=content, mime=Mime.TEXT.type)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")


# ---- masking


def _masked(session: SpokenSession, mask: Mask, counts: MaskedCounts) -> SpokenSession:
    def hide(text: str) -> str:
        return str(mask.value(text, EVERYWHERE))

    parts = []
    for turn, leaf in session.parts:
        shown = mask.bytes(leaf.content or b"", EVERYWHERE)
        if shown is None:
            counts.unseen += 1
            leaf = msgspec.structs.replace(leaf, modality=Modality.TEXT, mime=Mime.TEXT.type)
        content = UNSEEN if shown is None else shown
        changed = {"content": content, "tool": hide(leaf.tool), "call_id": hide(leaf.call_id)}
        parts.append((turn, msgspec.structs.replace(leaf, **changed)))
    breaks = tuple(one._replace(summary=hide(one.summary)) for one in session.breaks)
    return SpokenSession(hide(session.name), tuple(parts), breaks)


# ---- Markdown


def _speaker(part: tuple[int, PromptPage]) -> tuple[int, int, Role]:
    """The key that parts stand together by: turn, message, and who speaks; a result is a tool's."""
    turn, leaf = part
    return turn, leaf.message, Role.TOOL if leaf.is_result else leaf.role


def _blocks(leaf: PromptPage, calls: dict[str, Asked]) -> Iterator[str]:
    """The blocks of one part; a text that is no result stands as it is, since most are Markdown themselves."""
    text = _text(leaf.content or b"")
    if leaf.slot is Slot.TOOLS:
        return
    if leaf.is_call:
        yield _code(shown_request(_asked(leaf)))
    elif leaf.is_result:
        asked = calls.get(leaf.call_id) or (Asked(leaf.tool, None) if leaf.tool else None)
        if asked is not None:
            yield f"{_code(about(asked))} →"
        yield _fenced(_medium(leaf) or text)
    elif leaf.is_media:
        yield _medium(leaf)
    elif leaf.thought:
        yield from [f"*thought*\n\n{_fenced(text)}"] * bool(text.strip())
    elif (
        leaf.role in (Role.SYSTEM, Role.DEVELOPER)
        or leaf.slot is not Slot.MESSAGES
        or _STRUCTURE.search(_CODE.sub("", text))
    ):
        yield _fenced(text)  # its headings are none of the session's
    elif text.strip():
        yield text.strip("\n")


def _asked(leaf: PromptPage) -> Asked:
    content = leaf.content or b""
    if (found := tool_request(content)) is not None:
        return found
    return Asked(leaf.tool or "tool", _text(content))


def _medium(leaf: PromptPage) -> str:
    return f"[{leaf.modality.word}, {len(leaf.content or b''):,} bytes]" if leaf.modality in MEDIA else ""


def _break(one: Break) -> list[str]:
    pages = f"{one.pages:,} page{'s' * (one.pages != 1)}"
    return ["---", f"*Compaction: {pages} of {one.tokens:,} tokens left the prompt for this summary.*",
            _fenced(one.summary), "---"]  # fmt: skip


def _code(text: str) -> str:
    """A text on one line as code, between more backquotes than it has in a row."""
    ticks = "`" * (_longest(text, 0) + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{pad}{_flat(text)}{pad}{ticks}"


def _fenced(text: str) -> str:
    """A text within a fence longer than any in it."""
    fence = "`" * (_longest(text, 2) + 1)
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def _longest(text: str, least: int) -> int:
    return max((len(run) for run in _TICKS.findall(text)), default=0) if least == 0 else max(least, _longest(text, 0))


def _flat(text: str) -> str:
    return " ".join(text.split())


_TICKS = re.compile("`+")
_CODE = re.compile(r"^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
_STRUCTURE = re.compile(r"^ {0,3}(?:#{1,6}(?:\s|$)|`{3,}|~{3,}|-{3,}\s*$|={3,}\s*$)", re.MULTILINE)
_SAID = f"""SELECT p.turn, p.message, p.page, p.part, p.modality, p.role, p.mime, m.slot, p.cell, p.commitment,
  m.cell, m.commitment, t.call, t.tool, t.name, t.arguments FROM pages p
  JOIN messages m ON m.session = p.session AND m.message = p.message
  LEFT JOIN tools t ON t.session = p.session AND t.page = p.page
  WHERE p.session = ? AND p.page > ? AND p.page <= ? AND p.type <> {int(PageType.SUMMARY)}
  ORDER BY p.page"""
_CELLS = """SELECT page, cell, commitment FROM pages
  WHERE session = ? AND page IN (SELECT value FROM json_each(?))"""
