"""The pages as a conversation no provider refuses: calls beside their results, pictures that are pictures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from vmstore.core.page import Level, Role, Slot
from vmstore.vm.protocol.calls import CallIds, asked, object_of, tool_name
from vmstore.vm.protocol.context import line, medium
from vmstore.vm.protocol.leaf import Leaf
from vmstore.vm.protocol.picture import Picture, picture
from vmstore.vm.protocol.wire import printed, tagless

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
    """What instructs, the pages that were said in no message, the messages, and what cannot be sent and why."""

    instructions: tuple[str, ...]
    loose: tuple[Leaf, ...]
    turns: tuple[Turn, ...]
    left: tuple[tuple[str, str], ...]


Group: TypeAlias = list[Leaf]


def conversation(leaves: Sequence[Leaf], *, labels: bool = True) -> Conversation:
    """The pages as messages, in their order; with `labels` each text begins with its page's name."""
    groups, loose, instructions = _grouped(leaves)
    pairs = _paired(groups)
    answered = {id(result) for results in pairs.values() for result in results}
    ids = CallIds()
    turns: list[Turn] = []
    left = [(leaf.name, UNSIGNED) for leaf in leaves if _is_thought(leaf)]
    for group in groups:
        results: list[Part] = []
        parts: list[Part] = []
        for leaf in group:
            if _asks(leaf):
                if (found := pairs.get(leaf.name)) is None:
                    left.append((leaf.name, UNANSWERED))
                    continue
                call = _call(leaf, ids)
                parts.append(call)
                results.append(Result(call.id, call.tool, tuple(_parts(found, labels, may_show=True))))
            elif id(leaf) not in answered:
                # A result whose call is out is spoken of: no provider takes it as a result.
                may_show = leaf.role is not Role.ASSISTANT
                parts += [Text(line(leaf))] if leaf.is_result else _parts([leaf], labels, may_show)
        role = Role.ASSISTANT if group[0].role is Role.ASSISTANT else Role.USER
        turns += [Turn(role, tuple(parts))] if parts else []
        turns += [Turn(Role.TOOL, tuple(results))] if results else []
    return Conversation(tuple(instructions), tuple(loose), tuple(turns), tuple(left))


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


def _grouped(leaves: Sequence[Leaf]) -> tuple[list[Group], list[Leaf], list[str]]:
    """The messages in order, the pages of none, and the texts that instruct."""
    groups: list[Group] = []
    loose: list[Leaf] = []
    instructions: list[str] = []
    for leaf in leaves:
        if leaf.instructs:
            instructions += [leaf.text] if leaf.text and leaf.slot is not Slot.TOOLS else []
        elif not leaf.message and not _is_handed_in(leaf):
            loose.append(leaf)
        elif _is_thought(leaf):
            continue
        elif groups and (groups[-1][0].message, groups[-1][0].role) == (leaf.message, leaf.role):
            groups[-1].append(leaf)
        else:
            groups.append([leaf])
    return groups, loose, instructions


def _paired(groups: list[Group]) -> dict[str, Group]:
    """The pages of the result of each call, by the call's name; each call has the first that came after it."""
    waiting: dict[tuple[str, str], list[str]] = {}
    pairs: dict[str, Group] = {}
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
        if labels or leaf.level:
            said = f"{_label(leaf)} {said}"
        if said.strip():  # providers refuse a text of blanks
            parts.append(Text(tagless(said)))
    return parts


def _label(leaf: Leaf) -> str:
    return f"[{printed(leaf.name)}, {Level(leaf.level).word}]" if leaf.level else f"[{printed(leaf.name)}]"
