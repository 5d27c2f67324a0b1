"""Sessions as conversations: chat messages that programs train and test with, and Markdown for people."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import vmstore
from tests.redact.test_door import ASK, CALL, KEY, MAIL, RESULT, VALUES, answer
from tests.redact.test_leaving import PICTURE, PNG
from tests.refusals import refused
from tests.views.test_compactions import talked
from vmstore.errors import InputError
from vmstore.store.store import Store, memory_store

TICKS = "Run this:\n````\n```\nls\n```\n````"


def exported(store: Store, format: str, *names: str, **options: Any) -> str:
    """An export of a store as text."""
    out = io.BytesIO()
    store.export(out, names or None, format=format, **options)
    return out.getvalue().decode()


def chats(store: Store, *names: str, **options: Any) -> list[list[Any]]:
    """The messages of each line of a chat export, which holds nothing else."""
    lines = [json.loads(line) for line in exported(store, "chat", *names, **options).splitlines()]
    assert all(list(line) == ["messages"] for line in lines)
    return [line["messages"] for line in lines]


def headed(text: str) -> list[str]:
    """The headings of a Markdown text: lines outside of fences."""
    fence = ""
    lines = []
    for line in text.splitlines():
        ticks = re.match(r"`{3,}", line)
        if fence:
            fence = "" if line == fence else fence
        elif ticks:
            fence = ticks[0]
        elif line.startswith("#"):
            lines.append(line)
    assert not fence, "every fence is closed"
    return lines


def worked(store: Store) -> None:
    """A session with instructions, a call with its result, one without, and texts with fences and headings."""
    call = {
        "id": "c1",
        "type": "function",
        "function": {"name": "read", "arguments": '{"path": "a/b.md"}'},
    }
    lost = {"id": "c2", "type": "function", "function": {"name": "lost", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "# Be brief"},
        {"role": "user", "content": "Read it."},
        {"role": "assistant", "content": "I look.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": TICKS},
    ]
    store.record("work", {"model": "m-1", "messages": messages})
    fields = {"role": "assistant", "content": "# A title\n```\nleft open"}
    messages += [fields, {"role": "user", "content": "Go on."}]
    calls = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [lost]}}]}
    store.record("work", {"model": "m-1", "messages": messages}, calls)


def test_a_line_of_chat_is_what_was_said_and_every_call_has_its_result() -> None:
    """A recorded chat leaves as its own messages; only a call that got no result, which no provider takes, is out."""
    store = memory_store()
    worked(store)
    (chat,) = chats(store)
    expected = store.session("work").wire.messages(call=2)
    for message in chat:
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.loads(call["function"]["arguments"])
    expected[2]["tool_calls"][0]["function"]["arguments"] = {"path": "a/b.md"}
    assert chat == expected


@pytest.mark.parametrize("format", ["chat", "markdown"])
def test_an_export_up_to_a_moment_ends_there(format: str) -> None:
    """What was said after the call that is named is in no line of it."""
    store = memory_store()
    worked(store)
    assert "Go on." in exported(store, format)
    text = exported(store, format, call=1)
    assert "I look." in text and "Go on." not in text


def test_every_session_is_a_line_and_forks_hold_their_past(tmp_path: Path) -> None:
    """A fork's line begins with what it inherits, its parent has no line unless asked for, and all can be imported."""
    store = memory_store()
    worked(store)
    store.session("work").fork("again", call=1)
    store.record("again", {"model": "m-1", "messages": [{"role": "user", "content": "Another way."}]})
    ((*before, last),) = chats(store, "again")
    assert before == chats(store, "work", call=1)[0] and last["content"] == "Another way."
    (tmp_path / "a.jsonl").write_text(exported(store, "chat"))
    again = memory_store().import_file(tmp_path / "a.jsonl")
    assert [session.format for session in again.sessions] == ["chat-completions"] * 2


def test_every_shape_leaves_as_chat_messages() -> None:
    """A conversation in Anthropic's shape has its call and result as chat completions have them, and no thoughts."""
    store = memory_store()
    ask = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "map"}}
    messages = [
        {"role": "user", "content": "Where is Kyoto?"},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "s"}, ask]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Japan"}]},
    ]
    store.record("s", {"model": "claude-x", "max_tokens": 9, "system": "Be brief.", "messages": messages})
    (chat,) = chats(store)
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "tool"]
    assert chat[2]["tool_calls"][0]["function"] == {"name": "look", "arguments": '{"at": "map"}'}
    assert chat[3] == {"role": "tool", "tool_call_id": "t1", "content": "Japan"}
    text = exported(store, "markdown")
    assert "*thought*\n\n```text\nHm.\n```" in text and "**tool**\n\n`look map` →\n\n```text\nJapan\n```" in text


