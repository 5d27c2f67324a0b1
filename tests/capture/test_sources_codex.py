"""Codex rollouts: items, what calls used, and what compactions and rollbacks take away."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.capture.imports import codex, codex_count, in_lines
from tests.capture.words import ask, message, model_text, result, user
from tests.refusals import refused
from vmstore.capture.importers.formats import decompress, read
from vmstore.capture.steps import (
    CallStep,
    ContinuationStep,
    MessageRef,
    MessageStep,
    MetadataStep,
    ParsedSource,
    RewriteStep,
    Step,
    UnreadableStep,
)
from vmstore.core.draft import Draft, TokenUsage
from vmstore.core.page import PageType, Role, Slot, Status
from vmstore.errors import InputError
from vmstore.providers import give_message
from vmstore.store.store import memory_store

Record = dict[str, Any]

META = {"id": "cx-1", "cwd": "/w", "cli_version": "0.99", "base_instructions": {"text": "You write code."}}


def line(kind: str, payload: Any, **more: Any) -> Record:
    return {"timestamp": "2026-01-01T00:00:01.250Z", "type": kind, "payload": payload, **more}


def item(value: Any) -> Record:
    return line("response_item", message(value, "responses") if isinstance(value, tuple) else value)


def event(kind: str, **more: Any) -> Record:
    return line("event_msg", {"type": kind, **more})


def reading(path: Path, *records: Record, meta: Record = META) -> ParsedSource:
    file = path / "rollout-2026-01-01T00-00-00-cx.jsonl"
    file.write_text(in_lines([line("session_meta", meta), *records]))
    content = read(file)
    assert content.format == "codex"
    return content


def steps(path: Path, *records: Record) -> list[Step]:
    return list(reading(path, *records).tracks[0].steps)[1:]


def message_of(draft: Draft) -> Any:
    return give_message(draft.skeleton, [part.content for part in draft.parts])


THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "gAAA"}


def test_the_header_names_the_session_and_says_its_instructions(tmp_path: Path) -> None:
    """Its id is the session's, its base instructions stand as the system prompt, the rest is kept beside them."""
    (track,) = reading(tmp_path, meta={**META, "agent_nickname": "scout"}).tracks
    (step,) = track.steps
    assert (track.key, track.name, track.agent) == ("cx-1", "cx-1", "scout")
    assert (
        isinstance(step, MessageStep) and step.draft.slot is Slot.SYSTEM and message_of(step.draft) == "You write code."
    )
    assert step.draft.aside is not None and json.loads(step.draft.aside)["payload"]["cwd"] == "/w"
    assert step.at == 1_767_225_601_250_000


def test_a_second_header_is_a_note(tmp_path: Path) -> None:
    """In a copied session the header of the one it was copied from changes nothing."""
    track = reading(tmp_path, line("session_meta", {**META, "id": "older"})).tracks[0]
    assert track.key == "cx-1" and [type(step) for step in track.steps] == [MessageStep, MetadataStep]


def test_items_in_a_row_are_one_call(tmp_path: Path) -> None:
    """Reasoning, words and calls that follow each other answer one request; what a tool says ends them."""
    made = steps(
        tmp_path,
        line("turn_context", {"model": "m-7"}),
        item(user("go")),
        item(THOUGHT),
        item(model_text("looking")),
        item(ask("c1")),
        item(result("c1", "found")),
        item(model_text("done")),
    )
    assert [type(step) for step in made] == [
        MetadataStep,
        MessageStep,
        CallStep,
        ContinuationStep,
        ContinuationStep,
        MessageStep,
        CallStep,
    ]
    answers = [step for step in made if isinstance(step, CallStep | ContinuationStep)]
    assert [step.reply.final for step in answers] == [True, True, False, True]
    assert {step.reply.model for step in answers} == {"m-7"}
    assert message_of(answers[0].reply.drafts[0]) == THOUGHT
    asked, answered = answers[2].reply.drafts[0].parts[0], made[5].draft.parts[0]  # type: ignore[attr-defined]
    assert (asked.call_id, answered.call_id, answered.type) == ("c1", "c1", PageType.ARTIFACT)


