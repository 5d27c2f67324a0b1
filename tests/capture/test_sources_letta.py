"""Letta agent files: memory blocks, system messages rebuilt, what left the context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vmstore.capture.importers.formats import read
from vmstore.capture.steps import (
    CallStep,
    DetachedPages,
    MessageRef,
    MessageStep,
    ParsedSource,
    RewriteStep,
    Step,
    UnreadableStep,
)
from vmstore.core.draft import Draft
from vmstore.core.page import LinkKind, PageType, Slot
from vmstore.store.store import Store, memory_store

TOOL = {"id": "tool-0", "name": "send_message", "json_schema": {"name": "send_message", "parameters": {}}}


def message_of(role: str, text: str, **more: Any) -> dict[str, Any]:
    fields = {"role": role, "content": [{"type": "text", "text": text}], "tool_calls": [], "tool_returns": []}
    return {**fields, "name": None, "tool_call_id": None, "created_at": "2026-01-01T00:00:00.5", **more}


def packed(kind: str, text: str) -> dict[str, Any]:
    return message_of("user", json.dumps({"type": kind, "message": text, "time": "noon"}))


def calls(tool: str, name: str = "c1") -> dict[str, Any]:
    call = {"id": name, "type": "function", "function": {"name": tool, "arguments": "{}"}}
    return message_of("assistant", f"thinking of {tool}", tool_calls=[call])


def agent(messages: list[Any], stays: list[int] | None = None, **more: Any) -> dict[str, Any]:
    indices = list(range(len(messages))) if stays is None else stays
    return {
        "name": "sam",
        "description": "A friend",
        "core_memory": [{"label": "human", "value": "\nLikes Nara.", "limit": 5000}],
        "llm_config": {"model": "m-1"},
        "tools": [TOOL],
        "messages": messages,
        "in_context_message_indices": indices,
        **more,
    }


def reading(path: Path, document: Any) -> ParsedSource:
    file = path / "sam.af"
    file.write_text(json.dumps(document))
    content = read(file)
    assert content.format == "letta"
    return content


def steps(path: Path, messages: list[Any], stays: list[int] | None = None) -> list[Step]:
    """The steps of the messages, tools and memory aside."""
    made = list(reading(path, agent(messages, stays)).tracks[0].steps)
    assert [type(step) for step in made[:2]] == [MessageStep, DetachedPages]
    return made[2:]


def test_tools_and_blocks_come_first(tmp_path: Path) -> None:
    """The schemas stand before everything; a block is a claim under its label, beside the conversation."""
    (track,) = reading(
        tmp_path, agent([message_of("system", "You are Sam. Likes Nara."), message_of("user", "hi")])
    ).tracks
    tools, block, system, _ = track.steps
    assert isinstance(tools, MessageStep) and tools.draft.slot is Slot.TOOLS
    assert json.loads(tools.draft.parts[0].content) == [TOOL["json_schema"]]
    assert isinstance(block, DetachedPages) and (block.draft.hint, block.draft.parts[0].type) == (
        "human",
        PageType.CLAIM,
    )
    assert isinstance(system, MessageStep) and system.draft.links == ((LinkKind.DERIVES, "human"),)
    assert (track.name, track.agent, track.title, track.key) == ("sam", "sam", "A friend", None)


def test_who_speaks_and_when_a_turn_ends(tmp_path: Path) -> None:
    """People's words open turns, packed or bare; notices do not; only sending a message to them ends one."""
    made = steps(
        tmp_path,
        [
            packed("user_message", "hi"),
            calls("search"),
            message_of("tool", "found", tool_call_id="c1"),
            packed("heartbeat", "go on"),
            calls("send_message"),
            packed("login", "never"),
            message_of("user", "bare"),
        ],
    )
    assert [type(step) for step in made] == [
        MessageStep,
        CallStep,
        MessageStep,
        MessageStep,
        CallStep,
        MessageStep,
        MessageStep,
    ]
    assert [s.draft.human for s in made if isinstance(s, MessageStep)] == [True, False, False, False, True]
    assert [s.reply.final for s in made if isinstance(s, CallStep)] == [False, True]
    assert {s.reply.model for s in made if isinstance(s, CallStep)} == {"m-1"}
    assert made[0].at == 1_767_225_600_500_000


