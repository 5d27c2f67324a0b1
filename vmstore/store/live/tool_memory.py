"""The memory as a tool sees it while it runs: it reads at once, and what it writes is written with its answer, or not.

A page that a tool makes has a name from the beginning and a number once the tool has answered. A tool that fails
leaves nothing: neither page, nor change, nor link.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from vmstore.core.address import page_name, page_position, parse
from vmstore.core.decision import Use
from vmstore.core.mutation import Annotate, Link, Reference
from vmstore.core.page import LinkKind, Mime, Modality, PageType, Role
from vmstore.errors import InputError, RefusedError, UnknownError, VmstoreError
from vmstore.live.messages import page as write_page
from vmstore.namespace.namespace import Namespace
from vmstore.namespace.results import Hits, Page
from vmstore.store.live.edits import link, update
from vmstore.store.live.page_names import PageFinder, titled
from vmstore.store.reads.annotations import share

BYTES_MAX = 16 << 20  # that one call may write
WRITES_MAX = 1_000
TEXT_MAX = 100_000  # of a text, read for what it refers to
REFERENCES_MAX = 50
_REFERENCES = re.compile(r"vm://[\w./@:#=~%-]+|\bp[1-9]\d{0,9}\b")
T = TypeVar("T")


class MemoryPage(msgspec.Struct, frozen=True):
    """A page as a tool gets it: a text, the value of structured data, or the bytes of a file."""

    page_id: str
    content: Any
    modality: str
    importance: float
    tags: list[str]


class ToolHost(Protocol):
    """A live session as its tools use it."""

    _ns: Namespace
    name: str

    def page(self, reference: str | int) -> Page: ...
    def content(self, reference: str | int) -> bytes: ...
    def search(self, query: str, *, limit: int | None) -> Hits: ...
    def look(self, see: Callable[[Any], T]) -> T: ...


class _Made(msgspec.Struct, frozen=True):
    """A page to be made."""

    name: str
    content: bytes
    modality: Modality
    mime: Mime
    mime_name: str | None
    importance: int
    tags: tuple[str, ...]
    parent: str | int | None
    level: int | None
    value: Any


class _Change(msgspec.Struct, frozen=True):
    """A change of a page: `do` makes it, given the number of each page that is named."""

    pages: tuple[str | int, ...]
    do: Callable[[Any, Sequence[int]], object]
    modifies: bool


class Touched(msgspec.Struct, frozen=True):
    """The pages that a tool worked on, by number."""

    read: tuple[int, ...] = ()
    created: tuple[int, ...] = ()
    modified: tuple[int, ...] = ()


class ToolMemory:
    """The memory of the session whose model called a tool; the tool's parameter `ctx`."""

    def __init__(self, session: ToolHost, tool: str, call: str, *, is_asked: bool = True) -> None:
        self._is_asked = is_asked  # whether the tool knows of it: what others write refers to nothing
        self._session = session
        self._tool = tool
        self._call = call
        self._made: dict[str, _Made] = {}
        self._changes: list[_Change] = []
        self._read: dict[str | int, None] = {}
        self._bytes = 0
        self._over = False

    # ---- reads

    def get_page(self, page_id: str | int) -> MemoryPage:
        """A page by its name, number or address; UnknownError names the nearest, ErasedError where it is gone."""
        if (made := self._made.get(str(page_id))) is not None:
            return _shown(made)
        self._here(page_id)
        page = self._session.page(page_id)
        if self._waits(page.page):
            raise RefusedError(
                f"nobody approved {page.page} for a prompt, and what a tool reads comes into one; "
                f"`work.artifacts.approve({page.page!r}, who=…)` says that somebody did",
                code="not-approved",
            )
        content = self._session.content(page_id)
        self._read[page.page] = None
        return MemoryPage(page.page, _value(content, page.modality), page.modality, page.importance, list(page.tags))

    def search_pages(self, query: str, modality: str | None = None, limit: int = 10) -> list[MemoryPage]:
        """The pages that match best, of one modality or of all; logged as a search of the agent's."""
        if modality is not None:
            _modality(modality)
        hits = self._session.search(query, limit=limit if modality is None else None)
        read = [hit.page for hit in hits if not self._waits(hit.page)]
        named = read[: limit if modality is None else 5 * limit]
        wanted = [name for name in named if modality in (None, self._session.page(name).modality)]
        return [self.get_page(name) for name in wanted[:limit]]

    def _waits(self, page: str) -> bool:
        """Whether a page is a file that nobody approved."""
        number = page_position(page) or 0
        waits: bool = self._session.look(lambda runtime: runtime.state.barred.unapproved(number))
        return waits

    # ---- writes, with the answer

    def create_page(
        self,
        content: Any,
        modality: str = "text",
        *,
        name: str | None = None,
        importance: float = 0.5,
        tags: Iterable[str] = (),
        mime: str | None = None,
        parent_page_id: str | int | None = None,
        compression_level: int | None = None,
    ) -> MemoryPage:
        """A page to be made: a text, JSON data, or the bytes of a file with their content type `mime`.

        With `parent_page_id` it stands for that page, as a caption does (`represents`).
        """
        kind = _modality(modality)
        body, known, mime_name = _body(content, kind, mime)
        self._room(len(body))
        titled(name)
        label = name or f"{self._tool}:{self._call}:{len(self._made) + 1}"
        if label in self._made:
            raise InputError(f"this call made a page {label!r:.60} already; give another name", code="not-a-name")
        if parent_page_id is not None:
            self._known(parent_page_id)
        if compression_level not in (None, 1, 2, 3):
            raise InputError(f"compression_level is {compression_level!r:.20}; levels of a form are 1, 2 and 3")
        made = _Made(
            label,
            body,
            kind,
            known,
            mime_name,
            share(importance),
            tuple(tags),
            parent_page_id,
            compression_level,
            content,
        )
        self._made[label] = made
        return _shown(made)

    def update_page(self, page_id: str | int, content: Any) -> MemoryPage:
        """A page to be given another content; refused for what was said in a message, and for what was erased."""
        if (made := self._made.get(str(page_id))) is not None:
            body, *_ = _body(content, made.modality, made.mime_name)
            self._room(len(body))
            self._made[made.name] = changed = msgspec.structs.replace(made, content=body, value=content)
            return _shown(changed)
        before = self.get_page(page_id)
        body, *_ = _body(content, _modality(before.modality), self._session.page(page_id).mime)
        self._room(len(body))
        if self._session.page(page_id).message is not None:
            raise RefusedError(
                f"{before.page_id} was said in a message, and what was said stays; create a page beside it",
                code="said-stays",
            )
        self._changes.append(_Change((page_id,), lambda act, pages: update(act, pages[0], body), True))
        return msgspec.structs.replace(before, content=content)

    def annotate_page(self, page_id: str | int, annotation: str) -> None:
        """A remark on a page, its anchor `note`."""
        if not isinstance(annotation, str) or not annotation.strip():
            raise InputError(f"an annotation says something in words, and {annotation!r:.40} does not")
        self._known(page_id)
        cell = json.dumps({"note": annotation}).encode()
        self._room(len(cell))
        self._changes.append(
            _Change((page_id,), lambda act, pages: act.tell(Annotate(pages[0], anchors=act.cell(cell))), True)
        )

    def link_pages(self, source_id: str | int, target_id: str | int, relation: str) -> None:
        """A link from a page to another: `derives`, `represents`, `has_caption`, `references` and the others."""
        self._known(source_id)
        self._known(target_id)
        if not isinstance(relation, str) or LinkKind.of(relation) is None:
            words = ", ".join(kind.word for kind in LinkKind)
            raise UnknownError(
                f"there is no kind of link {relation!r:.60}; the kinds are {words}", code="no-kind-of-link"
            )
        self._room(0)
        self._changes.append(
            _Change((source_id, target_id), lambda act, pages: link(act, pages[0], pages[1], relation), False)
        )

    # ---- checks

    def _known(self, page: str | int) -> None:
        """Refuses a page that is not there, or of which nothing is left."""
        if str(page) not in self._made:
            self._here(page)
            self._session.content(page)

    def _here(self, page: str | int) -> None:
        if not isinstance(page, str) or not page.startswith("vm://"):
            return
        address = parse(page)
        if address.namespace not in (None, self._session._ns.name) or address.session not in (None, self._session.name):
            raise RefusedError(
                f"{page:.80} is a page of another session or namespace; `vmstore.bring` copies one in",
                code="other-namespace",
            )

    def _room(self, size: int) -> None:
        if self._over:
            raise RefusedError(f"the call of {self._tool!r} is over; its context writes no more", code="tool-over")
        self._bytes += size
        writes = len(self._made) + len(self._changes) + 1
        if self._bytes > BYTES_MAX or writes > WRITES_MAX:
            raise RefusedError(
                f"{self._tool!r} writes {self._bytes:,} bytes in {writes:,} writes; one call "
                f"may write {BYTES_MAX:,} and {WRITES_MAX:,}: write less, or `attach` a file beside the run",
                code="tool-writes-too-much",
            )

    # ---- the end of the call

    def end(self) -> None:
        """Ends the call: its context writes no more."""
        self._over = True

    def drop(self) -> None:
        """Forgets what was to be written: the tool failed."""
        self._made.clear()
        self._changes.clear()

    @property
    def writes(self) -> bool:
        """Whether anything is to be written."""
        return bool(self._made or self._changes)

    def apply(self, act: Any, results: Sequence[int], stated: Any = None) -> Touched:
        """Writes what the tool made and changed, linked to its answer, and what its texts refer to; the pages."""
        finder = PageFinder(self._session._ns.name, self._session.name)
        made: dict[str, int] = {}

        def number(page: str | int) -> int:
            found = made.get(str(page))
            return finder.number(act, page) if found is None else found

        read = [number(page) for page in self._read]
        for page in self._made.values():
            made[page.name] = _write(act, page, [*results[:1], *read], number)
        modified: dict[int, None] = {}
        for change in self._changes:
            pages = [number(page) for page in change.pages]
            change.do(act, pages)
            modified.update(dict.fromkeys(pages[:1]) if change.modifies else {})
        touched = {"read": read, "created": list(made.values()), "modified": list(modified)}
        for name, own in touched.items():
            own += [number(page) for page in getattr(stated, f"pages_{name}", ())]
        for page_number in (*touched["created"], *results) if self._is_asked else ():
            _refer(act, page_number)
        for page_number in touched["read"]:
            _use(act, page_number)
        return Touched(**{name: tuple(dict.fromkeys(own)) for name, own in touched.items()})