def test_a_count_after_an_answer_is_its_own(tmp_path: Path) -> None:
    """It stands on the call that made the items, and the record of it repeats it."""
    made = steps(tmp_path, item(user("go")), item(THOUGHT), item(ask("c1")), codex_count(900), item(result("c1", "x")))
    used = TokenUsage(tokens_in=900, tokens_cached=10, tokens_out=5)
    assert [type(step) for step in made] == [MessageStep, CallStep, ContinuationStep, ContinuationStep, MessageStep]
    assert isinstance(made[1], CallStep) and made[1].reply.usage == used
    assert isinstance(made[3], ContinuationStep) and (made[3].reply.usage, made[3].reply.final) == (used, False)


def test_a_count_before_an_answer_is_of_that_answer(tmp_path: Path) -> None:
    """Older versions wrote what a call used before its items."""
    made = steps(tmp_path, item(user("go")), codex_count(900), item(model_text("done")))
    assert [type(step) for step in made] == [MessageStep, MetadataStep, CallStep]
    assert isinstance(made[2], CallStep) and made[2].reply.usage.tokens_in == 900


def test_a_count_told_again_and_one_of_nothing_are_notes(tmp_path: Path) -> None:
    """Rate limits repeat the last count, a compaction tells zeros; neither is a call's."""
    made = steps(
        tmp_path,
        item(user("go")),
        item(model_text("done")),
        codex_count(900),
        codex_count(900),
        event("token_count", info=None, rate_limits={}),
        codex_count(0) | line("event_msg", {"type": "token_count", "info": {"last_token_usage": {"input_tokens": 0}}}),
        item(user("more")),
        item(model_text("again")),
    )
    assert [type(step) for step in made] == [
        MessageStep,
        CallStep,
        ContinuationStep,
        MetadataStep,
        MetadataStep,
        MetadataStep,
        MessageStep,
        CallStep,
    ]
    assert isinstance(made[-1], CallStep) and made[-1].reply.usage == TokenUsage()


def test_a_record_of_usage_counts_like_an_event(tmp_path: Path) -> None:
    """The newer record of a response's usage is used, and told again as a count it changes nothing."""
    usage = {"input_tokens": 900, "cached_input_tokens": 10, "output_tokens": 5}
    made = steps(
        tmp_path,
        item(user("go")),
        item(model_text("done")),
        line("token_usage_record", {"response_id": "r1", "usage": usage}),
        codex_count(900),
    )
    assert [type(step) for step in made] == [MessageStep, CallStep, ContinuationStep, MetadataStep]
    assert isinstance(made[1], CallStep) and made[1].reply.usage.tokens_in == 900


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>x</environment_context>",
        "# AGENTS.md instructions for /w",
        "<turn_aborted>\nby user",
        '<hook_prompt hook_run_id="1">',
        " <skill>\nmend",
    ],
)
def test_words_of_the_program_are_nobodys(text: str, tmp_path: Path) -> None:
    """What the program writes in the person's place opens no turn; one part of a person's own is enough to."""
    own = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}] * 2}
    mixed = {**own, "content": [*own["content"], {"type": "input_text", "text": "mend it"}]}  # type: ignore[misc]
    humans = [step.draft.human for step in steps(tmp_path, item(own), item(mixed)) if isinstance(step, MessageStep)]
    assert humans == [False, True]


@pytest.mark.parametrize("text", ["<div>mend this</div>", "mend <environment_context>", "# AGENTS", "a < b_c > d"])
def test_words_of_a_person_stay_theirs(text: str, tmp_path: Path) -> None:
    """Tags that people paste, and the program's words within theirs, open a turn."""
    (step,) = steps(tmp_path, item(user(text)))
    assert isinstance(step, MessageStep) and step.draft.human


