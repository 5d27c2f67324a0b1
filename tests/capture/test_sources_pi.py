"""pi sessions: what the agent held as its conversation, entry by entry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vmstore.capture.importers.formats import read
from vmstore.capture.steps import (
    CallStep,
    MessageStep,
    MetadataStep,
    ParsedSource,
    Step,
    SummaryStep,
    Track,
    UnreadableStep,
)
from vmstore.core.draft import Draft, TokenUsage
from vmstore.core.page import Mime, Modality, Origin, PageType, Role, Status
from vmstore.providers import give_message

HEADER = {"type": "session", "id": "s-1", "timestamp": "2025-01-01T00:00:00Z", "cwd": "/w"}
SEEN = ("role", "content", "toolCallId", "toolName", "isError")
AT = "2025-01-01T00:00:01Z"


def message_of(draft: Draft) -> Any:
    return give_message(draft.skeleton, [part.content for part in draft.parts])


def user(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "message", "timestamp": AT, "message": {"role": "user", "content": content}, **more}


def reply_line(content: list[Any], stop: str = "stop", **more: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": content, "model": "m", "stopReason": stop}
    return {"type": "message", "timestamp": AT, "message": {**message, **more.pop("fields", {})}, **more}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def call(name: str) -> dict[str, Any]:
    return {"type": "toolCall", "id": name, "name": "bash", "arguments": {"command": "ls"}}


def reading(path: Path, *records: Any) -> ParsedSource:
    file = path / "whatever.txt"
    file.write_text("".join(json.dumps(record) + "\n" for record in (HEADER, *records)))
    return read(file)


def steps(path: Path, *records: Any) -> list[Step]:
    return list(reading(path, *records).tracks[0].steps)


@pytest.fixture(scope="module")
def session(data: Path) -> Track:
    result = read(data / "pi" / "before-compaction.jsonl")
    assert result.format == "pi"
    assert result.torn is None
    assert len(result.tracks) == 1
    return result.tracks[0]


@pytest.fixture(scope="module")
def records(data: Path) -> list[Any]:
    with (data / "pi" / "before-compaction.jsonl").open() as file:
        return [json.loads(line) for line in file]


def test_every_line_of_the_recorded_session_is_one_step(session: Track, data: Path) -> None:
    """Each line is a step in order, with its exact bytes."""
    raw = (data / "pi" / "before-compaction.jsonl").read_bytes()
    assert b"".join(step.raw + b"\n" for step in session.steps) == raw
    assert session.key == session.name == "ffae836b-9420-4060-ac13-7745215f90ff"


def test_the_recorded_session_is_counted_exactly(session: Track) -> None:
    """990 messages: 484 calls (18 aborted, 1 failed), 506 others; two compactions, no line unread."""
    all_steps = list(session.steps)
    kinds = [type(step) for step in all_steps]
    assert [kinds.count(kind) for kind in (CallStep, MessageStep, SummaryStep, MetadataStep, UnreadableStep)] == [
        484,
        506,
        2,
        11,
        0,
    ]
    statuses = [step.reply.status for step in all_steps if isinstance(step, CallStep)]
    assert (statuses.count(Status.ABORTED), statuses.count(Status.FAILED)) == (18, 1)
    assert sum(step.draft.human for step in all_steps if isinstance(step, MessageStep)) == 55
    assert sum(step.reply.final for step in all_steps if isinstance(step, CallStep)) == 31


def test_recorded_messages_come_back_equal(session: Track, records: list[Any]) -> None:
    """Each message is given back equal in every field the model can have seen, tools never run left out."""
    compared = 0
    for step, record in zip(session.steps, records, strict=True):
        message = record.get("message", {})
        if message.get("role") not in ("user", "assistant", "toolResult") or message["content"] == []:
            continue
        seen = {key: message[key] for key in message if key in SEEN}
        if message.get("stopReason") == "aborted":
            seen["content"] = [block for block in seen["content"] if block["type"] != "toolCall"]
            if not seen["content"]:
                continue
        draft = step.draft if isinstance(step, MessageStep) else step.reply.drafts[0]  # type: ignore[attr-defined]
        assert message_of(draft) == seen
        compared += 1
    assert compared == 987 - 13 - 1


def test_recorded_compactions_keep_what_pi_kept(session: Track, records: list[Any]) -> None:
    """Both compactions keep from the user message their entry index names."""
    steps = [step for step in session.steps if isinstance(step, SummaryStep)]
    assert [step.kept_from for step in steps] == [293, 551]
    for step in steps:
        assert step.kept_from is not None
        kept = list(session.steps)[step.kept_from]
        assert isinstance(kept, MessageStep)
        assert kept.draft.human
        summary = records[step.line - 1]["summary"]
        assert [part.content.decode() for part in step.draft.parts] == [summary]
        assert step.draft.parts[0].type is PageType.SUMMARY
        assert not step.draft.human


def test_recorded_usage_adds_up(session: Track, records: list[Any]) -> None:
    """Tokens in are all that was sent, cached or not; usage of zeros alone reports nothing."""
    answers = [step for step in session.steps if isinstance(step, CallStep)]
    for step in answers:
        usage = records[step.line - 1]["message"]["usage"]
        if usage["totalTokens"] == 0:
            assert step.reply.usage == TokenUsage()
            continue
        assert step.reply.usage.tokens_in == usage["totalTokens"] - usage["output"]
        assert step.reply.usage.tokens_cached == usage["cacheRead"]
        assert step.reply.usage.tokens_out == usage["output"]
        assert step.reply.usage.cost == pytest.approx(usage["cost"]["total"] * 1e9, abs=1)
    assert sum(step.reply.usage == TokenUsage() for step in answers) == 13


def test_recorded_results_answer_recorded_calls(session: Track) -> None:
    """Each of the 448 tool results names a call an earlier answer made, on a part that is an artifact."""
    made: set[str] = set()
    results = 0
    for step in session.steps:
        if isinstance(step, CallStep):
            made |= {p.call_id for d in step.reply.drafts for p in d.parts if p.is_call and p.call_id}
        elif isinstance(step, MessageStep) and step.draft.role is Role.TOOL:
            for part in step.draft.parts:
                assert (part.is_result, part.type) == (True, PageType.ARTIFACT)
                assert part.call_id in made
            results += 1
    assert results == 448


def test_an_aborted_answer_joins_its_words_without_its_calls(tmp_path: Path) -> None:
    """What was said stays in the conversation, the calls that never ran are kept beside it."""
    record = reply_line([text("let me"), call("c1")], "aborted", fields={"errorMessage": "stopped"})
    answer = steps(tmp_path, record)[1]
    assert isinstance(answer, CallStep)
    assert answer.joins
    assert message_of(answer.reply.drafts[0]) == {"role": "assistant", "content": [text("let me")]}
    assert answer.reply.error == "stopped"
    assert not answer.reply.final
    assert json.loads(answer.reply.aside or b"")["dropped"] == [call("c1")]


def test_an_answer_nothing_is_left_of_joins_nothing(tmp_path: Path) -> None:
    """An empty answer and one of calls that never ran are kept as they stood and join nothing."""
    for content in ([], [call("c1")]):
        answer = steps(tmp_path, reply_line(content, "aborted"))[1]
        assert isinstance(answer, CallStep)
        assert not answer.joins
        assert [part.content for part in answer.reply.drafts[0].parts] == [b'{"role":"assistant","content":[]}']


def test_an_answer_that_asks_for_a_tool_is_not_final(tmp_path: Path) -> None:
    """Only an answer that ended well and asks for nothing lets the next person's word open a turn."""
    words = [text("a")]
    ends = [
        reply_line(words),
        reply_line([call("c1")], "toolUse"),
        reply_line(words, "length"),
        reply_line(words, "error"),
    ]
    actual = [step.reply.final for step in steps(tmp_path, *ends) if isinstance(step, CallStep)]
    assert actual == [True, False, True, False]