def _write(act: Any, made: _Made, sources: Sequence[int], number: Callable[[str | int], int]) -> int:
    links = [(int(LinkKind.DERIVES), source) for source in sources]
    if made.parent is not None:
        parent = number(made.parent)
        links = [(int(LinkKind.REPRESENTS), parent), *(one for one in links if one[1] != parent)]
    return write_page(
        act,
        PageType.ARTIFACT,
        made.content,
        role=Role.TOOL,
        name=made.name,
        modality=made.modality,
        mime=made.mime,
        mime_name=made.mime_name,
        links=links,
        tags=made.tags,
        importance=made.importance,
    )


def _refer(act: Any, page: int) -> None:
    """Links a page to those that its text names, and says that they were used."""
    managed = act.state.pages[page]
    if managed.modality not in (Modality.TEXT, Modality.STRUCTURED) or managed.forms[0] is None:
        return
    text = act.forms.of(managed.forms[0].position)[:TEXT_MAX].decode("utf-8", "replace")
    found: dict[int, None] = {}
    for word in _REFERENCES.findall(text):
        target = named(act, word)
        if target is not None and target != page and len(found) < REFERENCES_MAX:
            found[target] = None
    for target in found:
        act.tell(Link(page, target, int(LinkKind.REFERENCES)))
        _use(act, target)