def test_a_compaction_replaces_the_items(tmp_path: Path) -> None:
    """What says the same stays the item it was, what is new stands in its place, a summary is one."""
    kept, summary = message(user("first"), "responses"), message(user("It went well."), "responses")
    closing = {"type": "compaction", "encrypted_content": "gBBB"}
    made = steps(
        tmp_path,
        item(user("first")),
        item(model_text("one")),
        item(user("second")),
        line("compacted", {"message": "It went well.", "replacement_history": [kept, summary, closing]}),
    )
    recast = made[-1]
    assert isinstance(recast, RewriteStep)
    first, second, third = recast.stands
    assert first == MessageRef(1)
    assert isinstance(second, Draft) and isinstance(third, Draft)
    assert [second.parts[0].type, third.parts[0].type] == [PageType.SUMMARY] * 2
    assert (second.human, message_of(second), message_of(third)) == (False, summary, closing)
    assert recast.aside is not None and json.loads(recast.aside)["payload"] == {"message": "It went well."}


def test_an_older_compaction_keeps_what_people_said(tmp_path: Path) -> None:
    """Without a list the person's and the program's words stay, and the message sums up the rest."""
    made = steps(
        tmp_path,
        item(user("first")),
        item(model_text("one")),
        item(user("second")),
        line("compacted", {"message": "sum"}),
    )
    recast = made[-1]
    assert isinstance(recast, RewriteStep) and recast.stands[:2] == (MessageRef(1), MessageRef(3))
    assert isinstance(recast.stands[2], Draft) and recast.stands[2].parts[0].content == b"sum"
    (note,) = steps(tmp_path, line("compacted", {}))
    assert isinstance(note, MetadataStep)


def test_a_rollback_takes_the_last_turns_away(tmp_path: Path) -> None:
    """It goes back to before the person's last words, or as many as it says."""
    talk = [item(case) for case in (user("a"), model_text("b"), user("c"), model_text("d"), user("e"), model_text("f"))]
    for turns, left in ((1, [1, 2, 3, 4]), (2, [1, 2]), (9, [])):
        recast = steps(tmp_path, *talk, event("thread_rolled_back", num_turns=turns))[-1]
        assert isinstance(recast, RewriteStep) and list(recast.stands) == [MessageRef(step) for step in left]
    assert isinstance(steps(tmp_path, *talk, event("thread_rolled_back", num_turns=0))[-1], MetadataStep)


def test_what_ends_a_call_that_left_nothing(tmp_path: Path) -> None:
    """An abort or an error while an answer is awaited is a call; after one, or after a stopped tool, a note."""
    aborted = steps(tmp_path, item(user("go")), event("turn_aborted", reason="interrupted"))[-1]
    assert isinstance(aborted, CallStep) and (aborted.reply.status, aborted.joins) == (Status.ABORTED, False)
    assert aborted.reply.error == "interrupted"
    failed = steps(tmp_path, item(user("go")), event("error", message="quota"), event("turn_aborted"))
    assert isinstance(failed[1], CallStep) and failed[1].reply.status is Status.FAILED
    assert [type(step) for step in failed] == [MessageStep, CallStep, MetadataStep]
    stopped = [item(user("go")), item(ask("c1")), item(result("c1", "aborted by user after 3.1s"))]
    assert isinstance(steps(tmp_path, *stopped, event("turn_aborted", reason="interrupted"))[-1], MetadataStep)


def test_a_title_is_taken_from_its_event(tmp_path: Path) -> None:
    """The name a person gave the thread is the session's title."""
    (note,) = steps(tmp_path, event("thread_name_updated", thread_name="Mend the tests"))
    assert isinstance(note, MetadataStep) and note.title == "Mend the tests"


def test_notes_and_strange_lines(tmp_path: Path) -> None:
    """Known bookkeeping is kept beside the conversation, what nobody knows as it stands with the reason."""
    snapshot = {"type": "ghost_snapshot", "ghost_commit": {"id": "x"}}
    made = steps(tmp_path, line("world_state", {"full": True}), item(snapshot), event("agent_message", message="x"))
    assert [type(step) for step in made] == [MetadataStep, MetadataStep, MetadataStep]
    odd = steps(tmp_path, line("telepathy", {}), line("response_item", {"role": "user"}), {"x": 1})
    assert [step.reason for step in odd if isinstance(step, UnreadableStep)] == [
        "unknown record type 'telepathy'",
        "an item without a type",
        "unknown record type None",
    ]


