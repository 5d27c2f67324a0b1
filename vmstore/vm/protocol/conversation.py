"""The pages as a conversation no provider refuses: calls beside their results, pictures that are pictures.

Messages stand in the order of their pages. What stands in no message (a claim, a summary, a file), and
what came back after it had left, stands where it came in, as VM:CONTEXT in a user's message: so
nothing that was sent before changes when a page comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from vmstore.core.page import Level, Role, Slot
from vmstore.vm.protocol.context import context_text, line, medium
from vmstore.vm.protocol.escape import printed, tagless, unlabelled
from vmstore.vm.protocol.memo import Memo, shared
from vmstore.vm.protocol.picture import Picture, picture
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.tool_calls import CallIds, asked, named, object_of, tool_name
from vmstore.vm.protocol.tools import VM_TOOLS

UNSIGNED = "a thought is not sent back"
UNANSWERED = "a call without its result"
NOT_HERE = "(The text of this page is not in view.)"


class TextPart(NamedTuple):
    """Some words."""

    text: str


class CallPart(NamedTuple):
    """A tool call of the model."""

    id: str
    tool: str
    arguments: dict[str, Any]


class ResultPart(NamedTuple):
    """A tool's result, for the call with that id."""

    id: str
    tool: str
    parts: tuple[TextPart | Picture, ...]


Part: TypeAlias = TextPart | Picture | CallPart | ResultPart


class ChatMessage(NamedTuple):
    """One message: USER, ASSISTANT, or TOOL for the results of the calls right before it."""

    role: Role
    parts: tuple[Part, ...]


class PromptConversation(NamedTuple):
    """Instructions and messages, and pages that cannot be sent, with reasons."""

    instructions: tuple[str, ...]
    turns: tuple[ChatMessage, ...]
    left: tuple[tuple[str, str], ...]


class PlacedPage:
    """A page with what its place in a conversation follows from, looked at once."""

    __slots__ = ("asks", "handed_in", "instructs", "key", "leaf", "message", "named", "role", "thought", "tool")

    def __init__(self, leaf: PromptPage) -> None:
        self.leaf = leaf
        self.message = leaf.message
        self.role = leaf.role
        self.instructs = leaf.instructs
        self.thought = _is_thought(leaf)
        self.handed_in = not leaf.message and _is_handed_in(leaf)
        self.asks = _asks(leaf)
        # Where no id was given, calls and results belong together by the tool, in order.
        self.key = (leaf.call_id, "" if leaf.call_id else leaf.tool)
        self.named = named(leaf) if self.asks else ""
        self.tool = tool_name(asked(leaf)[0]) if self.asks else ""


class Group(NamedTuple):
    """Pages that stand together: a message as it was said, or pages that were recalled.

    Before the `first` of them, by its place among the leaves, stand so many instructions, and `newest` is the
    newest message there.
    """

    recalled: bool
    faces: list[PlacedPage]
    first: int
    instructions: int
    newest: int


class DrawnMessages(NamedTuple):
    """The messages of a group, what of it cannot be sent, and the pages it was made of."""

    turns: tuple[ChatMessage, ...]
    left: tuple[tuple[str, str], ...]
    of: tuple[PlacedPage, ...]


class Begun(NamedTuple):
    """The beginning of a conversation, up to a message that may change: the next one is built on it.

    It was made of `leaves` up to `cut`; `ids` are those its calls have, `waiting` the keys of calls without a result.
    """

    labels: bool
    leaves: list[PromptPage]
    cut: int
    newest: int
    instructions: tuple[str, ...]
    turns: list[ChatMessage]
    left: list[tuple[str, str]]
    ids: frozenset[str]
    waiting: frozenset[tuple[str, str]]


NOTHING = Begun(True, [], 0, 0, (), [], [], frozenset(), frozenset())


