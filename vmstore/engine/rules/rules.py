"""The preconditions: named rules in one list, checked before anything is written.

A rule says which kinds it can refuse. Its check sees the head as it stands before the mutation and
answers None or why not; where it looks at fields that differ from kind to kind, it is made for each.
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
    Embed,
    Erase,
    Evict,
    Fact,
    FaultDenied,
    FaultIn,
    Link,
    Mark,
    Message,
    Open,
    Pack,
    Prefetch,
    Promote,
    Reply,
    Revoke,
    Turn,
    Unknown,
    Unlink,
    Update,
)
from vmstore.core.page import LinkKind, Modality, PageType
from vmstore.core.text.token_estimate import TOKENS_IMAGE_MAX
from vmstore.core.vectors import DIMENSION_MAX
from vmstore.engine import system_session
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
    vectors_form,
)
from vmstore.engine.rules.field_types import (
    COUNTS,
    IMPORTANCE_MAX,
    LEVELS,
    LINK_KINDS,
    NUMBER_MAX,
    PAGES,
    SHARES,
    WORDS,
    mistyped,
)
from vmstore.engine.unprojected_tail import OPAQUE as NEVER_HERE


class MutationPlace(msgspec.Struct, gc=False):
    """The place of a mutation: the mutation before it in its commit, and the cells at hand.

    For an `open`, whether its name is taken already. `contents` knows what cells hold, where a rule
    is to look at them.
    """

    before: AnyMutation | None = None
    cells: int = 0
    name_taken: bool = False
    contents: Contents | None = None  # what knows of contents, where they are looked at
    by_hand: LiveContents | None = None  # what knows of the session too, where it is a mutation of somebody's own


ENDS = (Pack, Mark)
_LEFT_OUT = (
    "status",
    "policy",
    "shape",
)  # enumerations that may be left out: of a page, a session's redaction, a request
TOKENS_AROUND = 16  # that a tokenizer may put around a content
ELSEWHERE_MAX = 1 << 40  # bytes, or tokens, of what was never sealed: sums of them fit

Check = Callable[[GateHead, Any, MutationPlace], str | None]
"""Why a mutation may not stand at a place; None where it may."""


class Rule:
    """A named precondition: the kinds it can refuse, every kind where none is given, and a check for each of them."""

    def __init__(self, make: Callable[..., Any], kinds: tuple[type, ...], check: Callable[[type], Check]) -> None:
        self.__name__, self.__doc__ = make.__name__, make.__doc__
        self.kinds = frozenset(kinds)
        self._make = check
        self._checks: dict[type, Check] = {}

    def of(self, kind: type) -> Check | None:
        """Its check of a kind, made when it is first asked for; None where it has nothing against that."""
        if self.kinds and kind not in self.kinds:
            return None
        if kind not in self._checks:
            self._checks[kind] = self._make(kind)
        return self._checks[kind]

    def __call__(self, head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
        """Explains why a mutation may not stand at a place; None where it may."""
        check = self.of(type(m))
        return None if check is None else check(head, m, place)


def about(*kinds: type) -> Callable[[Check], Rule]:
    """Makes a rule of a check that is the same for all of its kinds."""
    return lambda check: Rule(check, kinds, lambda kind: check)


def each(*kinds: type) -> Callable[[Callable[[type], Check]], Rule]:
    """Makes a rule whose check is made for each of its kinds."""
    return lambda make: Rule(make, kinds, make)


@about()
def open_comes_first(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """A session is opened once, by its first mutation."""
    if isinstance(m, Open) == head.opened:
        return "a session opens once, with its first mutation"
    return None


@about(Open)
def name_is_free(head: GateHead, m: Open, place: MutationPlace) -> str | None:
    """A session's name is its own within a namespace."""
    return "the name is taken by another session" if place.name_taken else None


@about(Unknown)
def kind_is_known(head: GateHead, m: Unknown, place: MutationPlace) -> str | None:
    """Only kinds of this version are written; unknown ones are read, never made."""
    return "this version cannot write a kind it does not know"