def test_lines_that_no_one_can_read_are_named(tmp_path: Path) -> None:
    """Null bytes, half a line in the middle and a torn end are what they are for every format."""
    file = tmp_path / "r.jsonl"
    whole = in_lines([line("session_meta", META), item(user("go")), item(model_text("done"))]).encode()
    file.write_bytes(whole.replace(b"\n", b"\n\0\0\0\n{half\n", 1) + b'{"timestamp": "2026')
    source = read(file)
    made = list(source.tracks[0].steps)
    assert [type(step) for step in made] == [MessageStep, UnreadableStep, UnreadableStep, MessageStep, CallStep]
    assert source.torn is not None and source.torn.line == 6


def test_the_first_versions_wrote_items_bare(tmp_path: Path) -> None:
    """A header without a type, items without a payload and snapshots of the program's own are read too."""
    head = {"id": "old-1", "timestamp": "2025-06-01T00:00:00Z", "instructions": None, "git": {}}
    file = tmp_path / "r.jsonl"
    bare = [message(case, "responses") for case in (user("go"), model_text("done"))]
    file.write_text(in_lines([head, {"record_type": "state"}, *bare]))
    (track,) = read(file).tracks
    assert (track.key, [type(step) for step in track.steps]) == (
        "old-1",
        [MetadataStep, MetadataStep, MessageStep, CallStep],
    )


# ---- in a store


def test_a_compaction_makes_pages_leave(tmp_path: Path) -> None:
    """The next call sees what the compaction lists; its summary derives from what left, the prompt stays."""
    kept, summary = message(user("first"), "responses"), message(user("It went well."), "responses")
    file = tmp_path / "r.jsonl"
    records = [
        line("session_meta", META),
        *map(item, (user("first"), model_text("one"), user("second"), model_text("two"))),
        line("compacted", {"message": "It went well.", "replacement_history": [kept, summary]}),
        *map(item, (user("third"), model_text("three"))),
    ]
    file.write_text(in_lines(records))
    with memory_store() as store:
        store.import_file(file)
        session = store.session("cx-1")
        before, after = session.context(call=2), session.context(call=3)
        texts = [after.contents()[page.page].decode() for page in after.pages]
        assert texts == ["You write code.", "first", "It went well.", "third"]
        assert after.pages[1].page == before.pages[1].page
        (sums_up,) = [page.page for page in after.pages if page.type == "summary"]
        assert {link.text for link in session.lineage.ancestors(sums_up)} == {"one", "second", "two"}
        assert [call.turn for call in session.calls()] == [1, 2, 3]
        assert store.verify().ok


@pytest.mark.parametrize("cut", [4, 6, 7, 8])
def test_a_rollout_grown_by_parts_is_the_whole(cut: int, tmp_path: Path) -> None:
    """However it grew over a compaction and a rollback, the contexts are those of the file read at once."""
    kept = message(user("first"), "responses")
    records = [
        line("session_meta", META),
        *map(item, (user("first"), model_text("one"), user("second"), model_text("two"))),
        line("compacted", {"message": "sum", "replacement_history": [kept, message(user("sum"), "responses")]}),
        *map(item, (user("third"), model_text("three"))),
        event("thread_rolled_back", num_turns=1),
        *map(item, (user("fourth"), model_text("four"))),
    ]
    file = tmp_path / "r.jsonl"
    with memory_store() as grown, memory_store() as whole:
        for end in (cut, len(records)):
            file.write_text(in_lines(records[:end]))
            grown.import_file(file)
        whole.import_file(file)
        for call in (1, 2, 3, 4):
            first, other = (store.session("cx-1").context(call=call) for store in (grown, whole))
            assert first.messages() == other.messages()
        last = [message["content"] for message in grown.session("cx-1").context(call=4).messages()]
        assert [str(content) for content in last if "third" in str(content)] == []
        assert grown.verify().ok


