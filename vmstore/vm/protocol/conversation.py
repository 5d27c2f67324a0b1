"""The pages as a conversation no provider refuses: calls beside their results, pictures that are pictures."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from vmstore.core.page import Level, Modality, Role, Slot
from vmstore.vm.protocol.context import line, medium
from vmstore.vm.protocol.leaf import Leaf
from vmstore.vm.protocol.wire import dumps, loads, printed, tagless

PICTURE_BYTES_MAX = 1_000_000
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
UNFIT = re.compile(r"[^a-zA-Z0-9_-]")
SIGNATURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}

WRAPS = ("function", "functionCall", "function_call", "custom")  # where providers put name and arguments
KINDS = ("tool_use", "server_tool_use", "function_call", "custom_tool_call")  # or what they call it
BARE = ({"name", "args"}, {"name", "arguments"})  # or nothing at all
ARGUMENTS = ("arguments", "input", "args")

UNSIGNED = "a thought is not sent back"
UNANSWERED = "a call without its result"
NOT_HERE = "(The text of this page is not in view.)"


class Text(NamedTuple):
    """Some words."""

    text: str


class Picture(NamedTuple):
    """An image in the message itself, its type read from its own bytes; or one that lies at `url`, without bytes."""

    mime: str
    content: bytes
    url: str = ""

    @property
    def base64(self) -> str:
        """Its bytes as requests carry them."""
        return base64.b64encode(self.content).decode("ascii")


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
    ids = _Ids()
    turns: list[Turn] = []
    left = [(leaf.name, UNSIGNED) for leaf in leaves if leaf.thought]
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


def picture(leaf: Leaf) -> Picture | None:
    """The page as an image, where it is one that providers take: by its bytes, not by what it is said to be."""
    content = leaf.content if leaf.modality is Modality.IMAGE else None
    if leaf.modality is Modality.IMAGE and (url := _url(_object(leaf.text or ""))):
        return Picture("", b"", url)
    if content is not None and content.startswith(b"data:"):
        try:
            content = base64.b64decode(content.partition(b",")[2], validate=True)
        except binascii.Error:
            return None
    if content is None or len(content) > PICTURE_BYTES_MAX:
        return None
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return Picture("image/webp", content)
    mime = next((mime for begins, mime in SIGNATURES.items() if content.startswith(begins)), None)
    return None if mime is None else Picture(mime, content)


def _url(part: dict[str, Any]) -> str:
    """The web address in a provider's image part; empty where there is none."""
    for key in ("image_url", "source"):
        inner = part.get(key)
        url = inner.get("url") if isinstance(inner, dict) else inner
        if isinstance(url, str) and url.startswith(("https://", "http://")):
            return url
    return ""


def _grouped(leaves: Sequence[Leaf]) -> tuple[list[Group], list[Leaf], list[str]]:
    """The messages in order, the pages of none, and the texts that instruct."""
    groups: list[Group] = []
    loose: list[Leaf] = []
    instructions: list[str] = []
    for leaf in leaves:
        if leaf.instructs:
            instructions += [leaf.text] if leaf.text and leaf.slot is not Slot.TOOLS else []
        elif not leaf.message:
            loose.append(leaf)
        elif leaf.thought:
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


def _asks(leaf: Leaf) -> bool:
    return leaf.is_call and leaf.role is Role.ASSISTANT


class _Ids:
    """Ids of calls that every provider takes and that occur once."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def of(self, leaf: Leaf) -> str:
        named = leaf.call_id if ID.fullmatch(leaf.call_id) else f"call_{UNFIT.sub('_', leaf.name)}"[:64]
        given, count = named, 1
        while given in self._used:
            count += 1
            given = f"{named[:56]}_{count}"
        self._used.add(given)
        return given


def _call(leaf: Leaf, ids: _Ids) -> Call:
    tool, given = _asked(leaf)
    return Call(ids.of(leaf), tool_name(tool), object_of(given))


def arguments(leaf: Leaf) -> dict[str, Any]:
    """What a call's page asks with: the arguments inside a provider's call, the object itself, or its text."""
    return object_of(_asked(leaf)[1])


def _asked(leaf: Leaf) -> tuple[str, Any]:
    """The tool a call's page names, and what stands for its arguments."""
    asked = _object(leaf.text or "")
    inner = next((asked[key] for key in WRAPS if isinstance(asked.get(key), dict)), None)
    if inner is None and (asked.get("type") in KINDS or set(asked) - {"id"} in BARE):
        inner = asked
    if inner is None or leaf.tool not in ("", inner.get("name")):
        return leaf.tool, leaf.text  # arguments alone, which may have such keys of their own
    return str(inner.get("name") or ""), next((inner[key] for key in ARGUMENTS if key in inner), None)


def object_of(given: Any) -> dict[str, Any]:
    """Arguments as the object they are, or as one that holds their text: providers take nothing else."""
    found = _object(given)
    text = "" if given is None else str(given)
    return found if found or text.strip() in ("", "{}") else {"text": text}


def tool_name(text: str) -> str:
    """A tool's name as every provider takes it."""
    return UNFIT.sub("_", text)[:64] or "tool"


def _object(given: Any) -> dict[str, Any]:
    try:
        # What was given as a value is read back too: it may hold what JSON does not know.
        value = loads(given if isinstance(given, str) else dumps(given))
    except (TypeError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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
