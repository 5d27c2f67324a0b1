"""The pages as a conversation no provider refuses: calls beside their results, pictures that are pictures.

Messages stand in the order of their pages. What stands in no message (a claim, a summary, a file), and
what came back after it had left, stands where it came in, as VM:CONTEXT in a user's message: so
nothing that was sent before changes when a page comes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from vmstore.core.page import Level, Role, Slot
from vmstore.vm.protocol.calls import CallIds, asked, object_of, tool_name
from vmstore.vm.protocol.context import context_text, line, medium
from vmstore.vm.protocol.leaf import Leaf
from vmstore.vm.protocol.picture import Picture, picture
from vmstore.vm.protocol.tools import VM_TOOLS
from vmstore.vm.protocol.wire import printed, tagless, unlabelled

UNSIGNED = "a thought is not sent back"
UNANSWERED = "a call without its result"
NOT_HERE = "(The text of this page is not in view.)"


class Text(NamedTuple):
    """Some words."""

    text: str


class Call(NamedTuple):
    """What the model asked a tool."""

    id: str
    tool: str
    arguments: dict[str, Any]


class Result(NamedTuple):
    """What a tool answered to the call of that id."""

    id: str
    tool: str
    parts: tuple[Text | Picture, ...]


Part: TypeAlias = Text | Picture | Call | Result


class Turn(NamedTuple):
    """One message: USER, ASSISTANT, or TOOL for the results of the calls right before it."""

    role: Role
    parts: tuple[Part, ...]


class Conversation(NamedTuple):
    """What instructs, the messages, and what cannot be sent and why."""

    instructions: tuple[str, ...]
    turns: tuple[Turn, ...]
    left: tuple[tuple[str, str], ...]


def conversation(leaves: Sequence[Leaf], *, labels: bool = True) -> Conversation:
    """The pages as messages, in their order; with `labels` each text begins with its page's name."""
    groups, instructions = _grouped(leaves)
    spoken = [group.leaves for group in groups if not group.recalled]
    pairs = _paired(spoken)
    answered = {id(result) for results in pairs.values() for result in results}
    ids = CallIds()
    turns: list[Turn] = []
    left = [(leaf.name, UNSIGNED) for leaf in leaves if _is_thought(leaf)]
    for group in groups:
        if group.recalled:
            turns += [Turn(Role.USER, tuple(_recalled(group.leaves)))]
            continue
        results: list[Part] = []
        parts: list[Part] = []
        for leaf in group.leaves:
            if _asks(leaf):
                if (found := pairs.get(leaf.name)) is None:
                    left.append((leaf.name, UNANSWERED))
                    continue
                call = _call(leaf, ids)
                parts.append(call)
                labelled = labels and call.tool not in VM_TOOLS  # nobody cites what the memory itself answered
                results.append(Result(call.id, call.tool, tuple(_parts(found, labelled, may_show=True))))
            elif id(leaf) not in answered:
                # A result whose call is out is spoken of: no provider takes it as a result.
                may_show = leaf.role is not Role.ASSISTANT
                parts += [Text(line(leaf))] if leaf.is_result else _parts([leaf], labels, may_show)
        role = Role.ASSISTANT if group.leaves[0].role is Role.ASSISTANT else Role.USER
        turns += [Turn(role, tuple(parts))] if parts else []
        turns += [Turn(Role.TOOL, tuple(results))] if results else []
    return Conversation(tuple(instructions), tuple(turns), tuple(left))


def merged(turns: Iterable[Turn]) -> list[Turn]:
    """The messages with neighbours of one role made one, a user's words following the results before them."""
    joined: list[Turn] = []
    for turn in turns:
        if joined and joined[-1].role is turn.role:
            joined[-1] = Turn(turn.role, joined[-1].parts + turn.parts)
        else:
            joined.append(turn)
    return joined


def words(parts: Iterable[Part]) -> str:
    """The texts of a message, a blank line between them."""
    return "\n\n".join(part.text for part in parts if isinstance(part, Text))