def test_the_tools_nobody_wrote_down_are_the_opaque_page(tmp_path: Path) -> None:
    """Call 1 sums to what was reported; imported before its count was there, call 2 does."""
    file = tmp_path / "r.jsonl"
    records = codex(2)
    with memory_store() as whole, memory_store() as grown:
        file.write_text(in_lines(records))
        whole.import_file(file)
        assert whole.session("cx-1").context(call=1).tokens == 2000
        for end in (5, len(records)):
            file.write_text(in_lines(records[:end]))
            grown.import_file(file)
        session = grown.session("cx-1")
        assert [call.tokens_reported for call in session.calls()] == [2000, 2001, 2002, 2003]
        assert session.context(call=1).tokens < 100 < session.context(call=2).tokens
        assert session.context(call=2).factor < 1.2
        assert whole.verify().ok and grown.verify().ok


def test_a_packed_rollout_is_the_same_session(tmp_path: Path) -> None:
    """Packed with zstd, in one frame or several, a rollout is the source that it was, and grows."""
    plain, small = tmp_path / "r.jsonl", tmp_path / "r.jsonl.zst"
    first, more = in_lines(codex(1)).encode(), in_lines(codex(2)).encode()
    with memory_store() as store:
        plain.write_bytes(first)
        store.import_file(plain)
        small.write_bytes(zstandard.compress(first))
        assert store.import_file(small).new == 0
        small.write_bytes(zstandard.compress(first) + zstandard.compress(more[len(first) :]))
        assert store.import_file(small).new == 8
        assert [info.session for info in store.sessions()] == ["cx-1"]


def test_a_packed_file_without_a_name_is_called_like_the_file(tmp_path: Path) -> None:
    """The ending of the packing is no part of the session's name."""
    file = tmp_path / "talk.jsonl.zst"
    file.write_bytes(zstandard.compress(in_lines([message(user("hi")), message(model_text("yo"))]).encode()))
    with memory_store() as store:
        assert store.import_file(file).sessions[0].session == "talk"


def test_a_packed_file_cut_short_is_torn(tmp_path: Path) -> None:
    """What was whole is read, the line that is cut is left for the next import."""
    file = tmp_path / "r.jsonl.zst"
    text = "".join(f'{{"role": "user", "content": "{n:x}{n * 7919:x}{n * 104729:b}"}}\n' for n in range(8_000))
    data = zstandard.compress(text.encode())
    file.write_bytes(data[: len(data) // 2])
    source = read(file)
    assert source.torn is not None and 0 < len(list(source.tracks[0].steps)) < 8_000


def test_a_packed_file_that_is_damaged_is_refused(tmp_path: Path) -> None:
    """A file that only begins like one is named, with the remedy."""
    file = tmp_path / "r.jsonl.zst"
    file.write_bytes(decompress.MAGIC + b"\xff" * 100)
    with refused("damaged-file", InputError):
        read(file)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small file that would fill the memory is refused as soon as it holds more than is read."""
    monkeypatch.setattr(decompress, "UNPACKED_BYTES_MAX", 3 << 20)
    file = tmp_path / "r.jsonl.zst"
    file.write_bytes(zstandard.compress(bytes(64 << 20)))
    with refused("too-large", InputError, "3,145,728"):
        read(file)
    file.write_bytes(zstandard.compress(in_lines(codex(1)).encode()))
    assert read(file).format == "codex"


@pytest.mark.parametrize("text", ["xxx", "[],"])
def test_a_packed_gigantic_line_is_kept_and_never_parsed(tmp_path: Path, text: str) -> None:
    """A line of 42 MiB within a packed rollout is one raw page, named, and the rest is read, whatever is in it."""
    file = tmp_path / "r.jsonl.zst"
    big = json.dumps(item(user(text * (14 << 20))))
    text = in_lines([line("session_meta", META), item(user("go"))]) + big + "\n" + in_lines([item(model_text("done"))])
    file.write_bytes(zstandard.compress(text.encode()))
    made = list(read(file).tracks[0].steps)
    assert [type(step) for step in made] == [MessageStep, MessageStep, UnreadableStep, CallStep]
    assert isinstance(made[2], UnreadableStep) and made[2].reason.startswith("gigantic: ")
    assert isinstance(made[1], MessageStep) and made[1].draft.role is Role.USER
