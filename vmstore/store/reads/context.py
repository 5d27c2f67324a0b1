"""The context at a call as an answer: its pages, its messages, its request, its text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from vmstore.core.address import page_name
from vmstore.core.erasure import ErasedContent, gone
from vmstore.core.mutation_kind import LIVE, PARTIAL
from vmstore.core.page import Fidelity, Method, Mime, Modality, PageType, Role, Slot
from vmstore.core.text.image_size import size_of
from vmstore.core.text.json_text import strict
from vmstore.core.text.skeleton import fill, loads, pruned
from vmstore.errors import CorruptError, ErasedError, UnknownError
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Basis, ContextPage
from vmstore.views.branch import Branch
from vmstore.views.projectors.calls import CallRow
from vmstore.views.projectors.decisions import holders
from vmstore.views.reads.context import ShownPage, check_root, envelopes_at, shown_at
from vmstore.views.reads.page_lines import lines_of
from vmstore.views.stored_cells import Instead, read_cells

if TYPE_CHECKING:
    from vmstore.vm.protocol.prompt_page import PromptPage


class Context:
    """The context of one call, checked against the root its pack recorded.

    `basis` says which call; `fidelity` whether the request was recorded or rebuilt; `tokens` is
    estimated, `tokens_reported` the provider's count; `factor` what estimates were corrected by.
    """

    def __init__(self, namespace: Namespace, lane: Branch, session: str, call: CallRow) -> None:
        self._ns = namespace
        self._lane = lane
        self._log = namespace.log
        self._call = call
        self._shown: list[ShownPage] = shown_at(lane, call)
        self._checked = False
        self.basis = Basis(session, call.position, call.turn, call.call)
        self.fidelity = Fidelity(call.fidelity).word
        self.tokens = call.sent
        self.tokens_reported = call.tokens_in
        self.factor = call.factor_ppm / 1_000_000
        self.model = call.model
        self.root = call.root

    @property
    def pages(self) -> list[ContextPage]:
        """The pages the model saw, in order."""
        with self._ns.views_lock:
            self._ns.check()
            since = _moments(self._lane, {shown.since for shown in self._shown})
            holds = holders(self._lane, self.basis.position, self.page_ids)
        return [
            _page(order, shown, *since[shown.since], pinned=shown.page in holds)
            for order, shown in enumerate(self._shown, 1)
        ]

    @property
    def page_ids(self) -> list[int]:
        """The pages by position, in order."""
        return [shown.page for shown in self._shown]

    @property
    def shown(self) -> Sequence[ShownPage]:
        """The rows behind the pages."""
        return self._shown

    def contents(self) -> dict[str, bytes]:
        """The exact bytes each page showed; opaque pages are left out, erased ones have a placeholder."""
        cells = self._read(self._sealed(), gone)
        return {page_name(s.page): cells[s.cell] for s in self._shown if s.cell is not None}

    def lines(self) -> dict[str, str]:
        """The line that each page is read by, of what it showed; opaque pages are left out."""
        cells = self._read(self._sealed(), gone)
        with self._ns.views_lock:
            self._ns.check()
            shown = {s.page: cells[s.cell] for s in self._shown if s.cell is not None}
            return {page_name(page): line for page, line in lines_of(self._lane, self._log, shown).items()}

    def messages(self) -> list[Any]:
        """The chat messages of the request, in order; system text and tools that stood beside them left out.

        What was erased says so in its place.
        """
        if self._call.renderer == LIVE:
            from vmstore.store.reads.sent_request import conversation_of, sent

            return conversation_of(sent(self._ns, self._lane, self._call, marked=True))
        return [value for slot, value in self._values() if slot is Slot.MESSAGES]

    def request(self) -> dict[str, Any]:
        """The request, equal in every field to what was sent; raises UnknownError where no source held it.

        Raises ErasedError where anything of it was erased; its messages can be asked for.
        """
        return self._both()[0]

    def _both(self) -> tuple[dict[str, Any], list[Any]]:
        """The request and its messages, made at once: they hold the same values. Raises what `request` does."""
        if self.fidelity != Fidelity.RECORDED.word:
            raise UnknownError(
                f"call {self.basis.call} is derived: its request was not in the source; ask for its messages",
                code="request-not-logged",
            )
        if self._call.renderer == LIVE:
            from vmstore.store.reads.sent_request import conversation_of, sent

            body = sent(self._ns, self._lane, self._call)
            return body, conversation_of(body)
        if self._call.shape is None:
            raise UnknownError(
                f"call {self.basis.call} is recorded by its messages alone; its source does not hold the "
                "request's other fields, so ask for its messages"
            )
        from vmstore.providers import Shape, give_request

        try:
            if self._call.rest is None:
                raise ValueError("its other fields were never recorded")
            rest = self._read({self._call.rest: self._call.rest_commitment})[self._call.rest]
            values = self._values(None)
            messages = [value for slot, value in values if slot is Slot.MESSAGES]
            return give_request(Shape(self._call.shape), rest, values), messages
        except (LookupError, TypeError, ValueError) as error:  # as an earlier version let it in
            raise _damaged(f"the request of call {self._call.call}", error) from error

    def _request_or_reason(self) -> dict[str, Any]:
        """The request, or why it cannot be had whole any more."""
        try:
            found = self.request()
            if self._call.rest is not None:
                strict(self._read({self._call.rest: self._call.rest_commitment})[self._call.rest])
            return found
        except ValueError as error:
            return {"damaged": f"it cannot be shown as JSON: {error}"}
        except ErasedError as error:
            return {"erased": str(error)}
        except CorruptError as error:
            return {"damaged": str(error)}

    def _values(self, instead: Instead | None = gone) -> list[tuple[Slot, Any]]:
        groups: dict[int, list[ShownPage]] = {}
        for shown in self._shown:
            if shown.message:
                groups.setdefault(shown.message, []).append(shown)
        with self._ns.views_lock:
            self._ns.check()
            envelopes = envelopes_at(self._lane, groups, self.basis.position)
            slots = {row[0]: (Slot(row[1]), Role(row[2])) for row in self._lane.rows(_SLOTS, groups)}
        cells = self._read({**self._sealed(), **dict(envelopes.values())}, instead)
        values: list[tuple[Slot, Any]] = []
        for message, shown_parts in groups.items():
            (slot, role), envelope = slots[message], cells[envelopes[message].cell]
            if isinstance(envelope, ErasedContent):
                values.append((slot, {"role": role.word, "content": envelope.decode()}))
                continue
            try:
                values.append((slot, self._message(envelope, shown_parts, cells)))
            except (LookupError, TypeError, ValueError) as error:  # as an earlier version let it in
                if instead is None:
                    raise _damaged(f"message m{message}", error) from error
                values.append((slot, {"role": role.word, "content": f"[damaged: {error}; run `vmstore verify`]"}))
        return values

    def _message(self, envelope: bytes, parts: Sequence[ShownPage], cells: dict[int, bytes]) -> Any:
        """A message from its skeleton and the pages that are shown of it."""
        skeleton = loads(envelope)
        if self._call.renderer == PARTIAL:
            by_part = {s.part: cells[s.cell] if s.cell is not None else b"" for s in parts}
            return fill(pruned(skeleton, by_part, {s.part for s in parts if s.level}), by_part)
        return fill(skeleton, [cells[s.cell] if s.cell is not None else b"" for s in parts])

    def _sealed(self) -> dict[int, bytes | None]:
        """The cells of the pages, once these give the root that the pack stated."""
        with self._ns.views_lock:
            self._ns.check()
            if not self._checked:
                check_root(self._lane, self._call, self._shown)
                self._checked = True
        return {s.cell: s.commitment for s in self._shown if s.cell is not None}

    def _read(self, sealed: dict[int, bytes | None], instead: Instead | None = None) -> dict[int, bytes]:
        """The bytes of cells; other callers of this handle wait."""
        with self._ns.views_lock:
            self._ns.check()
            return read_cells(self._log, self._lane.db, sealed, instead)

    def text(self) -> str:
        """The context as VM:CONTEXT text, one line a page; of a live session as its packs said it."""
        from vmstore.vm.protocol.context import context_text

        contents = self.contents()
        names, words = self._names(), self._words()
        return context_text(
            [
                _leaf(s, names.get(s.page), contents.get(page_name(s.page)), words.get((s.page, s.version), {}))
                for s in self._shown
            ]
        )

    def _words(self) -> dict[tuple[int, int], dict[int, bytes]]:
        """The words for pictures, sounds and films up to the call: forms that are text, by page and version."""
        media = json.dumps([shown.page for shown in self._shown if shown.modality in _MEDIA])
        found: dict[tuple[int, int], dict[int, Any]] = {}
        cells: dict[int, bytes | None] = {}
        with self._ns.views_lock:
            self._ns.check()
            for stretch in reversed(self._lane.upto(self.basis.position)):
                args = (media, stretch.session, stretch.high)
                for page, version, level, method, cell, commitment in self._lane.db.execute(_FORMS, args):
                    if method != Method.THUMBNAIL:
                        found.setdefault((page, version), {})[level] = cell
                        cells[cell] = commitment
        contents = self._read(cells, gone)
        return {which: {at: contents[cell] for at, cell in forms.items()} for which, forms in found.items()}

    def _names(self) -> dict[int, str]:
        """Names of live pages at the call: their own while they were the last of that name."""
        if self._call.renderer not in (PARTIAL, LIVE):
            return {}
        named: dict[str, int] = {}
        with self._ns.views_lock:
            for stretch in reversed(self._lane.upto(self.basis.position)):
                named.update(self._lane.db.execute(_NAMED, (stretch.session, stretch.high)))
        return {page: name for name, page in named.items()}

    def to_dict(self, *, messages: bool = False, render: bool = False) -> dict[str, Any]:
        """The answer as plain values, in the shape of `vmstore context --json`."""
        found: dict[str, Any] = {
            "basis": to_builtins(self.basis),
            "fidelity": self.fidelity,
            "tokens": self.tokens,
            "tokens_reported": self.tokens_reported,
            "pages": [to_builtins(page) for page in self.pages],
        }
        if messages:
            found["messages"] = self.messages()
            if self.fidelity == Fidelity.RECORDED.word and self._call.shape is not None:
                found["request"] = self._request_or_reason()
        if render:
            found["text"] = self.text()
        return found


def _damaged(what: str, error: Exception) -> CorruptError:
    return CorruptError(f"{what} cannot be rebuilt ({error}); ask for the messages, and run `vmstore verify`")


def _page(order: int, shown: ShownPage, turn: int, call: int, *, pinned: bool) -> ContextPage:
    return ContextPage(
        order=order,
        page=page_name(shown.page),
        message=f"m{shown.message}" if shown.message else None,
        role=Role(shown.role).word,
        type=PageType(shown.type).word,
        level=shown.level,
        tokens=shown.tokens,
        pinned=pinned,
        since_turn=turn,
        since_call=call,
    )


def _moments(lane: Branch, positions: set[int]) -> dict[int, tuple[int, int]]:
    """Turn and call of packs by position."""
    return {row[0]: (row[1], row[2]) for row in lane.rows(_MOMENTS, positions)}


def _leaf(shown: ShownPage, name: str | None, content: bytes | None, forms: dict[int, bytes]) -> PromptPage:
    """A page as the protocol shows it; `forms` are those of a medium that are text, by level."""
    from vmstore.vm.protocol.prompt_page import PageForm, PromptPage

    is_picture = shown.modality == Modality.IMAGE and content is not None
    is_thumbnail = is_picture and shown.level > 0 and shown.level not in forms
    width, height = (size_of(content) if is_picture and not shown.level and content is not None else None) or (0, 0)
    return PromptPage(
        name=name or page_name(shown.page),
        type=PageType(shown.type),
        modality=Modality(shown.modality),
        role=Role(shown.role),
        level=shown.level,
        tokens=shown.tokens,
        content=content,
        mime=Mime.JPEG.type if is_thumbnail else Mime(shown.mime).type if not shown.level else Mime.TEXT.type,
        others=tuple(PageForm(level=at, tokens=0, content=one) for at, one in forms.items() if at != shown.level),
        width=width,
        height=height,
    )


_SLOTS = "SELECT message, slot, role FROM messages WHERE session = ? AND message IN (SELECT value FROM json_each(?))"
_MOMENTS = """SELECT position, turn, call FROM calls INDEXED BY calls_position
  WHERE session = ? AND position IN (SELECT value FROM json_each(?))"""
_FORMS = """SELECT c.page, c.version, c.level, c.method, c.cell, c.commitment FROM json_each(?) one
  JOIN changes c ON c.session = ? AND c.page = one.value AND c.position <= ? AND c.level > 0 AND c.cell IS NOT NULL
  ORDER BY c.position"""
_MEDIA = (Modality.IMAGE, Modality.AUDIO, Modality.VIDEO)
_NAMED = """SELECT hint, page FROM pages WHERE session = ? AND page <= ? AND message = 0 AND hint IS NOT NULL
  ORDER BY page"""