def conversation(leaves: Sequence[PromptPage], *, labels: bool = True, memo: Memo | None = None) -> PromptConversation:
    """The pages as messages, in their order; with `labels` each text begins with its page's name.

    What stands as it stood in the last request that `memo` was given for is not written again, and what
    it began with is not looked at again.
    """
    memo = memo or Memo()
    begun, faces = _begun(memo, leaves, labels)
    groups, instructions = _grouped(faces, begun)
    pairs = _paired(groups)
    cut = _cut(groups, pairs)
    answered = {id(result) for results in pairs.values() for result in results}
    ids = CallIds(begun.ids)
    turns, left = [*begun.turns], [*begun.left]
    for nth, group in enumerate(groups):
        if nth == cut:
            instructions_so_far = (*begun.instructions, *instructions[: group.instructions])
            calls_before = (
                face for earlier in groups[:cut] if not earlier.recalled for face in earlier.faces if face.asks
            )
            waiting = begun.waiting.union(face.key for face in calls_before if id(face) not in pairs)
            memo.last["conversation"] = Begun(
                labels, [*leaves], group.first, group.newest, instructions_so_far, [*turns], [*left], ids.used, waiting
            )
        stands = [face for face in group.faces if group.recalled or id(face) not in answered]
        calls = {} if group.recalled else {
            id(face): ids.given(face.named) for face in stands if face.asks and id(face) in pairs
        }  # fmt: skip
        results = (tuple(map(id, pairs[call])) for call in calls)
        key = (group.recalled, labels, *map(id, stands), *calls.items(), *results)
        drawn = memo.of(key, partial(_drawn, group.recalled, stands, calls, pairs, labels))
        turns += drawn.turns
        left += drawn.left
    unsigned = [(leaf.name, UNSIGNED) for leaf in leaves if leaf.thought and _is_thought(leaf)]
    return PromptConversation((*begun.instructions, *instructions), tuple(turns), (*unsigned, *left))


def _begun(memo: Memo, leaves: Sequence[PromptPage], labels: bool) -> tuple[Begun, list[PlacedPage]]:
    """The unchanged beginning of the conversation, taken from the last request, and the pages after it.

    The first of those is the same too, so that it is no further part of the message before, and none of them
    answers a call in what it begins with.
    """

    def faces(cut: int) -> list[PlacedPage]:
        return [memo.of(("face", id(leaf)), partial(PlacedPage, leaf)) for leaf in leaves[cut:]]

    begun: Begun = memo.last.pop("conversation", NOTHING)
    if begun.cut and begun.labels is labels and shared(begun.leaves, leaves) > begun.cut:
        come = faces(begun.cut)
        if not any(face.leaf.is_result and face.key in begun.waiting for face in come):
            return begun, come
    memo.begin()
    return NOTHING, faces(0)


def _drawn(
    recalled: bool,
    stands: Sequence[PlacedPage],
    calls: Mapping[int, str],
    pairs: Mapping[int, list[PlacedPage]],
    labels: bool,
) -> DrawnMessages:
    """Writes the messages of a group; `calls` are the ids of those of its calls that have a result."""
    of = (*stands, *(face for call in calls for face in pairs[call]))
    if recalled:
        return DrawnMessages((ChatMessage(Role.USER, tuple(_recalled([face.leaf for face in stands]))),), (), of)
    results: list[Part] = []
    parts: list[Part] = []
    left: list[tuple[str, str]] = []
    for face in stands:
        leaf = face.leaf
        if face.asks:
            if id(face) not in calls:
                left.append((leaf.name, UNANSWERED))
                continue
            call = CallPart(calls[id(face)], face.tool, object_of(asked(leaf)[1]))
            parts.append(call)
            labelled = labels and call.tool not in VM_TOOLS  # nobody cites what the memory itself answered
            found = [pair.leaf for pair in pairs[id(face)]]
            results.append(ResultPart(call.id, call.tool, tuple(_parts(found, labelled, may_show=True))))
        else:
            # A result whose call is out is spoken of: no provider takes it as a result.
            may_show = leaf.role is not Role.ASSISTANT
            parts += [TextPart(line(leaf))] if leaf.is_result else _parts([leaf], labels, may_show)
    said = stands[0].role if stands else Role.TOOL
    role = Role.ASSISTANT if said is Role.ASSISTANT else Role.USER
    turns = [ChatMessage(role, tuple(parts))] if parts else []
    turns += [ChatMessage(Role.TOOL, tuple(results))] if results else []
    return DrawnMessages(tuple(turns), tuple(left), of)


