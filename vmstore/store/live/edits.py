"""Manual edits of a live session's pages: their content, links and validity."""

from __future__ import annotations

import json
from collections.abc import Sequence

from vmstore.core.address import page_name
from vmstore.core.draft import Draft, Part
from vmstore.core.mutation import Delete, Flush, Link, Unlink, Unpin
from vmstore.core.page import LinkKind, Modality, PageType, Role
from vmstore.errors import InputError, RefusedError, UnknownError
from vmstore.live import messages
from vmstore.live.page_moves import rewrite
from vmstore.live.rewind import HOLDERS
from vmstore.live.runtime import Act
from vmstore.vm.kernel.managed_page import ManagedPage

WORDS = (Modality.TEXT, Modality.STRUCTURED)


def update(act: Act, number: int, content: str | bytes) -> int:
    """Gives a page another content, as a version; the same again is not logged. The version it has then."""
    managed = _own(act, number)
    if isinstance(content, str):
        content = content.encode("utf-8", "surrogatepass")
    if not isinstance(content, bytes) or (not content.strip() and managed.modality in WORDS):
        raise InputError(f"{page_name(number)} is to say {content!r:.40}; pass a text, or the bytes of a file")
    if managed.modality in WORDS:
        _readable(managed, content)
    part = Part(content, managed.modality, managed.mime, managed.type)
    (part,) = messages.hidden(act, Draft(Role(managed.role), b"", (part,))).parts
    form = managed.forms[0]
    if form is None or act.forms.of(form.position) != part.content:
        rewrite(act, number, part.content)
    return managed.version


def flush(act: Act, numbers: Sequence[int]) -> list[int]:
    """Says that pages are up to date with what they were made from, as that stands now."""
    for number in numbers:
        act.tell(Flush(number))
    return list(numbers)


def link(
    act: Act, source: int, target: int, kind: str, valid_from: int | None = None, valid_to: int | None = None
) -> None:
    """Says how a page relates to another."""
    known = _kind(kind)
    if source == target:
        raise InputError(f"{page_name(source)} cannot be linked to itself; name two pages", code="link-to-itself")
    if valid_from is not None and valid_to is not None and valid_from > valid_to:
        raise InputError(f"a validity from {valid_from} to {valid_to} ends before it begins; swap the two")
    act.tell(Link(source, target, int(known), valid_from, valid_to))


def unlink(act: Act, source: int, target: int, kind: str, *, linked: bool) -> None:
    """Ends every link of a kind from a page to another; they are `linked` now."""
    known = _kind(kind)
    if not linked:
        raise InputError(
            f"{page_name(source)} has no link {known.word} to {page_name(target)}, so there is nothing to end; "
            "`sources` lists those it has",
            code="no-link",
        )
    act.tell(Unlink(source, target, int(known)))


def _kind(kind: str) -> LinkKind:
    named = LinkKind.of(kind) if isinstance(kind, str) else None
    if named is None:
        words = ", ".join(one.word for one in LinkKind)
        raise UnknownError(f"there is no kind of link {kind!r:.60}; the kinds are {words}", code="no-kind-of-link")
    known = LinkKind(named)
    if known is LinkKind.CAUSED_BY:
        raise InputError(
            "caused_by joins a tool's result to its call, which `tool` does; give another kind", code="link-not-by-hand"
        )
    return known


def delete(act: Act, number: int) -> None:
    """Takes a page out of the prompt, of search and of what may be asked for, from here on; the log keeps it."""
    managed = act.state.pages[number]
    if managed.type is PageType.VALUE:
        raise InputError(
            f"{page_name(number)} is a value; keep None, or another one, under its name", code="is-a-value"
        )
    if number in act.state.barred.retracted:
        raise InputError(
            f"{page_name(number)} holds no more already; there is nothing to delete", code="deleted-already"
        )
    for holder in HOLDERS:
        if managed.holders >> holder & 1:
            act.tell(Unpin(number, holder))
    act.tell(Delete(number))


def _own(act: Act, number: int) -> ManagedPage:
    """A page whose content may change: one that no message holds."""
    managed = act.state.pages[number]
    if managed.type is PageType.VALUE:
        raise InputError(f"{page_name(number)} is a value; keep another one under its name", code="is-a-value")
    if managed.message:
        raise RefusedError(
            f"{page_name(number)} was said in a message, and what was said stays: go back to before it with `rewind`, "
            "state a `claim` that corrects it, or open the session with another `system`",
            code="said-stays",
        )
    return managed


def _readable(managed: ManagedPage, content: bytes) -> None:
    try:
        text = content.decode("utf-8", "surrogatepass")
        if managed.modality is Modality.STRUCTURED:
            json.loads(text)
    except ValueError:
        what = "JSON" if managed.modality is Modality.STRUCTURED else "text in UTF-8"
        raise InputError(
            f"{page_name(managed.page)} holds {what}, and what is to stand in it is none", code="not-json"
        ) from None
