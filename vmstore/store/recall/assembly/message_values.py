"""The messages of a conversation as values in a provider's shape: as they were recorded, or as a live session sends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from vmstore.core.erasure import gone
from vmstore.core.page import Tier
from vmstore.core.text.skeleton import fill, loads
from vmstore.live.pack import SHAPES
from vmstore.live.runtime import Runtime
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import Branch
from vmstore.views.projectors.calls import last_call
from vmstore.views.reads.context import envelopes_at
from vmstore.views.reads.spoken_turns import SpokenMessage
from vmstore.views.stored_cells import read_cells
from vmstore.vm.assembly.history import chains
from vmstore.vm.protocol.dialects.dialect import BEFORE
from vmstore.vm.protocol.messages import messages
from vmstore.vm.protocol.prompt_page import PromptPage

CONVERSATIONS = ("messages", "contents", "input")
NAMES = {shape: name for name, shape in reversed(SHAPES.items())}
BLOCKS = ("text", "tool_use", "tool_result", "thinking", "image")


def recorded_values(
    ns: Namespace, lane: Branch, position: int, spoken: Sequence[SpokenMessage]
) -> dict[int, list[Any]]:
    """Each message as it was recorded, what was erased said in its place; a damaged one is left out."""
    envelopes = envelopes_at(lane, [message.message for message in spoken], position)
    contents = _contents(lane, position, [page for message in spoken for page in message.pages])
    sealed = {cell: commitment for cell, commitment in contents.values() if cell is not None}
    cells = read_cells(ns.log, lane.db, {**sealed, **dict(envelopes.values())}, gone)
    values: dict[int, list[Any]] = {}
    for message in spoken:
        sealed_in = ((part, contents[page][0]) for part, page in message.parts)
        parts = {part: b"" if cell is None else cells[cell] for part, cell in sealed_in}
        try:
            values[message.message] = [fill(loads(cells[envelopes[message.message].cell]), parts)]
        except (LookupError, TypeError, ValueError):
            values[message.message] = []
    return values


def valued(runtime: Runtime, spoken: Sequence[SpokenMessage]) -> tuple[str, dict[int, list[Any]]]:
    """The shape of a live session, and each chain of messages in it."""
    settings = runtime.state.settings
    shape = (settings.shape if settings is not None else None) or "chat"
    return shape, live_values(runtime, shape, spoken)


def live_values(runtime: Runtime, shape: str, spoken: Sequence[SpokenMessage]) -> dict[int, list[Any]]:
    """Each chain of messages as a live session sends it, under its first message; thoughts and what left are out."""
    pages = runtime.leaves()
    state = runtime.state
    leaves: list[list[PromptPage]] = []
    for message in spoken:
        known = [state.pages[page] for page in message.pages if page in state.pages and page not in state.barred]
        leaves.append([pages.of(managed, 0, Tier.L0) for managed in known])
    asked = [{"tool_calls": [{"id": leaf.call_id} for leaf in some if leaf.is_call]} for some in leaves]
    answered = [
        {"content": [{"type": "tool_result", "tool_use_id": leaf.call_id} for leaf in some if leaf.is_result]}
        for some in leaves
    ]
    values: dict[int, list[Any]] = {message.message: [] for message in spoken}
    for chain in chains([{**calls, **results} for calls, results in zip(asked, answered, strict=True)]):
        of = [leaf for place in chain for leaf in leaves[place]]
        request = messages(of, shape=shape).request
        written = next(request[key] for key in CONVERSATIONS if key in request)
        values[spoken[chain[0]].message] = [value for value in written if BEFORE not in json.dumps(value)]
    return values


def shape_of(lane: Branch, position: int, values: Sequence[Any]) -> str:
    """The shape of a recorded conversation: that of its last call, or the one its messages are written in."""
    call = last_call(lane, position)
    if call is not None and call.shape is not None:
        return next(name for shape, name in NAMES.items() if int(shape) == call.shape)
    for value in values:
        if isinstance(value, dict) and "parts" in value:
            return "gemini"
        content = value.get("content") if isinstance(value, dict) else None
        for block in content if isinstance(content, list) else ():
            if isinstance(block, dict) and block.get("type") in BLOCKS:
                return "anthropic"
    return "chat"


def _contents(lane: Branch, position: int, pages: Sequence[int]) -> dict[int, tuple[int | None, bytes | None]]:
    """The cell of each page's full content at a position."""
    last: dict[int, tuple[int, int | None, bytes | None]] = {}
    listed = json.dumps(sorted(pages))
    for stretch in lane.upto(position):
        args = (stretch.session, listed, stretch.low, stretch.high)
        for page, at, cell, commitment in lane.db.execute(_VERSIONS, args):
            if page not in last or at >= last[page][0]:
                last[page] = at, cell, commitment
    return {page: (cell, commitment) for page, (_, cell, commitment) in last.items()}


_VERSIONS = """SELECT page, position, cell, commitment FROM versions
  WHERE session = ? AND page IN (SELECT value FROM json_each(?)) AND position > ? AND position <= ? AND level = 0"""