def named(act: Any, word: str) -> int | None:
    """The page of the session that a word of a text names: `p17`, or an address of this session."""
    try:
        address = parse(word.rstrip(".:"))
    except VmstoreError:
        return None
    if word.startswith("vm://") and address.session is None:
        return None
    number = page_position(address.page or "") if address.page else None
    found: int | None = act.spoken.number(page_name(number)) if number else None
    return found


def _use(act: Any, page: int) -> None:
    """Says that a tool used a page that is in the prompt, at the level it has, so that nothing is decided of it."""
    here = act.state.here.get(page)
    if here is not None and page not in act.state.barred:
        act.tell(Reference(page, Use.TOOL, act.state.call, here.level))


def _modality(word: str) -> Modality:
    known = Modality.of(word) if isinstance(word, str) else None
    if known is None:
        words = ", ".join(one.word for one in Modality)
        raise InputError(f"{word!r:.40} is no modality; there are {words}", code="no-modality")
    return Modality(known)


def _body(content: Any, modality: Modality, mime: str | None) -> tuple[bytes, Mime, str | None]:
    """The bytes of a content, and its content type."""
    if modality is Modality.STRUCTURED and not isinstance(content, bytes):
        try:
            return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8"), Mime.JSON, None
        except (TypeError, ValueError, RecursionError) as error:
            raise InputError(f"the content of a structured page is no JSON: {error}", code="not-json") from None
    body = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if not isinstance(body, bytes) or not body:
        raise InputError(f"a page holds a text, JSON data or bytes, not {content!r:.40}", code="not-a-text")
    if modality is Modality.TEXT and isinstance(content, bytes):
        try:
            content.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("the content of a text page is no text in UTF-8; say its modality") from None
    default = {Modality.TEXT: "text/plain", Modality.STRUCTURED: "application/json"}.get(modality)
    name = mime or default or "application/octet-stream"
    known = next((one for one in Mime if one.type == name), Mime.OTHER)
    return body, known, name if known is Mime.OTHER else None


def _value(content: bytes, modality: str) -> Any:
    if modality == "text":
        return content.decode("utf-8", "replace")
    if modality == "structured":
        try:
            return json.loads(content)
        except ValueError:
            return content.decode("utf-8", "replace")
    return content


def _shown(made: _Made) -> MemoryPage:
    return MemoryPage(made.name, made.value, made.modality.word, made.importance / 1_000_000, list(made.tags))
