"""The request of a call: what is sent of the prompt, in the provider's shape, and how many tokens it takes.

It follows from the pages alone and from settings, so that it is given back by folding the log to its pack.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vmstore.core.page import Modality, Slot
from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN, estimate
from vmstore.vm.kernel.settings import KernelSettings
from vmstore.vm.protocol.manifest import Policies
from vmstore.vm.protocol.memo import Memo, shared
from vmstore.vm.protocol.messages import Messages, messages
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.rules import Paging, Rules

_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
CONVERSATIONS = ("messages", "contents", "input")  # where a request has its messages
ENDS = '"]}'  # of a message as JSON, which move when it is continued
NAMES_THE_MODEL = ("chat", "chat-system", "responses", "anthropic")  # Gemini's stands in the address


def policies(settings: KernelSettings) -> Policies:
    """The limits on the model's requests in a turn, as the rules state them: constant, so that rules never change."""
    return Policies(
        faults_allowed=settings.faults_a_turn_max > 0,
        max_faults_per_turn=settings.faults_a_turn_max,
        upgrade_budget_tokens=settings.fault_tokens_a_turn_max,
    )


def made_of(settings: KernelSettings, leaves: Sequence[PromptPage], shape: str, memo: Memo | None = None) -> Messages:
    """The messages that show pages in their order, and the memory's tools."""
    return messages(
        leaves,
        shape=shape,
        rules=Rules[settings.rules.upper()],
        paging=Paging[settings.paging.upper()],
        policies=policies(settings),
        memo=memo,
        recall=settings.recall_tools,
    )


def request_of(settings: KernelSettings, leaves: Sequence[PromptPage], shape: str | None = None) -> dict[str, Any]:
    """The request that shows pages in their order: model, instructions, messages, tools."""
    shape = shape or settings.shape or "chat"
    return body_of(settings, leaves, made_of(settings, leaves, shape), shape)


def body_of(settings: KernelSettings, leaves: Sequence[PromptPage], made: Messages, shape: str) -> dict[str, Any]:
    """The request around messages that were made of some pages."""
    model = {"model": settings.model} if settings.model and shape in NAMES_THE_MODEL else {}
    tools = [*own_tools(leaves), *made.tools]
    return {**model, **made.request, **({"tools": tools} if tools else {})}


def own_tools(leaves: Sequence[PromptPage]) -> list[Any]:
    """The schemas of the host's tools, which stand in pages of their own."""
    tools: list[Any] = []
    for leaf in leaves:
        if leaf.slot is Slot.TOOLS and leaf.text:
            try:
                value = json.loads(leaf.text)
            except ValueError:  # shown shorter by hand: no schema any more
                continue
            tools += value if isinstance(value, list) else [value]
    return tools


def written(body: dict[str, Any], memo: Memo | None = None) -> str:
    """A request as JSON, keys in the order they are sent in; messages that the memo has are not written again."""
    if memo is None:
        return _JSON.encode(body)

    def one(value: Any) -> str:
        return memo.of(("json", id(value)), lambda: (_JSON.encode(value), value))[0]

    def field(key: str, value: Any) -> str:
        if not isinstance(value, list):
            return _JSON.encode(value)
        before, texts = memo.last.get(f"written {key}", ((), []))
        same = shared(before, value)
        texts = [*texts[:same], *map(one, value[same:])]
        memo.last[f"written {key}"] = value, texts
        return "[" + ", ".join(texts) + "]"

    return "{" + ", ".join([f"{_JSON.encode(key)}: {field(key, value)}" for key, value in body.items()]) + "}"


class Rendered(NamedTuple):
    """A request in the order a provider reads it: what stands before the conversation, each message of it as JSON."""

    head: str
    messages: Sequence[Any]
    texts: Sequence[str]

    def voided(self, later: Rendered) -> int:
        """The tokens of it behind the first place that is another in a later request: what no cache serves of it."""
        same = 0
        if self.head == later.head:
            same = shared(self.texts, later.texts)
            while same < min(len(self.texts), len(later.texts)) and self.texts[same] == later.texts[same]:
                same += 1
        if same == len(self.texts):
            return 0
        ours, theirs = self.texts[same].rstrip(ENDS), later.texts[same] if same < len(later.texts) else ""
        alike = _common(ours, theirs) if self.head == later.head else 0
        if same == len(self.texts) - 1 and alike == len(ours):  # the last message is continued
            return 0
        text = ("" if alike or same else self.head) + "".join(self.texts[same:])[alike:]
        return max(0, tokens_of({"": self.messages[same:]}, text, pictured=True))


def _common(text: str, other: str) -> int:
    """How many characters two texts begin with that are the same."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if text[:middle] == other[:middle] else (low, middle - 1)
    return low


def rendered(body: dict[str, Any], memo: Memo) -> Rendered:
    """A request that `written` wrote with this memo."""
    conversation = next(key for key in CONVERSATIONS if key in body)
    head = [body.get("tools"), {key: value for key, value in body.items() if key not in ("tools", conversation)}]
    messages, texts = memo.last[f"written {conversation}"]
    return Rendered(_JSON.encode(head), messages, texts)


def copied(value: Any) -> Any:
    """A JSON value whose lists and objects are its own, so that its owner may change it."""
    if isinstance(value, dict):
        return {key: copied(inner) for key, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value


def digest(text: str) -> bytes:
    """SHA-256 of a request's JSON."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def tokens_of(body: dict[str, Any], text: str, *, pictured: bool) -> int:
    """Estimated tokens of a request as sent: a quarter of its characters, a picture as the estimator counts it."""
    characters, tokens = len(text), 0
    for encoded in _pictures(body) if pictured else ():
        try:
            tokens += estimate(base64.b64decode(encoded), Modality.IMAGE)
        except binascii.Error:
            continue
        characters -= len(encoded)
    return tokens - (-characters // CHARACTERS_PER_TOKEN)


def _pictures(value: Any) -> Iterator[str]:
    """The base64 of each picture in a request, in the place where its shape has it."""
    if isinstance(value, list):
        for inner in value:
            yield from _pictures(inner)
    elif isinstance(value, dict):
        url, data = value.get("url", value.get("image_url")), value.get("data")
        if isinstance(url, str) and url.startswith("data:image/"):
            yield url.partition(",")[2]
        elif isinstance(data, str) and str(value.get("media_type", value.get("mimeType"))).startswith("image/"):
            yield data
        else:
            for inner in value.values():
                yield from _pictures(inner)