def test_a_system_message_made_anew_takes_the_place_of_the_old(tmp_path: Path) -> None:
    """It stands first, what was said after the old one stays after it."""
    made = steps(
        tmp_path,
        [
            message_of("system", "one"),
            message_of("user", "hi"),
            message_of("assistant", "yo"),
            message_of("system", "two"),
        ],
    )
    rewritten = made[3]
    assert isinstance(rewritten, RewriteStep) and isinstance(rewritten.stands[0], Draft)
    assert rewritten.stands[1:] == (MessageRef(3), MessageRef(4))


def test_a_notice_of_hidden_messages_sums_them_up(tmp_path: Path) -> None:
    """The last one keeps what is in context at the end, an earlier one what was said since the last answer."""
    notice = packed("system_alert", "Note: prior messages (3 of 5 total messages) have been hidden from view")
    messages = [
        message_of("system", "s"),
        message_of("user", "a"),
        message_of("assistant", "b"),
        message_of("user", "c"),
        notice,
    ]
    messages += [message_of("assistant", "d"), message_of("user", "e"), notice, message_of("assistant", "f")]
    made = steps(tmp_path, messages, stays=[0, 7, 5, 6, 8])
    first, last = (step for step in made if isinstance(step, RewriteStep))
    assert (first.stands[0], first.stands[2:]) == (MessageRef(2), (MessageRef(5),))
    assert (last.stands[0], last.stands[2:]) == (MessageRef(2), (MessageRef(7), MessageRef(8)))
    summary = last.stands[1]
    assert isinstance(summary, Draft) and summary.parts[0].type is PageType.SUMMARY and not summary.human


def test_what_nobody_said_left_leaves_before_the_last_answer(tmp_path: Path) -> None:
    """Without a notice the messages out of context leave as late as they can."""
    messages = [
        message_of("system", "s"),
        message_of("user", "a"),
        message_of("assistant", "b"),
        message_of("user", "c"),
        message_of("assistant", "d"),
    ]
    made = steps(tmp_path, messages, stays=[0, 3, 4])
    assert [type(step) for step in made] == [MessageStep, MessageStep, CallStep, MessageStep, RewriteStep, CallStep]
    assert made[4].stands == (MessageRef(2), MessageRef(5))  # type: ignore[attr-defined]


def test_a_file_of_several_agents(tmp_path: Path) -> None:
    """In the newer form each agent is a session; tools and blocks are shared by their ids."""
    fields = {
        "name": "one",
        "block_ids": ["b1"],
        "tool_ids": ["tool-0"],
        "messages": [message_of("user", "hi", id="message-0")],
    }
    each_fields = {"id": "agent-0", **fields, "in_context_message_ids": ["message-0"]}
    document = {
        "agents": [each_fields, {**each_fields, "id": "agent-1", "name": "two", "block_ids": []}],
        "blocks": [{"id": "b1", "label": "human", "value": "x"}, {"id": "b2", "label": "other", "value": "y"}],
        "tools": [TOOL, {**TOOL, "id": "tool-1"}],
    }
    first, second = reading(tmp_path, document).tracks
    assert [(track.name, track.part) for track in (first, second)] == [("one", ""), ("two", "agent-1")]
    assert [type(step) for step in first.steps] == [MessageStep, DetachedPages, MessageStep]
    assert [type(step) for step in second.steps] == [MessageStep, MessageStep]


def test_a_strange_message_is_kept(tmp_path: Path) -> None:
    """What is no message stays as it stands, with the reason."""
    made = steps(tmp_path, ["huh", message_of("user", "hi"), {"role": "user"}])
    assert [type(step) for step in made] == [UnreadableStep, MessageStep, UnreadableStep]
    assert made[2].reason == "a message of role 'user' without content or tool calls"  # type: ignore[attr-defined]