def test_a_command_the_person_ran_is_a_text_that_opens_no_turn(tmp_path: Path) -> None:
    """The model sees command, output and failure in one user text; the fields stay beside it."""
    message = {"role": "bashExecution", "command": "ls", "output": "a\nb", "exitCode": 2, "cancelled": False}
    say = steps(tmp_path, {"type": "message", "timestamp": AT, "message": message})[1]
    assert isinstance(say, MessageStep)
    assert say.draft.parts[0].content == b"Ran `ls`\n```\na\nb\n```\n\nCommand exited with code 2"
    assert (say.draft.role, say.draft.human) == (Role.USER, False)
    del message["role"], message["output"]
    assert json.loads(say.draft.aside or b"") == {"message": message}


def test_a_command_kept_from_the_model_is_a_note(tmp_path: Path) -> None:
    """What pi excludes from the context never joins the conversation."""
    message = {"role": "bashExecution", "command": "env", "output": "", "excludeFromContext": True}
    assert isinstance(steps(tmp_path, {"type": "message", "message": message})[1], MetadataStep)


def test_thinking_keeps_its_signature_in_the_skeleton(tmp_path: Path) -> None:
    """A thinking block is a page of its text alone and comes back whole."""
    block = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig=="}
    answer = steps(tmp_path, reply_line([block, text("ok")]))[1]
    assert isinstance(answer, CallStep)
    (draft,) = answer.reply.drafts
    assert [part.content for part in draft.parts] == [b"hm", b"ok"]
    assert message_of(draft)["content"] == [block, text("ok")]


