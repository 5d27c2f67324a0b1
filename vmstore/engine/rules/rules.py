"""The preconditions: named pure predicates, one list, checked before anything is written.

A rule sees the head as it stands before the mutation and answers None or why not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from vmstore.core.mutation import (
    CELL_FIELDS,
    WHOLE,
    Annotate,
    AnyMutation,
    CellRef,
    Compress,
    Create,
    Erase,
    Evict,
    FaultDenied,
    FaultIn,
    Link,
    Mark,
    Message,
    Open,
    Pack,
    Prefetch,
    Reply,
    Revoke,
    Turn,
    Unknown,
    Unlink,
    Update,
)
from vmstore.core.page import LinkKind, Modality, PageType
from vmstore.core.text.token_estimate import TOKENS_IMAGE_MAX
from vmstore.engine.head import GateHead
from vmstore.engine.rules.cell_contents import (
    FILLS,
    OPAQUE,
    PLAIN,
    READ,
    VALUE,
    Contents,
    LiveContents,
    refs_in,
    unfilled,
)
from vmstore.engine.rules.field_types import (
    COUNTS,
    IMPORTANCE_MAX,
    LEVELS,
    LINK_KINDS,
    NUMBER_MAX,
    PAGES,
    WORDS,
    mistyped,
)
from vmstore.engine.system_session import charter_stands_apart


class MutationPlace(msgspec.Struct, gc=False):
    """Where a mutation would stand: which of its commit, the mutation before it, the cells at hand.

    For an `open`, whether its name is taken already. `contents` knows what cells hold, where a rule
    is to look at them.
    """

    nth: int = 0
    before: AnyMutation | None = None
    cells: int = 0
    name_taken: bool = False
    contents: Contents | None = None  # what knows of contents, where they are looked at
    by_hand: LiveContents | None = None  # what knows of the session too, where it is a mutation of somebody's own


ENDS = (Pack, Mark)
_LEFT_OUT = ("status", "policy", "shape")  # words that need not be told: of a page, a session's redaction, a request
TOKENS_AROUND = 16  # that a tokenizer may put around a content
WEIGHED = (Create, Annotate)
ELSEWHERE_MAX = 1 << 40  # bytes, or tokens, of what was never sealed: sums of them fit

Rule = Callable[[GateHead, AnyMutation, MutationPlace], str | None]


def open_comes_first(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A session is opened once, by its first mutation."""
    if isinstance(m, Open) == head.opened:
        return "a session opens once, with its first mutation"
    return None