def merged(turns: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages with neighbours of one role made one, a user's words following the results before them."""
    joined: list[ChatMessage] = []
    for turn in turns:
        if joined and joined[-1].role is turn.role:
            joined[-1] = ChatMessage(turn.role, joined[-1].parts + turn.parts)
        else:
            joined.append(turn)
    return joined


def words(parts: Iterable[Part]) -> str:
    """The texts of a message, a blank line between them."""
    return "\n\n".join(part.text for part in parts if isinstance(part, TextPart))


def _grouped(faces: Sequence[PlacedPage], begun: Begun) -> tuple[list[Group], list[str]]:
    """The messages and what was recalled between them, in order, and the texts that instruct."""
    groups: list[Group] = []
    instructions: list[str] = []
    newest = begun.newest
    last: Group | None = None
    for place, face in enumerate(faces, begun.cut):
        if face.instructs:
            leaf = face.leaf
            instructions += [leaf.text] if leaf.text and leaf.slot is not Slot.TOOLS else []
            continue
        if face.thought:
            continue
        message = face.message
        recalled = message < newest if message else not face.handed_in
        if last is not None and last.recalled is recalled and (recalled or _together(last.faces[0], face)):
            last.faces.append(face)
        else:
            last = Group(recalled, [face], place, len(instructions), newest)
            groups.append(last)
        newest = max(newest, message)
    return groups, instructions


def _together(first: PlacedPage, face: PlacedPage) -> bool:
    """Whether two pages stand in one message."""
    return first.message == face.message and first.role is face.role


def _recalled(leaves: Sequence[PromptPage]) -> list[Part]:
    """Pages that were recalled: pictures as they are, all else in one VM:CONTEXT."""
    shown = [(leaf, picture(leaf)) for leaf in leaves]
    parts: list[Part] = []
    for leaf, face in shown:
        parts += [TextPart(_label(leaf)), face] if face is not None else []
    spoken = [leaf for leaf, face in shown if face is None]
    return [*parts, TextPart(context_text(spoken))] if spoken else parts


def _paired(groups: Sequence[Group]) -> dict[int, list[PlacedPage]]:
    """The pages of the result of each call, by the `id` of the call; each call has the first that came after it."""
    waiting: dict[tuple[str, str], list[int]] = {}
    pairs: dict[int, list[PlacedPage]] = {}
    for group in groups:
        if group.recalled:
            continue
        taken: dict[tuple[str, str], int] = {}
        for face in group.faces:
            if face.asks:
                waiting.setdefault(face.key, []).append(id(face))
            elif face.leaf.is_result:
                if face.key[0] and face.key in taken:
                    pairs[taken[face.key]].append(face)  # further parts of the same answer
                elif waiting.get(face.key):
                    taken[face.key] = waiting[face.key].pop(0)
                    pairs[taken[face.key]] = [face]
    return pairs


def _cut(groups: Sequence[Group], pairs: Mapping[int, Sequence[PlacedPage]]) -> int:
    """The last group with no call before it that it, or one after it, answers."""
    results = {id(found[0]): call for call, found in pairs.items()}
    asked: dict[int, int] = {}  # of the calls, their groups
    spans: list[tuple[int, int]] = []
    for nth, group in enumerate(groups):
        for face in group.faces:
            if face.asks:
                asked[id(face)] = nth
            elif id(face) in results:
                spans.append((nth, asked[results[id(face)]]))
    cut = len(groups) - 1
    for answer, question in reversed(spans):
        cut = question if question < cut <= answer else cut
    return cut


def _is_thought(leaf: PromptPage) -> bool:
    return leaf.thought and leaf.message > 0 and not leaf.instructs


def _is_handed_in(leaf: PromptPage) -> bool:
    """Whether it is a picture the user gave without a word: words cannot show it."""
    return leaf.role is Role.USER and picture(leaf) is not None


def _asks(leaf: PromptPage) -> bool:
    return leaf.is_call and leaf.role is Role.ASSISTANT


def _parts(leaves: Iterable[PromptPage], labels: bool, may_show: bool) -> list[TextPart | Picture]:
    parts: list[TextPart | Picture] = []
    for leaf in leaves:
        shown = picture(leaf) if may_show else None
        if shown is not None:
            parts += [TextPart(_label(leaf)), shown] if labels or leaf.level else [shown]
            continue
        said = medium(leaf) if leaf.is_media else leaf.text
        if said is None:
            said = NOT_HERE if leaf.content is None else line(leaf)
        said = unlabelled(said)
        if labels or leaf.level:
            said = f"{_label(leaf)} {said}"
        if said.strip():  # providers refuse a text of blanks
            parts.append(TextPart(tagless(said)))
    return parts


def _label(leaf: PromptPage) -> str:
    return f"[{printed(leaf.name)}, {Level(leaf.level).word}]" if leaf.level else f"[{printed(leaf.name)}]"
