"""Chat-completions files in all their forms, and the key `vm` beside their messages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import vmstore
from vmstore.capture.importers.formats import read
from vmstore.capture.steps import CallStep, MessageStep, MetadataStep, ParsedSource, Step, SummaryStep, UnreadableStep
from vmstore.core.draft import Draft, TokenUsage
from vmstore.core.page import LinkKind, PageType, Role, Slot, Status
from vmstore.providers import Shape, give_message, give_request

SYSTEM = {"role": "system", "content": "be brief"}
ASK = {"role": "user", "content": "what is in the shop?"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "shop", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "apples"}
END = {"role": "assistant", "content": "apples"}
TALK: list[dict[str, Any]] = [SYSTEM, ASK, CALL, RESULT, END]


def message_of(draft: Draft) -> Any:
    return give_message(draft.skeleton, [part.content for part in draft.parts])


def draft_of(step: Step) -> Draft:
    assert isinstance(step, (MessageStep, CallStep, SummaryStep))
    return step.reply.drafts[0] if isinstance(step, CallStep) else step.draft


def from_lines(path: Path, *records: Any) -> ParsedSource:
    file = path / "talk"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    reading = read(file)
    assert reading.format == "chat-completions"
    return reading


def from_document(path: Path, document: Any, indent: int | None = None) -> ParsedSource:
    file = path / "talk"
    file.write_text(json.dumps(document, indent=indent))
    reading = read(file)
    assert reading.format == "chat-completions"
    return reading


def steps(path: Path, *records: Any) -> list[Step]:
    return list(from_lines(path, *records).tracks[0].steps)


def test_a_list_and_lines_are_the_same_conversation(tmp_path: Path) -> None:
    """A JSON list of messages and one message per line read alike, each message equal."""
    listed = from_document(tmp_path, TALK, indent=2).tracks
    lined = from_lines(tmp_path, *TALK).tracks
    for track in (*listed, *lined):
        assert track.key is None
        assert [type(step) for step in track.steps] == [MessageStep, MessageStep, CallStep, MessageStep, CallStep]
        assert [message_of(draft_of(step)) for step in track.steps] == TALK
        assert [step.line for step in track.steps] == [1, 2, 3, 4, 5]
    assert len(listed) == len(lined) == 1


def test_an_assistant_message_is_a_derived_call(tmp_path: Path) -> None:
    """Its request is not in the file, its tokens are unknown, and asking for a tool is not the end."""
    asks, ends = (step for step in steps(tmp_path, *TALK) if isinstance(step, CallStep))
    assert asks.request is None
    assert (asks.reply.status, asks.reply.usage) == (Status.OK, TokenUsage())
    assert (asks.reply.final, ends.reply.final) == (False, True)


def test_a_tool_message_answers_its_call(tmp_path: Path) -> None:
    """A tool's output is an artifact that names the call, and opens no turn."""
    say = steps(tmp_path, *TALK)[3]
    assert isinstance(say, MessageStep)
    (part,) = say.draft.parts
    assert (part.call_id, part.is_result, part.type) == ("c1", True, PageType.ARTIFACT)
    assert not say.draft.human


def test_an_object_with_messages_is_one_conversation(tmp_path: Path) -> None:
    """Its tools come first, its other fields are noted, its model is each answer's."""
    tools = [{"type": "function", "function": {"name": "shop"}}]
    body = {"model": "m-1", "temperature": 0, "tools": tools, "messages": TALK}
    (track,) = from_document(tmp_path, body, indent=1).tracks
    note, schemas, *rest = track.steps
    assert isinstance(note, MetadataStep)
    assert json.loads(note.aside)["temperature"] == 0
    assert isinstance(schemas, MessageStep)
    assert (schemas.draft.slot, message_of(schemas.draft)) == (Slot.TOOLS, tools)
    assert [message_of(draft_of(step)) for step in rest] == TALK
    assert {step.reply.model for step in rest if isinstance(step, CallStep)} == {"m-1"}


def test_lines_of_conversations_are_a_track_each(tmp_path: Path) -> None:
    """Each line is a session of its own; a line that is none stays with the one before."""
    file = tmp_path / "talks.jsonl"
    row = json.dumps({"messages": TALK})
    strange = '{"messages": [], "temperature": NaN}'  # no request can say that
    file.write_text(f"{row}\n{{broken\n{strange}\n{row}\n")
    tracks = read(file).tracks
    assert [(track.part, track.name, track.key) for track in tracks] == [
        ("1", "talks-1", None),
        ("4", "talks-4", None),
    ]
    assert [type(step) for step in tracks[0].steps] == [
        MessageStep,
        MessageStep,
        CallStep,
        MessageStep,
        CallStep,
        UnreadableStep,
        UnreadableStep,
    ]
    assert [step.line for step in tracks[1].steps] == [4] * 5