def test_markdown_has_a_heading_a_turn_and_no_other() -> None:
    """Headings and fences within texts are fenced, a result in a longer fence than any in it, calls are their line."""
    store = memory_store()
    worked(store)
    text = exported(store, "markdown")
    assert headed(text) == ["# work", "## Turn 1", "## Turn 2"]
    assert f"`````text\n{TICKS}\n`````" in text and '`→ read({"path": "a/b.md"})`' in text
    assert "`→ lost()`" in text and "**user**\n\nGo on.\n" in text


def test_markdown_marks_a_compaction() -> None:
    """Where a summary replaced pages a break says how many, with the summary; chat has what was said, no summary."""
    store = memory_store()
    (made,) = talked(store).lineage.compactions()
    text = exported(store, "markdown")
    mark = (
        f"---\n\n*Compaction: 2 pages of {made.tokens} tokens left the prompt for this summary.*\n\n```text\n<summary>"
    )
    assert text.count(mark) == 1 and text.index("Where is Kyoto") < text.index("And Nara?") < text.index(mark)
    assert [message["content"][:5] for message in chats(store)[0]] == ["Where", "In Ja", "And N"]


@pytest.mark.parametrize("format", ["chat", "markdown"])
def test_conversations_leave_masked(tmp_path: Path, format: str) -> None:
    """No value and no image leaves, what was masked is counted, an approval or a word lifts it."""
    store = memory_store()
    store.record(
        "s", {"model": "m", "messages": [PICTURE, ASK, CALL, RESULT]}, answer({"role": "assistant", "content": "ok"})
    )
    made = store.export(tmp_path / "masked", format=format)
    text = (tmp_path / "masked").read_text()
    assert not any(value in text for value in (*VALUES, PNG)) and "[PASSWORD 1]" in text
    assert (made.redacted, set(made.masked), made.unseen) == (True, {"password", "api_key", "email"}, 1)
    assert made.bytes == len(text.encode())
    plain = exported(store, format, redact=False)
    assert all(value in plain for value in VALUES) and (PNG in plain) == (format == "chat")
    vmstore.approve(store, format, who="Ada")
    assert store.export(tmp_path / "approved", format=format).approved == ["Ada"]
    assert (tmp_path / "approved").read_text() == plain


@pytest.mark.parametrize("format", ["chat", "markdown"])
def test_names_leave_masked_too(format: str) -> None:
    """No value leaves in the name of a session, of a tool or of a call, nor in a compaction's summary."""
    store = memory_store()
    secret = {"id": KEY, "type": "function", "function": {"name": KEY, "arguments": "{}"}}
    call = {"role": "assistant", "content": None, "tool_calls": [secret]}
    result = {"role": "tool", "tool_call_id": KEY, "content": "done"}
    store.record(f"of {MAIL}", {"model": "m", "messages": [{"role": "user", "content": "go"}, call, result]})
    talked(store, f"{MAIL} asked")
    plain, text = exported(store, format, redact=False), exported(store, format)
    assert KEY in plain and plain.count(MAIL) == (0 if format == "chat" else 2)
    assert KEY not in text and MAIL not in text and text.count("[EMAIL 1]") == plain.count(MAIL)


@pytest.mark.parametrize("format", ["chat", "markdown"])
@pytest.mark.parametrize("modality", ["structured", "image"])
def test_an_erased_call_or_picture_says_so(format: str, modality: str) -> None:
    """A call or a picture that was erased leaves as the words that say so."""
    store = memory_store()
    worked(store)
    store.record("seen", {"model": "m", "messages": [PICTURE]})
    place = next((s, page.page) for s in ("work", "seen") for page in store.session(s).pages(modality=modality))
    vmstore.erase(store, page=place[1], in_session=place[0])
    text = exported(store, format, redact=False)
    assert ("a/b.md" if modality == "structured" else PNG) not in text and "[erased at position " in text


@pytest.mark.parametrize("format", ["chat", "markdown"])
def test_what_was_erased_stays_out(format: str) -> None:
    """Erased words are in no conversation; where they stood it says that they were erased."""
    store = memory_store()
    worked(store)
    page = next(
        page.page for page in store.session("work").pages() if store.session("work").content(page.page) == b"Read it."
    )
    vmstore.erase(store, page=page, in_session="work")
    text = exported(store, format)
    assert "Read it." not in text and "[erased at position " in text


def test_a_conversation_is_not_exact(tmp_path: Path) -> None:
    """Only a bundle can be exact."""
    store = memory_store()
    worked(store)
    with refused("not-a-bundle", InputError):
        store.export(tmp_path / "x", format="markdown", exact=True)