class Group(NamedTuple):
    """Pages that stand together: a message as it was said, or pages that were recalled."""

    recalled: bool
    leaves: list[Leaf]


def _grouped(leaves: Sequence[Leaf]) -> tuple[list[Group], list[str]]:
    """The messages and what was recalled between them, in order, and the texts that instruct."""
    groups: list[Group] = []
    instructions: list[str] = []
    newest = 0
    for leaf in leaves:
        if leaf.instructs:
            instructions += [leaf.text] if leaf.text and leaf.slot is not Slot.TOOLS else []
            continue
        if _is_thought(leaf):
            continue
        recalled = leaf.message < newest if leaf.message else not _is_handed_in(leaf)
        newest = max(newest, leaf.message)
        last = groups[-1] if groups else None
        if last is not None and last.recalled is recalled and (recalled or _together(last.leaves[0], leaf)):
            last.leaves.append(leaf)
        else:
            groups.append(Group(recalled, [leaf]))
    return groups, instructions


def _together(first: Leaf, leaf: Leaf) -> bool:
    """Whether two pages stand in one message."""
    return (first.message, first.role) == (leaf.message, leaf.role)


def _recalled(leaves: Sequence[Leaf]) -> list[Part]:
    """Pages that were recalled: pictures as they are, all else in one VM:CONTEXT."""
    shown = [(leaf, picture(leaf)) for leaf in leaves]
    parts: list[Part] = []
    for leaf, one in shown:
        parts += [Text(_label(leaf)), one] if one is not None else []
    said = [leaf for leaf, one in shown if one is None]
    return [*parts, Text(context_text(said))] if said else parts


def _paired(groups: list[list[Leaf]]) -> dict[str, list[Leaf]]:
    """The pages of the result of each call, by the call's name; each call has the first that came after it."""
    waiting: dict[tuple[str, str], list[str]] = {}
    pairs: dict[str, list[Leaf]] = {}
    for group in groups:
        taken: dict[tuple[str, str], str] = {}
        for leaf in group:
            # Where no id was given, calls and results belong together by the tool, in order.
            key = (leaf.call_id, "" if leaf.call_id else leaf.tool)
            if _asks(leaf):
                waiting.setdefault(key, []).append(leaf.name)
            elif leaf.is_result:
                if leaf.call_id and key in taken:
                    pairs[taken[key]].append(leaf)  # further parts of the same answer
                elif waiting.get(key):
                    taken[key] = waiting[key].pop(0)
                    pairs[taken[key]] = [leaf]
    return pairs


def _is_thought(leaf: Leaf) -> bool:
    return leaf.thought and leaf.message > 0 and not leaf.instructs


def _is_handed_in(leaf: Leaf) -> bool:
    """Whether it is a picture the user gave without a word: words cannot show it."""
    return leaf.role is Role.USER and picture(leaf) is not None


def _asks(leaf: Leaf) -> bool:
    return leaf.is_call and leaf.role is Role.ASSISTANT


def _call(leaf: Leaf, ids: CallIds) -> Call:
    tool, given = asked(leaf)
    return Call(ids.of(leaf), tool_name(tool), object_of(given))


def _parts(leaves: Iterable[Leaf], labels: bool, may_show: bool) -> list[Text | Picture]:
    parts: list[Text | Picture] = []
    for leaf in leaves:
        shown = picture(leaf) if may_show else None
        if shown is not None:
            parts += [Text(_label(leaf)), shown] if labels or leaf.level else [shown]
            continue
        said = medium(leaf) if leaf.is_media else leaf.text
        if said is None:
            said = NOT_HERE if leaf.content is None else line(leaf)
        said = unlabelled(said)
        if labels or leaf.level:
            said = f"{_label(leaf)} {said}"
        if said.strip():  # providers refuse a text of blanks
            parts.append(Text(tagless(said)))
    return parts


def _label(leaf: Leaf) -> str:
    return f"[{printed(leaf.name)}, {Level(leaf.level).word}]" if leaf.level else f"[{printed(leaf.name)}]"
