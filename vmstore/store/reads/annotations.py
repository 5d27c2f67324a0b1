"""Annotations of a page, checked as a caller gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from vmstore.core.clock import within
from vmstore.core.mutation import Annotate, CellRef
from vmstore.core.page import Standing
from vmstore.engine.batch import Batch
from vmstore.errors import InputError, UnknownError

TAG_CHARS_MAX = 200
PPM = 1_000_000


class PageAnnotation(msgspec.Struct, frozen=True):
    """The annotation of a page; what is None or empty stays as it was."""

    importance: float | None = None
    status: str | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    tags: Iterable[str] = ()
    untags: Iterable[str] = ()
    anchors: Mapping[str, str | None] | None = None


def checked(annotation_given: PageAnnotation) -> PageAnnotation:
    """Checks an annotation; InputError or UnknownError where a page cannot have it."""
    if annotation_given.importance is not None:
        share(annotation_given.importance)
    if annotation_given.status is not None and (
        not isinstance(annotation_given.status, str) or Standing.of(annotation_given.status) is None
    ):
        words = ", ".join(standing.word for standing in Standing)
        raise UnknownError(f"there is no status {annotation_given.status!r}; there are {words}", code="no-status")
    begins, ends = within("valid_from", annotation_given.valid_from), within("valid_to", annotation_given.valid_to)
    if begins is not None and ends is not None and begins > ends:
        raise InputError(
            f"a validity from {begins} to {ends} ends before it begins; swap the two", code="ends-before-it-begins"
        )
    anchors = dict(annotation_given.anchors or {})
    for text in (*anchors, *(value for value in anchors.values() if value is not None)):
        _text("an anchor", text)
    checked_annotation = msgspec.structs.replace(
        annotation_given, tags=_tags(annotation_given.tags), untags=_tags(annotation_given.untags), anchors=anchors
    )
    if checked_annotation == PageAnnotation(tags=[], untags=[], anchors={}):
        raise InputError(
            "nothing is given about the page; give an importance, a status, a validity, a tag or an anchor",
            code="nothing-given",
        )
    return checked_annotation


def annotation(batch: Batch, page: int, note: PageAnnotation) -> Annotate:
    """A mutation that says of a page what was checked."""
    return Annotate(
        page=page,
        importance=None if note.importance is None else share(note.importance),
        status=None if note.status is None else int(Standing[note.status.upper()]),
        valid_from=note.valid_from,
        valid_to=note.valid_to,
        tags=_sealed(batch, note.tags),
        untags=_sealed(batch, note.untags),
        anchors=_sealed(batch, note.anchors),
    )


def share(importance: float) -> int:
    """An importance from 0 to 1 in parts per million."""
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise InputError(f"importance {importance!r:.40} is no share from 0 to 1", code="not-a-share")
    return round(importance * PPM)


def _sealed(batch: Batch, value: Any) -> CellRef | None:
    return batch.cell(msgspec.json.encode(value)) if value else None


def _tags(tags: Iterable[str]) -> list[str]:
    if isinstance(tags, str):
        raise InputError(f"{tags!r:.40} is one text; give a list of tags", code="not-a-list")
    return sorted({tag_text(tag) for tag in tags})


def tag_text(tag: str) -> str:
    """A tag as a page can have it; InputError where it cannot."""
    return _text("a tag", tag)


def _text(what: str, text: Any) -> str:
    if not isinstance(text, str) or not 0 < len(text) <= TAG_CHARS_MAX or not text.isprintable():
        raise InputError(
            f"{text!r:.40} cannot be {what}: a text of 1 to {TAG_CHARS_MAX} printable characters can", code="not-a-tag"
        )
    return text
