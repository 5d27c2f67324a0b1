"""The pages as a request's messages, ready to send, in the shape of each provider."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from vmstore.errors import InputError
from vmstore.vm.protocol.conversation import conversation
from vmstore.vm.protocol.dialects.anthropic import Anthropic
from vmstore.vm.protocol.dialects.chat import Chat
from vmstore.vm.protocol.dialects.dialect import Dialect
from vmstore.vm.protocol.dialects.gemini import Gemini
from vmstore.vm.protocol.dialects.responses import Responses
from vmstore.vm.protocol.manifest import Policies
from vmstore.vm.protocol.memo import Memo
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.rules import Paging, Rules, developer_message, may_fault
from vmstore.vm.protocol.tools import memory_tools

DIALECTS: dict[str, Dialect] = {
    "chat": Chat(),
    "chat-system": Chat("system"),  # for endpoints that do not know the developer's role
    "responses": Responses(),
    "anthropic": Anthropic(),
    "gemini": Gemini(),
}


class Messages(NamedTuple):
    """The part of a request that carries the pages, the memory tools it offers, what could not be sent and why."""

    request: dict[str, Any]
    tools: list[Any]
    left: tuple[tuple[str, str], ...]


def dialect(shape: str) -> Dialect:
    """The dialect of a shape's name; raises InputError for any other."""
    if shape not in DIALECTS:
        raise InputError(f"no shape {shape!r}; give one of {', '.join(DIALECTS)}", code="no-shape")
    return DIALECTS[shape]


def messages(
    leaves: Sequence[PromptPage],
    *,
    shape: str = "chat",
    rules: Rules = Rules.PASSIVE,
    paging: Paging = Paging.RUNTIME,
    policies: Policies | None = None,
    memo: Memo | None = None,
    recall: bool = False,
) -> Messages:
    """The pages as messages in their order, after what instructs and the rules, which no later page changes.

    Unless the rules are passive each text begins with its page's name, so that the model can cite it. With a
    `memo` of the request before, what stands as it stood there is the very same value: nobody may change it.
    """
    memo = memo or Memo()
    talk = conversation(leaves, labels=rules is not Rules.PASSIVE, memo=memo)
    stated, instructions = policies or Policies(), "\n\n".join(talk.instructions)
    front = memo.of(
        ("front", rules, paging, stated, instructions),
        lambda: developer_message(rules=rules, paging=paging, policies=stated, instructions=instructions),
    )
    speaks = dialect(shape)
    tools: list[Any] = []
    if may_fault(rules, paging):
        short = rules is Rules.SHORT
        tools = memo.of(("tools", shape, rules, recall), lambda: speaks.tools(memory_tools(recall), short=short))
    return Messages(speaks.request(front, talk.turns, memo), tools, talk.left)