@about()
def fields_are_typed(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Each field holds a number, bytes, a cell or a list of those, as its kind says."""
    wrong = mistyped(m)
    return None if wrong is None else f"{wrong}; see specs/mutations.md for what it may be"


@about(Turn)
def turn_is_next(head: GateHead, m: Turn, place: MutationPlace) -> str | None:
    """Turns are counted without gaps."""
    if m.number != head.turn + 1:
        return f"turn {m.number} cannot follow turn {head.turn}"
    return None


@about(Turn)
def turn_opens_its_commit(head: GateHead, m: Turn, place: MutationPlace) -> str | None:
    """The end of a turn is a commit end, so a turn begins a commit."""
    if not (place.before is None or isinstance(place.before, Open)):
        return "a turn begins a commit"
    return None


@about()
def nothing_follows_an_end(head: GateHead, m: AnyMutation, place: MutationPlace) -> str | None:
    """Packs and marks stand on commit ends."""
    if isinstance(place.before, ENDS):
        return f"a {place.before.kind} ends its commit"
    return None


@each(*CELL_FIELDS)
def cells_exist(kind: type) -> Check:
    """A mutation names cells of its own commit, or of an earlier one."""
    named = attrgetter(*CELL_FIELDS[kind])
    alone = len(CELL_FIELDS[kind]) == 1

    def check(head: GateHead, m: Any, place: MutationPlace) -> str | None:
        """Names the first of its cells that is not there."""
        for ref in (named(m),) if alone else named(m):
            if ref is not None and not (0 <= ref < place.cells if type(ref) is int else _earlier(ref, head)):
                return f"cell {ref} is neither in this commit nor in an earlier one"
        return None

    def of_pack(head: GateHead, m: Pack, place: MutationPlace) -> str | None:
        """The same of a pack, which names the skeletons of messages too."""
        for ref in (m.rest, *(ref for _, ref in m.envelopes)):
            if ref is not None and not (0 <= ref < place.cells if type(ref) is int else _earlier(ref, head)):
                return f"cell {ref} is neither in this commit nor in an earlier one"
        return None

    return of_pack if kind is Pack else check


def _earlier(ref: CellRef, head: GateHead) -> bool:
    """Whether there is such a cell of an earlier commit; those named before were looked at."""
    if ref in head.recent.named:
        return True
    return isinstance(ref, tuple) and 0 < ref[0] <= head.position and 0 <= ref[1] < head.cells(ref[0])


@about()
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


@about(*WORDS)
def words_are_listed(head: GateHead, m: Any, place: MutationPlace) -> str | None:
    """A field that stands for a word has a value of its closed vocabulary."""
    for field, words in WORDS[type(m)].items():
        if getattr(m, field) not in words and not (getattr(m, field) is None and field in _LEFT_OUT):
            return f"{getattr(m, field)} is no {field}"
    return None


@about(Erase)
def erased_cells_are_its_own(head: GateHead, m: Erase, place: MutationPlace) -> str | None:
    """An erasure names cells of earlier commits of this very session; inherited ones are erased in the parent."""
    if not m.cells and not m.upto:
        return "an erasure that names no cell"
    if m.upto and not head.begins < m.upto <= head.position:
        return f"position {m.upto} is none of this session's earlier ones"
    for position, index in m.cells:
        if not (head.begins < position <= head.position and 0 <= index < head.cells(position)):
            return f"cell {(position, index)} was brought by no earlier commit of this session"
    return None


@about(Create, Pack)
def message_exists(head: GateHead, m: Create | Pack, place: MutationPlace) -> str | None:
    """A page joins a message that is there, or none (0); a pack changes skeletons of messages, each once."""
    if type(m) is Create:
        lacks = m.message and not head.has_message(m.message)
        return f"there is no message at position {m.message}" if lacks else None
    messages = [message for message, _ in m.envelopes]  # type: ignore[union-attr]
    for message in messages:
        if not head.has_message(message):
            return f"there is no message at position {message}"
    return "a message is given one skeleton in a pack" if len(set(messages)) != len(messages) else None


@each(*PAGES)
def page_exists(kind: type) -> Check:
    """A page that is named exists."""
    pages = PAGES[kind]

    def check(head: GateHead, m: Any, place: MutationPlace) -> str | None:
        for page in pages(m):
            if head.version(page) is None:
                return f"there is no page p{page}"
        return None

    return check


@about(Update, Compress)
def version_is_next(head: GateHead, m: Update | Compress, place: MutationPlace) -> str | None:
    """Versions are counted without gaps; a representation is of the last one."""
    last = head.version(m.page)
    if isinstance(m, Update):
        wrong = m.version != (last or 0) + 1
        return f"version {m.version} cannot follow version {last} of p{m.page}" if wrong else None
    return None if m.version == last else f"version {m.version} is not the last of p{m.page}"


@about(Compress)
def level_is_reduced(head: GateHead, m: Compress, place: MutationPlace) -> str | None:
    """Compression makes a level from 1 to 3; level 0 stays what it was (law 5)."""
    return None if m.level in LEVELS else f"level {m.level} cannot be compressed to; levels are 1, 2 and 3"


@about(Link, Unlink, Create)
def link_kind_is_listed(head: GateHead, m: Link | Unlink | Create, place: MutationPlace) -> str | None:
    """Links are of the closed list of kinds."""
    kinds = [kind for kind, _ in m.links] if isinstance(m, Create) else [m.link]
    for kind in kinds:
        if kind not in LINK_KINDS:
            return f"{kind} is no kind of link"
    return None


@about(Link, Unlink)
def links_lead_elsewhere(head: GateHead, m: Link | Unlink, place: MutationPlace) -> str | None:
    """No page is linked to itself."""
    return "a page cannot be linked to itself" if m.source == m.target else None


@about(Unlink)
def results_keep_their_call(head: GateHead, m: Unlink, place: MutationPlace) -> str | None:
    """A tool's result stays linked to its call: the request is rebuilt from both."""
    return "a tool's result stays linked to its call" if m.link == LinkKind.CAUSED_BY else None


@about(*COUNTS)
def sizes_count_up(head: GateHead, m: Any, place: MutationPlace) -> str | None:
    """Sizes and tokens are counts."""
    for field in COUNTS[type(m)]:
        if getattr(m, field) < 0:
            return f"{field} is {getattr(m, field)}; sizes and tokens are not negative"
    return None


@about(*SHARES)
def importance_is_a_share(head: GateHead, m: Any, place: MutationPlace) -> str | None:
    """Importance, confidence and strength are shares of one, in parts per million."""
    for field in SHARES[type(m)]:
        value = getattr(m, field)
        if value is not None and not 0 <= value <= IMPORTANCE_MAX:
            return f"{field} {value} is not within 0 and {IMPORTANCE_MAX}"
    return None


@about(Annotate)
def annotation_says_something(head: GateHead, m: Annotate, place: MutationPlace) -> str | None:
    """An annotation changes what is known of its page."""
    if all(field is None for field in msgspec.structs.astuple(m)[1:]):
        return "an annotation that says nothing"
    return None


@about(Pack)
def call_is_next(head: GateHead, m: Pack, place: MutationPlace) -> str | None:
    """Calls are counted without gaps."""
    if m.call != head.call + 1:
        return f"call {m.call} cannot follow call {head.call}"
    return None


@about(Reply, Message)
def reply_answers_last_call(head: GateHead, m: Reply | Message, place: MutationPlace) -> str | None:
    """A reply is to the last call made."""
    if type(m) is Message:
        wrong = m.reply_to is not None and m.reply_to != head.call
        return f"a message cannot answer call {m.reply_to}; the last is {head.call}" if wrong else None
    call = m.call  # type: ignore[union-attr]
    return f"call {call} is not the last call ({head.call})" if call != head.call or call == 0 else None


@about(Pack)
def membership_changes(head: GateHead, m: Pack, place: MutationPlace) -> str | None:
    """A page that leaves was in the context, one that enters has content of its own, and each page is named once."""
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


@about(FaultIn, Prefetch, Evict)
def content_is_its_own(head: GateHead, m: FaultIn | Prefetch | Evict, place: MutationPlace) -> str | None:
    """A page is shown by a content of its own, at the level that content has."""
    if m.level is None and m.content is None:
        return None
    found = None if m.content is None else head.content(m.content)
    if found is None or (found.page, found.level) != (m.page, m.level):
        return f"position {m.content} holds no content of p{m.page} at level {m.level}"
    return None


@about(Embed)
def embeds_a_content(head: GateHead, m: Embed, place: MutationPlace) -> str | None:
    """Vectors are of a full content of their page that the source had, in chunks that go on through it."""
    found = head.content(m.content)
    if found is None or (found.page, found.level) != (m.page, 0) or found.commitment == NEVER_HERE:
        return f"position {m.content} holds no full content of p{m.page}"
    if not 0 < m.dimension <= DIMENSION_MAX:
        return f"dimension {m.dimension} is not within 1 and {DIMENSION_MAX}"
    before = -1
    for start, end in m.chunks:
        if not before < start < end:
            return f"a chunk from {start} to {end} does not follow one that begins at {before}"
        before = start
    return None if m.chunks else "an embedding of no chunk"


@about(Promote)
def successes_were_tried(head: GateHead, m: Promote, place: MutationPlace) -> str | None:
    """A skill succeeded no more often than it was tried, and was tried."""
    return None if m.tries > 0 and m.count <= m.tries else f"{m.count} successes of {m.tries} tries"


@about(Fact)
def facts_end_after_they_begin(head: GateHead, m: Fact, place: MutationPlace) -> str | None:
    """A fact ends after it begins, and has one value at a time only of an attribute that is named."""
    if m.valid_from is not None and m.valid_to is not None and m.valid_from > m.valid_to:
        return f"a fact that holds from {m.valid_from} ends at {m.valid_to}, before it begins"
    return "a fact of one value at a time names no attribute" if m.one and m.attribute is None else None


@about(FaultIn, FaultDenied, Prefetch, Revoke)
def reference_came_before(
    head: GateHead, m: FaultIn | FaultDenied | Prefetch | Revoke, place: MutationPlace
) -> str | None:
    """The answer to a reference, or the revocation of a share, comes after it."""
    if isinstance(m, Revoke):
        return None if 0 < m.share <= head.position else f"position {m.share} is no share that came before"
    return None if 0 < m.reference <= head.position else f"position {m.reference} is none that came before"


@about(Pack)
def ranks_are_distinct(head: GateHead, m: Pack, place: MutationPlace) -> str | None:
    """No two pages share a rank: the order of a context is total."""
    moved = {r[0] for r in m.entered} | set(m.left)
    new = [r[3] for r in m.entered]
    if len(set(new)) != len(new):
        return "two pages enter at one rank"
    for rank in new:
        at = bisect_left(head.order, rank, key=lambda residence: residence[3])
        if at < len(head.order) and head.order[at][3] == rank and head.order[at][0] not in moved:
            return f"rank {rank} is taken by p{head.order[at][0]}"
    return None


@about(Pack)
def totals_match(head: GateHead, m: Pack, place: MutationPlace) -> str | None:
    """A pack states the number of pages, their tokens and their root as the fold finds them."""
    after = head.foresee(m.entered, m.left)
    if (m.leaves, m.tokens, m.root) != after:
        return f"the pack states {m.leaves} pages, {m.tokens} tokens, the fold finds {after.leaves}, {after.tokens}"
    return None


@each(*(kind for kind, fields in READ.items() if fields))
def cells_are_formed(kind: type) -> Check:
    """A cell that a fold or an answer reads holds what its field says, an earlier one too."""
    fields = READ[kind]
    several = kind in (Mark, Pack)

    def check(head: GateHead, m: Any, place: MutationPlace) -> str | None:
        """Names the first of its cells that holds something else."""
        contents = place.contents
        if contents is None:
            return None
        for field, form in fields:
            if (ref := getattr(m, field)) is not None:
                for one in refs_in(m, field) if several else (ref,):
                    if (wrong := contents.wrong(one, form)) is not None:
                        return f"{field} must name {form.words}: {wrong}"
        if kind is Embed and m.vectors is not None:
            form = vectors_form(m)
            wrong = contents.wrong(m.vectors, form)
            return None if wrong is None else f"vectors must name {form.words}: {wrong}"
        return None

    return check


SIZED = (Create, Update, Compress)
READABLE = {int(Modality.TEXT): PLAIN, int(Modality.STRUCTURED): VALUE}


@about(*SIZED)
def contents_are_as_stated(head: GateHead, m: Create | Update | Compress, place: MutationPlace) -> str | None:
    """A mutation written by hand states the true size, type and token count of its content."""
    by_hand = place.by_hand
    if by_hand is None:
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


@each(*SIZED, Pack)
def holes_are_fitted(kind: type) -> Check:
    """Hand-written content fits its hole in a message, shown or not, and a hole keeps its kind."""

    def check(head: GateHead, m: Any, place: MutationPlace) -> str | None:
        """Looks at the content of a page."""
        by_hand, ref = place.by_hand, m.content
        if by_hand is None or ref is None:
            return None
        page = m if kind is Create else by_hand.page(m.page)
        for hole, part in (by_hand.holes(page.message) if page.message else None) or ():
            if part == page.part:
                form = PLAIN if kind is Compress else FILLS[hole]
                if form is not OPAQUE and (wrong := by_hand.wrong(ref, form)) is not None:
                    return f"part {part} of m{page.message} must be {form.words}: {wrong}"
        return None

    def of_pack(head: GateHead, m: Pack, place: MutationPlace) -> str | None:
        """Looks at the skeletons that a pack brings."""
        by_hand = place.by_hand
        if by_hand is None:
            return None
        for message, ref in m.envelopes:
            new = set(by_hand.holes_in(ref) or ()) - set(by_hand.holes(message) or ())
            if new:
                return f"the skeleton of m{message} gains a hole for part {min(part for _, part in new)}"
        return None

    return of_pack if kind is Pack else check


@about(Pack)
def messages_are_whole(head: GateHead, m: Pack, place: MutationPlace) -> str | None:
    """A message whose pages a pack changes can be rebuilt: each hole is filled by what it stands for."""
    if place.contents is None:
        return None
    for shown in place.contents.touched(head, m):
        wrong = unfilled(shown, place.contents, partial=m.renderer != WHOLE)
        if wrong is not None:
            return wrong
    return None


charter_stands_apart = about()(system_session.charter_stands_apart)

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
    embeds_a_content,
    facts_end_after_they_begin,
    successes_were_tried,
    reference_came_before,
    ranks_are_distinct,
    totals_match,
    cells_are_formed,
    contents_are_as_stated,
    holes_are_fitted,
    messages_are_whole,
)