def test_a_second_conversation_does_not_rename_the_first(tmp_path: Path) -> None:
    """A file with one conversation so far already calls it by its line."""
    tracks = from_lines(tmp_path, {"messages": TALK}).tracks
    two = from_lines(tmp_path, {"messages": TALK}, {"messages": [ASK]}).tracks
    assert [track.part for track in tracks] == ["1"]
    assert [track.part for track in two] == ["1", "2"]


def test_exchanges_are_recorded_calls(tmp_path: Path) -> None:
    """Each line's request is kept equal in every field, its response is the reply."""
    request = {"model": "m", "messages": [SYSTEM, ASK], "temperature": 0.5}
    response = {
        "id": "r1",
        "model": "m-2025",
        "choices": [{"index": 0, "message": END, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 3},
    }
    at = "1970-01-01T00:00:02Z"
    (answer,) = steps(tmp_path, {"request": request, "response": response, "at": at, "trace": "t"})
    assert isinstance(answer, CallStep)
    assert answer.request is not None and answer.rest is not None
    messages = [(draft.slot, message_of(draft)) for draft in answer.request]
    assert give_request(Shape.CHAT, answer.rest, messages) == request
    assert message_of(answer.reply.drafts[0]) == END
    assert (answer.reply.model, answer.reply.final, answer.at) == ("m-2025", True, 2_000_000)
    assert (answer.reply.usage.tokens_in, answer.reply.usage.tokens_out) == (12, 3)
    assert json.loads(answer.reply.aside or b"")["exchange"] == {"at": at, "trace": "t"}


def test_an_exchange_in_anthropic_words_is_read(tmp_path: Path) -> None:
    """The shape is told by each request, not by the name of the format."""
    request = {"model": "c", "max_tokens": 9, "system": "be brief", "messages": [ASK]}
    response = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "text", "text": "hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1},
    }
    file = tmp_path / "talk"
    file.write_text(json.dumps({"request": request, "response": response}) + "\n")
    (answer,) = read(file).tracks[0].steps
    assert isinstance(answer, CallStep) and answer.request is not None
    assert [draft.slot for draft in answer.request] == [Slot.SYSTEM, Slot.MESSAGES]
    assert (answer.reply.usage.tokens_in, answer.reply.usage.tokens_cached) == (12, 7)
    assert answer.reply.model == "c"


def test_an_exchange_without_an_answer_failed_or_was_aborted(tmp_path: Path) -> None:
    """A call that brought nothing back counts, with its error where one is given, and joins nothing."""
    request = {"model": "m", "messages": [ASK]}
    why = {"message": "busy"}
    aborted, failed = steps(tmp_path, {"request": request}, {"request": request, "error": why})
    assert isinstance(aborted, CallStep) and isinstance(failed, CallStep)
    assert (aborted.reply.status, aborted.joins) == (Status.ABORTED, False)
    assert (failed.reply.status, failed.reply.error) == (Status.FAILED, "busy")


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("hello", "no object with a role"),
        ({"contenst": "x"}, "no object with a role"),
        ({"role": "user", "contenst": "x"}, "role 'user' without content"),
        ({"role": "user", "content": "x", "vm": "y"}, "vm is str"),
        ({"request": {"model": "m"}}, "its messages"),
        ({"role": "user", "content": "x", "vm": {"keeps_from": "nobody"}}, "no earlier message has that ID"),
    ],
)
def test_a_line_nobody_can_read_is_kept(tmp_path: Path, record: Any, why: str) -> None:
    """A malformed record among messages is a step with its bytes and the reason."""
    _, stray, last = steps(tmp_path, ASK, record, END)
    assert isinstance(stray, UnreadableStep)
    assert why in stray.reason
    assert json.loads(stray.raw) == record
    assert isinstance(last, CallStep)


def test_a_torn_end_is_left_for_the_next_time(tmp_path: Path) -> None:
    """The line being written is no step, and is said."""
    file = tmp_path / "talk.jsonl"
    file.write_text(json.dumps(ASK) + '\n{"role": "assis')
    reading = read(file)
    assert len(list(reading.tracks[0].steps)) == 1
    assert reading.torn is not None
    assert reading.torn.line == 2


def test_a_header_names_the_session(tmp_path: Path) -> None:
    """Session, title, agent and user of the header are the track's; the header is a note."""
    vm = {"session": "s-9", "title": "Shop", "agent": "clerk", "user": "ann"}
    (track,) = from_lines(tmp_path, {"vm": vm}, ASK).tracks
    assert (track.key, track.name) == ("s-9", "s-9")
    assert (track.title, track.agent, track.user) == ("Shop", "clerk", "ann")
    note, say = track.steps
    assert isinstance(note, MetadataStep)
    assert json.loads(note.aside) == vm
    assert isinstance(say, MessageStep)