def name_is_free(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A session's name is its own within a namespace."""
    return "the name is taken by another session" if isinstance(m, Open) and place.name_taken else None


def kind_is_known(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Only kinds of this version are written; unknown ones are read, never made."""
    return "this version cannot write a kind it does not know" if isinstance(m, Unknown) else None


def fields_are_typed(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Each field holds a number, bytes, a cell or a list of those, as its kind says."""
    wrong = mistyped(m)
    return None if wrong is None else f"{wrong}; see specs/mutations.md for what it may be"


def turn_is_next(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Turns are counted without gaps."""
    if isinstance(m, Turn) and m.number != head.turn + 1:
        return f"turn {m.number} cannot follow turn {head.turn}"
    return None


def turn_opens_its_commit(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """The end of a turn is a commit end, so a turn begins a commit."""
    if isinstance(m, Turn) and not (place.nth == 0 or (place.nth == 1 and isinstance(place.before, Open))):
        return "a turn begins a commit"
    return None


def nothing_follows_an_end(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Packs and marks stand on commit ends."""
    if isinstance(place.before, ENDS):
        return f"a {place.before.kind} ends its commit"
    return None


def cells_exist(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A mutation names cells of its own commit, or of an earlier one."""
    cells, named = place.cells, _NAMED.get(type(m))
    for ref in () if named is None else named(m):
        if ref is not None and not (0 <= ref < cells if type(ref) is int else _earlier(ref, head)):
            return f"cell {ref} is neither in this commit nor in an earlier one"
    for _, ref in m.envelopes if isinstance(m, Pack) else ():
        if not (0 <= ref < cells if type(ref) is int else _earlier(ref, head)):
            return f"cell {ref} is neither in this commit nor in an earlier one"
    return None


def _values(fields: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads some fields of a mutation at once."""
    value = attrgetter(*fields)
    return value if len(fields) > 1 else lambda m: (value(m),)


_NAMED = {kind: _values(fields) for kind, fields in CELL_FIELDS.items()}
"""The cells that a mutation of a kind names."""


def _earlier(ref: CellRef, head: GateHead) -> bool:
    """Whether there is such a cell of an earlier commit; those named before were looked at."""
    if ref in head.recent.named:
        return True
    return isinstance(ref, tuple) and 0 < ref[0] <= head.position and 0 <= ref[1] < head.cells(ref[0])


def numbers_fit(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Numbers stay within 63 bits, so that every view can hold them."""
    number = _beyond(msgspec.structs.astuple(m))
    return None if number is None else f"{number} is beyond 63 bits"


def _beyond(fields: tuple[Any, ...]) -> int | None:
    """The first number of a mutation's fields that is too large."""
    for field in fields:
        if isinstance(field, int):
            if field > NUMBER_MAX or field < -NUMBER_MAX:
                return field
        elif isinstance(field, tuple) and (found := _beyond(field)) is not None:
            return found
    return None


def words_are_listed(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """What stands for a word is of its closed vocabulary."""
    for field, words in WORDS.get(type(m), {}).items():
        if getattr(m, field) not in words and not (getattr(m, field) is None and field in _LEFT_OUT):
            return f"{getattr(m, field)} is no {field}"
    return None


def erased_cells_are_its_own(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """What is erased was brought by earlier commits of this very session; what a fork inherits is its parent's."""
    if not isinstance(m, Erase):
        return None
    if not m.cells and not m.upto:
        return "an erasure that names no cell"
    if m.upto and not head.begins < m.upto <= head.position:
        return f"position {m.upto} is none of this session's earlier ones"
    for position, index in m.cells:
        if not (head.begins < position <= head.position and 0 <= index < head.cells(position)):
            return f"cell {(position, index)} was brought by no earlier commit of this session"
    return None


def message_exists(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A page joins a message that is there, or none (0); a pack changes skeletons of messages, each once."""
    if type(m) is Create and m.message and not head.has_message(m.message):
        return f"there is no message at position {m.message}"
    if type(m) is Pack and m.envelopes:
        messages = [message for message, _ in m.envelopes]
        for message in messages:
            if not head.has_message(message):
                return f"there is no message at position {message}"
        if len(set(messages)) != len(messages):
            return "a message is given one skeleton in a pack"
    return None


def page_exists(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A page that is named exists."""
    pages = PAGES.get(type(m))
    for page in pages(m) if pages is not None else ():
        if head.version(page) is None:
            return f"there is no page p{page}"
    return None


def version_is_next(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Versions are counted without gaps; a representation is of the last one."""
    if isinstance(m, Update) and m.version != (head.version(m.page) or 0) + 1:
        return f"version {m.version} cannot follow version {head.version(m.page)} of p{m.page}"
    if isinstance(m, Compress) and m.version != head.version(m.page):
        return f"version {m.version} is not the last of p{m.page}"
    return None


def level_is_reduced(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Compression makes a level from 1 to 3; level 0 stays what it was (law 5)."""
    if isinstance(m, Compress) and m.level not in LEVELS:
        return f"level {m.level} cannot be compressed to; levels are 1, 2 and 3"
    return None


def link_kind_is_listed(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Links are of the closed list of kinds."""
    kinds = [kind for kind, _ in m.links] if isinstance(m, Create) else [m.link] if isinstance(m, Link | Unlink) else ()
    for kind in kinds:
        if kind not in LINK_KINDS:
            return f"{kind} is no kind of link"
    return None


def links_lead_elsewhere(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """No page is linked to itself."""
    return "a page cannot be linked to itself" if isinstance(m, Link | Unlink) and m.source == m.target else None


def results_keep_their_call(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """What a tool answered stays linked to its call: the request is made of both."""
    if isinstance(m, Unlink) and m.link == LinkKind.CAUSED_BY:
        return "a tool's result stays linked to its call"
    return None


def sizes_count_up(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Sizes and tokens are counts."""
    for field in COUNTS.get(type(m), ()):
        if getattr(m, field) < 0:
            return f"{field} is {getattr(m, field)}; sizes and tokens are not negative"
    return None


def importance_is_a_share(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Importance is a share of one, in parts per million."""
    if isinstance(m, WEIGHED) and m.importance is not None and not 0 <= m.importance <= IMPORTANCE_MAX:
        return f"importance {m.importance} is not within 0 and {IMPORTANCE_MAX}"
    return None


def annotation_says_something(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """An annotation changes what is known of its page."""
    if isinstance(m, Annotate) and all(field is None for field in msgspec.structs.astuple(m)[1:]):
        return "an annotation that says nothing"
    return None


def call_is_next(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Calls are counted without gaps."""
    if isinstance(m, Pack) and m.call != head.call + 1:
        return f"call {m.call} cannot follow call {head.call}"
    return None


def reply_answers_last_call(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A reply is to the last call made."""
    if isinstance(m, Reply) and (m.call != head.call or m.call == 0):
        return f"call {m.call} is not the last call ({head.call})"
    if isinstance(m, Message) and m.reply_to is not None and m.reply_to != head.call:
        return f"a message cannot answer call {m.reply_to}; the last is {head.call}"
    return None


def membership_changes(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """What leaves was there, what enters shows a content of its own, each page once."""
    if not isinstance(m, Pack):
        return None
    pages = [*m.left, *(r[0] for r in m.entered)]
    if len(set(pages)) != len(pages):
        return "a page enters or leaves once in a pack"
    for page in m.left:
        if head.residence(page) is None:
            return f"p{page} cannot leave: it was not in the context"
    for page, content, level, _ in m.entered:
        found = head.content(content)
        if found is None or found.page != page or found.level != level:
            return f"position {content} holds no content of p{page} at level {level}"
    return None


def content_is_its_own(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A page is shown by a content of its own, at the level that content has."""
    if not isinstance(m, SHOWING) or (m.level is None and m.content is None):
        return None
    found = None if m.content is None else head.content(m.content)
    if found is None or (found.page, found.level) != (m.page, m.level):
        return f"position {m.content} holds no content of p{m.page} at level {m.level}"
    return None


SHOWING = (FaultIn, Prefetch, Evict)


def reference_came_before(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """What answers a reference, or takes a share back, stands after it."""
    if isinstance(m, FaultIn | FaultDenied | Prefetch) and not 0 < m.reference <= head.position:
        return f"position {m.reference} is none that came before"
    if isinstance(m, Revoke) and not 0 < m.share <= head.position:
        return f"position {m.share} is no share that came before"
    return None


def ranks_are_distinct(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """No two pages share a rank: the order of a context is total."""
    if not isinstance(m, Pack):
        return None
    moved = {r[0] for r in m.entered} | set(m.left)
    new = [r[3] for r in m.entered]
    if len(set(new)) != len(new):
        return "two pages enter at one rank"
    for rank in new:
        at = bisect_left(head.order, rank, key=lambda residence: residence[3])
        if at < len(head.order) and head.order[at][3] == rank and head.order[at][0] not in moved:
            return f"rank {rank} is taken by p{head.order[at][0]}"
    return None


def totals_match(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A pack states the number of pages, their tokens and their root as the fold finds them."""
    if not isinstance(m, Pack):
        return None
    after = head.foresee(m.entered, m.left)
    if (m.leaves, m.tokens, m.root) != after:
        return f"the pack states {m.leaves} pages, {m.tokens} tokens, the fold finds {after.leaves}, {after.tokens}"
    return None


def cells_are_formed(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A cell that a fold or an answer reads holds what its field says, an earlier one too."""
    if place.contents is None:
        return None
    for field, form in READ.get(type(m), ()):
        if getattr(m, field) is not None:
            for ref in refs_in(m, field):
                wrong = place.contents.wrong(ref, form)
                if wrong is not None:
                    return f"{field} must name {form.words}: {wrong}"
    return None


def contents_are_as_stated(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """What somebody writes by hand states the size of its content, tokens it can have, and what it is."""
    by_hand = place.by_hand
    if by_hand is None or not isinstance(m, SIZED):
        return None
    if m.content is None:
        most = max(m.size, m.tokens)
        return f"size or tokens is {most}, and nothing elsewhere has as many" if most > ELSEWHERE_MAX else None
    content = by_hand.content(m.content)
    if content is None:
        return "its content was erased; seal one that is there"
    size = len(content)
    if m.size != size:
        return f"size is {m.size}, and the content has {size} bytes"
    page = m if type(m) is Create else by_hand.page(m.page)  # type: ignore[union-attr]
    form = READABLE.get(page.modality)
    if m.tokens > (max(size, TOKENS_IMAGE_MAX) if form is None else size) + TOKENS_AROUND:
        return f"tokens is {m.tokens}, and no content of {size} bytes has as many"
    if form is None or page.type == PageType.RAW or (form is PLAIN and content.isascii()):
        return None
    wrong = by_hand.wrong(m.content, PLAIN if isinstance(m, Compress) else form)
    return None if wrong is None else f"a {Modality(page.modality).word} page is {form.words}: {wrong}"


def holes_are_fitted(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """What somebody writes by hand fits its hole in a message, shown or not, and a hole stays what it is."""
    if place.by_hand is None or (type(m) is Create and not m.message):
        return None
    if isinstance(m, SIZED) and m.content is not None:
        page = m if isinstance(m, Create) else place.by_hand.page(m.page)
        for kind, part in (place.by_hand.holes(page.message) if page.message else None) or ():
            form = PLAIN if isinstance(m, Compress) else FILLS[kind]
            if part == page.part and form is not OPAQUE and (wrong := place.by_hand.wrong(m.content, form)) is not None:
                return f"part {part} of m{page.message} must be {form.words}: {wrong}"
    for message, ref in m.envelopes if isinstance(m, Pack) else ():
        new = set(place.by_hand.holes_in(ref) or ()) - set(place.by_hand.holes(message) or ())
        if new:
            return f"the skeleton of m{message} gains a hole for part {min(part for _, part in new)}"
    return None


SIZED = (Create, Update, Compress)
READABLE = {int(Modality.TEXT): PLAIN, int(Modality.STRUCTURED): VALUE}


def messages_are_whole(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A message whose pages a pack changes can be told: each hole is filled by what it stands for."""
    if not isinstance(m, Pack) or place.contents is None:
        return None
    for shown in place.contents.touched(head, m):
        wrong = unfilled(shown, place.contents, partial=m.renderer != WHOLE)
        if wrong is not None:
            return wrong
    return None


RULES: tuple[Rule, ...] = (
    kind_is_known,
    fields_are_typed,
    open_comes_first,
    name_is_free,
    charter_stands_apart,
    turn_is_next,
    turn_opens_its_commit,
    nothing_follows_an_end,
    numbers_fit,
    words_are_listed,
    cells_exist,
    erased_cells_are_its_own,
    message_exists,
    page_exists,
    version_is_next,
    level_is_reduced,
    link_kind_is_listed,
    links_lead_elsewhere,
    results_keep_their_call,
    sizes_count_up,
    importance_is_a_share,
    annotation_says_something,
    call_is_next,
    reply_answers_last_call,
    membership_changes,
    content_is_its_own,
    reference_came_before,
    ranks_are_distinct,
    totals_match,
    cells_are_formed,
    contents_are_as_stated,
    holes_are_fitted,
    messages_are_whole,
)