def test_an_image_is_a_page_of_its_bytes(tmp_path: Path) -> None:
    """Base64 is decoded into the page and encoded again on the way out."""
    block = {"type": "image", "data": "iVBORw0=", "mimeType": "image/png"}
    say = steps(tmp_path, {"type": "message", "message": {"role": "user", "content": [block]}})[1]
    assert isinstance(say, MessageStep)
    part = say.draft.parts[0]
    assert (part.content, part.modality, part.mime) == (b"\x89PNG\r", Modality.IMAGE, Mime.PNG)
    assert message_of(say.draft)["content"] == [block]


def test_a_forged_hole_stays_content(tmp_path: Path) -> None:
    """A message whose fields look like holes comes back as it was."""
    content = [{"type": "text", "text": "x", "meta": {"\0t": 0}}]
    say = steps(tmp_path, {"type": "message", "message": {"role": "user", "content": content}})[1]
    assert isinstance(say, MessageStep)
    assert message_of(say.draft)["content"] == content


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"type": "message", "message": "hi"}, "no message object"),
        ({"type": "message", "message": {"role": "user", "contenst": []}}, "the content is NoneType"),
        ({"type": "message", "message": {"role": "user", "content": ["hi"]}}, "content part 0 is str"),
        ({"type": "message", "message": {"role": "wizard", "content": "hi"}}, "unknown role 'wizard'"),
        ({"type": "compaction", "firstKeptEntryIndex": 1}, "no summary text"),
        ({"type": "teleport"}, "unknown entry type 'teleport'"),
        (42, "unknown entry type None"),
    ],
)
def test_an_entry_nobody_can_read_is_kept(tmp_path: Path, record: Any, why: str) -> None:
    """A malformed or unknown entry is a step with its bytes and the reason."""
    step = steps(tmp_path, record)[1]
    assert isinstance(step, UnreadableStep)
    assert why in step.reason
    assert json.loads(step.raw) == record


def test_a_bad_date_in_a_readable_entry_is_none(tmp_path: Path) -> None:
    """A clock nobody can read costs the moment, not the message."""
    step = steps(tmp_path, {**user("hi"), "timestamp": "yesterday"})[1]
    assert isinstance(step, MessageStep)
    assert step.at is None
    assert json.loads(step.draft.aside or b"")["timestamp"] == "yesterday"