def test_what_vm_says_is_kept_beside_the_message(tmp_path: Path) -> None:
    """Name, moment, type and sources reach the draft; the message itself comes back without them."""
    vm = {
        "id": "claim_2",
        "at": "1970-01-01T00:00:01Z",
        "type": "claim",
        "derives": ["msg_1", "msg_2"],
        "supersedes": ["claim_1"],
        "references": ["doc"],
    }
    (say,) = steps(tmp_path, {"role": "user", "content": "Postgres it is", "vm": vm})
    assert isinstance(say, MessageStep)
    assert message_of(say.draft) == {"role": "user", "content": "Postgres it is"}
    assert (say.at, say.draft.hint) == (1_000_000, "claim_2")
    assert say.draft.links == (
        (LinkKind.DERIVES, "msg_1"),
        (LinkKind.DERIVES, "msg_2"),
        (LinkKind.SUPERSEDES, "claim_1"),
        (LinkKind.REFERENCES, "doc"),
    )
    assert say.draft.parts[0].type is PageType.CLAIM
    assert json.loads(say.draft.aside or b"") == vm
    assert not say.draft.human


def test_a_person_stays_a_person_with_a_vm_key(tmp_path: Path) -> None:
    """A named message of no type, an unknown one or a transcript's still opens a turn."""
    for vm in ({"id": "m1"}, {"type": "transcript"}, {"type": "poem"}):
        (say,) = steps(tmp_path, {**ASK, "vm": vm})
        assert isinstance(say, MessageStep)
        assert say.draft.human
        assert say.draft.parts[0].type is PageType.TRANSCRIPT


def test_vm_reports_what_a_call_used(tmp_path: Path) -> None:
    """Usage, model, latency and cost of an answer come from beside it."""
    vm = {
        "usage": {"tokens_in": 100, "tokens_cached": 90, "tokens_out": 7},
        "model": "m-1",
        "latency_ms": 1.5,
        "cost_usd": 0.00025,
    }
    (answer,) = steps(tmp_path, {**END, "vm": vm})
    assert isinstance(answer, CallStep)
    assert answer.reply.usage == TokenUsage(100, 90, 7, 250_000, 1500)
    assert answer.reply.model == "m-1"


def test_a_summary_takes_the_place_of_what_was_before(tmp_path: Path) -> None:
    """`keeps_from` names the first message that stays, null keeps none; the summary is nobody's word."""
    actual_steps = steps(
        tmp_path,
        {"vm": {"session": "s"}},
        {**ASK, "vm": {"id": "a"}},
        {**END, "vm": {"id": "b"}},
        {"role": "user", "content": "so far", "vm": {"id": "c", "keeps_from": "b", "derives": ["a"]}},
        {"role": "system", "content": "again", "vm": {"keeps_from": "c", "type": "claim"}},
        {"role": "user", "content": "nothing", "vm": {"keeps_from": None}},
    )
    compacts = [step for step in actual_steps if isinstance(step, SummaryStep)]
    assert [step.kept_from for step in compacts] == [2, 3, None]
    types = [step.draft.parts[0].type for step in compacts]
    assert types == [PageType.SUMMARY, PageType.CLAIM, PageType.SUMMARY]
    assert [step.draft.role for step in compacts] == [Role.USER, Role.SYSTEM, Role.USER]
    assert not any(step.draft.human for step in compacts)


def test_vm_says_what_pages_are_born_with(tmp_path: Path) -> None:
    """Tags, importance and actor of a message are its pages' own from the beginning; what is none is left out."""
    note = {"tags": ["db", "db", 5, "open"], "importance": 0.9, "actor": "curator", "type": "claim"}
    wrong = {"tags": "db", "importance": 7, "actor": 5}
    path = tmp_path / "chat.jsonl"
    records = [{**ASK, "vm": note}, {**END, "vm": wrong}]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    with vmstore.memory_store() as store:
        (name,) = [session.session for session in store.import_file(path).sessions]
        session = store.session(name)
        rows = [(page.tags, page.importance, page.actor) for page in session.pages()]
        assert rows == [(["db", "open"], 0.9, "curator"), ([], 0.5, "assistant")]
        assert session.pages(tag="db") == session.pages(actor="curator") == session.pages(importance_min=0.8)


def test_what_was_said_of_an_import_stays_when_it_grows(tmp_path: Path) -> None:
    """A file that grew after a page of it was annotated adds its new part, and what was said of the page stays."""
    path = tmp_path / "chat.jsonl"
    path.write_text(json.dumps(ASK) + "\n" + json.dumps(END) + "\n")
    with vmstore.memory_store() as store:
        (name,) = [session.session for session in store.import_file(path).sessions]
        session = store.session(name)
        page = session.pages()[0].page
        session.annotate(page, tags=["kept"])
        with path.open("a") as file:
            file.write(json.dumps({"role": "user", "content": "and on"}) + "\n")
        assert store.import_file(path).new == 1
        assert [page.tags for page in session.pages()] == [["kept"], [], []]
        assert store.import_file(path).new == 0
        assert store.verify().ok