def test_memory_that_changed_is_another_past(tmp_path: Path) -> None:
    """An agent that only said more goes on in its session; one whose memory was edited goes on in a fork."""
    file = tmp_path / "sam.af"
    talk = [message_of("system", "s"), message_of("user", "a"), message_of("assistant", "b")]
    with memory_store() as store:
        for messages in (talk, [*talk, message_of("user", "c"), message_of("assistant", "d")]):
            file.write_text(json.dumps(agent(messages)))
            store.import_file(file)
        assert [(info.session, info.calls) for info in store.sessions()] == [("sam", 2)]
        file.write_text(json.dumps(agent(talk, core_memory=[{"label": "human", "value": "Likes Uji."}])))
        store.import_file(file)
        assert [(info.session, info.parent) for info in store.sessions()] == [("sam", None), ("sam-2", "sam")]


def test_blocks_are_found_by_name_and_stand_in_no_context(tmp_path: Path) -> None:
    """Whatever a block is called, also like the page of what a source omits, it is asked by its label."""
    file = tmp_path / "sam.af"
    messages = [
        message_of("system", "You are Sam. Likes Nara."),
        message_of("user", "hi"),
        message_of("assistant", "yo"),
    ]
    blocks = [{"label": "opaque", "value": "Likes Nara."}, {"label": "empty", "value": ""}]
    with memory_store() as store:
        for more in ([], [message_of("user", "and?"), message_of("assistant", "so")]):
            file.write_text(json.dumps(agent(messages + more, core_memory=blocks)))
            store.import_file(file)
        session = store.session("sam")
        (block,) = [page for page in session.pages() if page.type == "claim"]
        assert (block.hint, block.tokens, session.content("opaque")) == ("opaque", 3, b"Likes Nara.")
        context = session.context(call=2)
        assert block.page not in {page.page for page in context.pages}
        assert [link.text for link in session.lineage.ancestors(context.pages[1].page)] == ["Likes Nara."]
        assert store.verify().ok


# ---- the recorded agents


@pytest.fixture(scope="module")
def imported(data: Path) -> Store:
    """A store that holds every agent file."""
    store = memory_store()
    for file in sorted((data / "letta-af").glob("*.af")):
        assert store.import_file(file).problems == []
    return store


def test_the_recorded_agents_go_in_and_verify(imported: Store, data: Path) -> None:
    """Each file is a session with each of its messages once, and the same again changes nothing."""
    for file in sorted((data / "letta-af").glob("*.af")):
        document = json.loads(file.read_text())
        again = imported.import_file(file)
        assert again.new == 0
        (taken,) = again.sessions
        answers = sum(message["role"] == "assistant" for message in document["messages"])
        assert (taken.calls, taken.messages) == (answers, len(document["messages"]) + 1)  # and the tools
    assert imported.verify().ok


def test_the_context_at_the_end_is_the_one_in_the_file(imported: Store, data: Path) -> None:
    """The last call of the long conversation saw the messages that are in context, in their order, up to itself."""
    document = json.loads((data / "letta-af" / "memgpt_agent_with_convo.af").read_text())
    session = imported.session("memgpt_agent")
    last = max(n for n, message in enumerate(document["messages"]) if message["role"] == "assistant")
    # A system message made after the last answer was not what that answer saw, so its place is its forerunner's.
    stays = [n for n in document["in_context_message_indices"] if n < last]
    seen = [message["content"][0]["text"] for message in session.wire.messages()[1:]]  # after the system message
    assert seen == [document["messages"][n]["content"][0]["text"] for n in stays]
    (summary,) = [page for page in session.pages() if page.type == "summary"]
    assert len({link.target for link in session.lineage.ancestors(summary.page, depth=1)}) > 60