def test_unreadable_lines_do_not_shift_a_compaction(tmp_path: Path) -> None:
    """Entries are counted as pi counts them: a malformed line is a step, but no entry."""
    file = tmp_path / "s"
    compaction = {"type": "compaction", "summary": "so far", "firstKeptEntryIndex": 2}
    head, *rest = (json.dumps(record) for record in (HEADER, user("one"), user("two"), compaction))
    rows = [head, "{torn", *rest]
    file.write_text("\n".join(rows) + "\n")
    all_steps = list(read(file).tracks[0].steps)
    compact = all_steps[4]
    assert isinstance(compact, SummaryStep)
    assert compact.kept_from == 3
    assert all_steps[3].line == 4


def test_a_compaction_that_names_nothing_keeps_nothing(tmp_path: Path) -> None:
    """An index outside the file keeps no entry."""
    compaction = {"type": "compaction", "summary": "s", "firstKeptEntryIndex": 99}
    compact = steps(tmp_path, user("one"), compaction)[2]
    assert isinstance(compact, SummaryStep)
    assert compact.kept_from is None


def test_entries_that_name_parents_make_forks(tmp_path: Path) -> None:
    """The first child continues, a second one forks after the parent, a fork's own second child again."""
    result = reading(
        tmp_path,
        user("a", id="a", parentId=None),
        reply_line([text("b")], id="b", parentId="a"),
        user("c", id="c", parentId="b"),
        user("d", id="d", parentId="b"),
        reply_line([text("e")], id="e", parentId="d"),
        user("f", id="f", parentId="d"),
        user("g", id="g", parentId="c"),
    )
    shape = {track.part: (track.origin, track.parent, track.inherits) for track in result.tracks}
    assert shape == {"": (Origin.NEW, None, 0), "d": (Origin.FORK, "", 3), "f": (Origin.FORK, "d", 4)}
    lines = {track.part: [step.line for step in track.steps] for track in result.tracks}
    assert lines == {"": [1, 2, 3, 4, 8], "d": [5, 6], "f": [7]}
    assert [track.key for track in result.tracks] == ["s-1", "s-1#d", "s-1#f"]


def test_a_compaction_on_a_fork_counts_inherited_steps(tmp_path: Path) -> None:
    """What a compaction keeps is found by its entry's id, through the parent's steps."""
    result = reading(
        tmp_path,
        user("a", id="a"),
        user("b", id="b", parentId="a"),
        user("c", id="c", parentId="a"),
        {"type": "compaction", "id": "d", "parentId": "c", "summary": "s", "firstKeptEntryId": "a"},
        {"type": "compaction", "id": "e", "parentId": "d", "summary": "s", "firstKeptEntryId": "c"},
        {"type": "compaction", "id": "f", "parentId": "e", "summary": "s", "firstKeptEntryId": "b"},
    )
    fork = list(result.tracks[1].steps)
    kept = [step.kept_from for step in fork if isinstance(step, SummaryStep)]
    assert kept == [1, 2, None]  # b is not on the way to f


def test_a_setting_between_two_branches_is_passed_through(tmp_path: Path) -> None:
    """A message whose parent is a setting continues, or forks off, the setting's own parent."""
    result = reading(
        tmp_path,
        user("a", id="a"),
        user("b", id="b", parentId="a"),
        {"type": "model_change", "id": "m", "parentId": "a", "modelId": "x"},
        user("c", id="c", parentId="m"),
    )
    assert [(track.part, track.inherits) for track in result.tracks] == [("", 0), ("c", 2)]


def test_other_messages_of_newer_sessions_are_read(tmp_path: Path) -> None:
    """Branch summaries and custom messages reach the model, but are nobody's word; a name is a title."""
    actual_steps = steps(
        tmp_path,
        {"type": "branch_summary", "summary": "went there", "fromId": "x"},
        {"type": "custom_message", "customType": "hook", "content": "note", "display": True},
        {"type": "session_info", "name": "My session"},
    )
    branch, custom, info = actual_steps[1:]
    assert isinstance(branch, MessageStep) and isinstance(custom, MessageStep) and isinstance(info, MetadataStep)
    assert branch.draft.parts[0].type is PageType.SUMMARY
    assert (branch.draft.human, custom.draft.human) == (False, False)
    assert message_of(custom.draft) == {"role": "user", "content": "note"}
    assert info.title == "My session"
