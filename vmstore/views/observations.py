"""Observations of a session: the calls of tools between two positions, what they gave and why."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from vmstore.core.address import page_name
from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.page import Modality, PageType
from vmstore.log.port import Log
from vmstore.views.branch import Branch
from vmstore.views.projectors.pages import TYPED
from vmstore.views.reads.tools import AnsweredCall, answered_calls
from vmstore.views.stored_cells import read_cells
from vmstore.work.observation import Observation, WrittenForm, compressed, tokens

FORMS_BY = "observations@1"
"""The actor of the pages of forms that a model wrote."""


def observed(log: Log, lane: Branch, name: str, after: int, position: int) -> list[Observation]:
    """The observations whose answer came after a position, up to another, in order; of what was erased none."""
    calls = answered_calls(lane, log, after, position)
    reasons = _reasons(log, lane, [call.call for call in calls])
    forms = _forms(log, lane, position) if calls else {}
    seen = [_observation(name, call, reasons.get(call.call, "")) for call in calls]
    return [one._replace(written=forms.get(one.page)) for one in seen] if forms else seen


def saved(log: Log, lane: Branch, name: str, after: int, position: int) -> tuple[int, int] | None:
    """The tokens of the observations between two positions, and of their shorter forms; None of none."""
    forms = [compressed(one) for one in observed(log, lane, name, after, position)]
    if not forms:
        return None
    return sum(form.original_tokens for form in forms), sum(form.compressed_tokens for form in forms)


def _observation(session: str, call: AnsweredCall, reasoning: str) -> Observation:
    asked = len(json.dumps(call.arguments, ensure_ascii=False, default=str)) + len(reasoning)
    return Observation(
        session,
        page_name(call.call),
        page_name(call.result),
        call.turn,
        call.tool,
        call.arguments,
        call.answer,
        call.failed,
        reasoning,
        call.tokens + tokens("x" * asked),
    )


def _forms(log: Log, lane: Branch, position: int) -> dict[str, WrittenForm]:
    """The forms that a model wrote by a position, by the page of the call; of one written twice the last."""
    forms: dict[str, WrittenForm] = {}
    for stretch in reversed(lane.upto(position)):
        cells = dict(lane.db.execute(_WRITTEN, (stretch.session, stretch.low, stretch.high, FORMS_BY)))
        contents = read_cells(log, lane.db, cells, gone) if cells else {}
        for content in contents.values():
            with suppress(msgspec.MsgspecError):  # erased, or somebody gave the page another content
                form = msgspec.json.decode(b"" if isinstance(content, ErasedContent) else content, type=WrittenForm)
                forms[form.observation] = form
    return forms


def _reasons(log: Log, lane: Branch, calls: Sequence[int]) -> dict[int, str]:
    """The reason of each call: what its message says before it, thoughts too."""
    rows: list[Any] = list(lane.rows(_BESIDE, calls))
    contents = read_cells(log, lane.db, {cell: sealed for _, cell, sealed in rows}, gone)
    reasons: dict[int, list[str]] = {}
    for call, cell, _ in rows:
        if not isinstance(contents[cell], ErasedContent):
            reasons.setdefault(call, []).append(contents[cell].decode("utf-8", "replace").strip())
    return {call: "\n".join(texts) for call, texts in reasons.items()}


_WRITTEN = f"""SELECT cell, commitment FROM pages INDEXED BY pages_type WHERE session = ? AND page > ? AND page <= ?
  AND {TYPED} AND type = {int(PageType.SUMMARY)} AND cell IS NOT NULL AND json_extract(labels, '$.actor') = ?
 ORDER BY page"""
_BESIDE = f"""SELECT c.page, p.cell, p.commitment FROM pages c CROSS JOIN pages p ON p.session = c.session
  AND p.message = c.message AND p.page < c.page WHERE c.session = ? AND c.page IN (SELECT value FROM json_each(?))
  AND c.message AND p.modality = {int(Modality.TEXT)} AND p.cell IS NOT NULL ORDER BY p.page"""
