"""LoCoMo: lines under their names, the dataset's own pages, questions with their evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vmstore.capture.importers.formats import read
from vmstore.capture.steps import CallStep, DetachedPages, MessageStep, MetadataStep, RewriteStep, Step, UnreadableStep
from vmstore.store.store import Store, memory_store

DATASET = "locomo_dev5.json"


def line(who: str, name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"speaker": who, "dia_id": name, "text": text, **more}


def sample(**more: Any) -> dict[str, Any]:
    talk = {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_2_date_time": "12:05 am on 9 May, 2023",
        "session_2": [line("Ben", "D2:1", "Back?")],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [line("Ann", "D1:1", "Look.", blip_caption="a deer", img_url=["u"]), line("Ben", "D1:2", "Nice.")],
    }
    fields: dict[str, Any] = {"sample_id": "conv-0", "conversation": talk}
    fields["session_summary"] = {"session_1_summary": "Ann showed a deer."}
    fields["observation"] = {"session_1_observation": {"Ann": [["Ann saw a deer.", ["D1:1", "D1:2"]], ["no lines"]]}}
    fields["event_summary"] = {"events_session_1": {"Ann": ["saw a deer"]}}
    fields["qa"] = [
        {"question": "What did Ann see?", "answer": "a deer", "evidence": ["D1:1; D2:1"], "category": 4},
        {"question": "Whose deer?", "adversarial_answer": "Ben's", "evidence": ["D9:9"], "category": 5},
    ]
    return {**fields, **more}


def steps(path: Path, *samples: Any) -> list[Step]:
    file = path / "data.json"
    file.write_text(json.dumps(list(samples)))
    source = read(file)
    assert source.format == "locomo"
    return list(source.tracks[0].steps)


def test_the_conversation_comes_first_in_the_order_of_its_sessions(tmp_path: Path) -> None:
    """The second speaker's lines are calls, each line has its name, its speaker and its session's date."""
    first, second, third = steps(tmp_path, sample())[:3]
    assert isinstance(first, MessageStep) and isinstance(second, CallStep) and isinstance(third, CallStep)
    assert (first.draft.hint, first.draft.actor, first.draft.human) == ("D1:1", "Ann", True)
    assert [step.reply.drafts[0].hint for step in (second, third)] == ["D1:2", "D2:1"]
    assert first.draft.parts[0].content == b"Look.\n[shows a deer]"
    assert first.at == 1_683_554_160_000_000 and second.at == first.at + 1_000_000
    assert third.at == 1_683_590_700_000_000


def test_then_the_pages_and_the_questions_of_the_dataset(tmp_path: Path) -> None:
    """Summaries and observations stand beside the conversation, each question leaves before the next."""
    rest = steps(tmp_path, sample())[3:]
    assert [type(step) for step in rest] == [
        DetachedPages,
        DetachedPages,
        DetachedPages,
        MetadataStep,
        RewriteStep,
        CallStep,
        RewriteStep,
        CallStep,
    ]
    assert [step.draft.hint for step in rest if isinstance(step, DetachedPages)] == ["S1", "O1.1", "O1.2"]
    asked = [step for step in rest if isinstance(step, RewriteStep)]
    assert [len(step.stands) for step in asked] == [4, 4]
    assert all(not step.joins for step in rest if isinstance(step, CallStep))


def test_evidence_can_be_asked_by_name(tmp_path: Path) -> None:
    """A question leads to the lines that answer it, an observation to where it was seen; a lost line is named."""
    file = tmp_path / "data.json"
    file.write_text(json.dumps(sample()))
    with memory_store() as store:
        report = store.import_file(file)
        assert [problem.reason for problem in report.problems] == [
            "refers to 'D9:9', but no earlier message has that ID"
        ]
        session = store.session("conv-0")
        assert {link.text for link in session.lineage.ancestors("Q1")} == {"Look. [shows a deer]", "Back?"}
        assert {link.kind for link in session.lineage.ancestors("Q1")} == {"references"}
        assert {link.text for link in session.lineage.ancestors("O1.1")} == {"Look. [shows a deer]", "Nice."}
        assert len(session.lineage.ancestors("S1")) == 2
        assert [message["content"] for message in session.wire.messages(call=3)] == [
            "Look.\n[shows a deer]",
            "Nice.",
            "Back?",
            "What did Ann see?",
        ]
        assert session.wire.messages(call=4)[-1]["content"] == "Whose deer?" and len(session.wire.messages(call=4)) == 4
        assert session.page("Q1").tags == ["single-hop"] and session.page("D1:1").actor == "Ann"
        assert store.verify().ok


def test_a_conversation_can_be_held_in_a_small_memory(tmp_path: Path) -> None:
    """Said again to a memory that manages itself, the dataset's own pages hold none of its budget."""
    file = tmp_path / "data.json"
    long = {"session_1_summary": "Ann showed a deer to Ben. " * 400}
    file.write_text(json.dumps(sample(session_summary=long)))
    with memory_store() as store:
        store.import_file(file)
        live = store.admin.redrive("conv-0", "small", l0_tokens_max=2500)
        assert live.info().calls == 4
        assert store.session("small").page("S1").type == "summary"
        assert "S1" not in {page.hint for page in store.session("small").pages() if page.tier == 0}


def test_a_conversation_is_known_by_its_name(tmp_path: Path) -> None:
    """Alone or among others a conversation is one source; what is none is kept."""
    alone, both = tmp_path / "one.json", tmp_path / "both.json"
    alone.write_text(json.dumps(sample(sample_id="conv-1")))
    both.write_text(json.dumps([sample(), sample(sample_id="conv-1"), {"x": 1}]))
    with memory_store() as store:
        store.import_file(alone)
        done = store.import_file(both)
        assert [(session.session, session.raw) for session in done.sessions] == [
            ("conv-0", 0),
            ("conv-1", 0),
            ("conversation3", 1),
        ]
        assert len(store.sessions()) == 3 and store.import_file(both).new == 0


def test_strange_entries_are_kept(tmp_path: Path) -> None:
    """A line without words and a question without one stay as they stand; a date nobody reads is none."""
    odd = sample(qa=[{"answer": "x"}], session_summary=None, observation={"session_x": 1}, event_summary=None)
    odd["conversation"] = {"session_1": [{"speaker": "Ann"}, line("Ann", "D1:1", "hi")], "session_1_date_time": "May"}
    made = steps(tmp_path, odd)
    assert [type(step) for step in made] == [UnreadableStep, MessageStep, UnreadableStep]
    assert made[1].at is None


# ---- the recorded conversations


@pytest.fixture(scope="module")
def samples(data: Path) -> list[dict[str, Any]]:
    """The dataset."""
    records: list[dict[str, Any]] = json.loads((data / "locomo" / DATASET).read_text())
    return records


@pytest.fixture(scope="module")
def imported(samples: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A store that holds its first two conversations."""
    file = tmp_path_factory.mktemp("locomo") / "two.json"
    file.write_text(json.dumps(samples[:2]))
    store = memory_store()
    store.import_file(file)
    return store


def test_every_line_and_question_of_the_dataset_is_a_step(data: Path, samples: list[dict[str, Any]]) -> None:
    """Each conversation is a track with every line under its name and a call for every question, none unread."""
    content = read(data / "locomo" / DATASET)
    assert [track.key for track in content.tracks] == [sample["sample_id"] for sample in samples]
    for track, sample in zip(content.tracks, samples, strict=True):
        talk = sample["conversation"]
        spoken = [turn for key in talk if isinstance(talk[key], list) for turn in talk[key]]
        made = list(track.steps)
        kinds = [type(step) for step in made]
        answered = sum(turn["speaker"] == talk["speaker_b"] for turn in spoken)
        assert kinds.count(CallStep) == answered + len(sample["qa"])
        hints = [
            step.draft.hint if isinstance(step, MessageStep) else step.reply.drafts[0].hint
            for step in made[: len(spoken)]
        ]  # type: ignore[attr-defined]
        assert set(hints) == {turn["dia_id"] for turn in spoken}
        assert UnreadableStep not in kinds and all(step.at is not None for step in made[: len(spoken)])


def test_the_recorded_conversations_verify(imported: Store, samples: list[dict[str, Any]]) -> None:
    """Each conversation is a session of its name, whole and in order."""
    assert [info.session for info in imported.sessions()] == [sample["sample_id"] for sample in samples[:2]]
    assert imported.verify().ok


def test_the_evidence_of_the_dataset_is_in_the_calls_that_need_it(
    imported: Store, samples: list[dict[str, Any]]
) -> None:
    """Every question's evidence that the dataset names rightly is a page of the context it was asked in."""
    sample = samples[0]
    session = imported.session(sample["sample_id"])
    first = session.info().calls - len(sample["qa"])
    for n, asked in list(enumerate(sample["qa"], 1))[::20]:
        context = {page.page for page in session.context(call=first + n).pages}
        evidence = session.lineage.ancestors(f"Q{n}", depth=1)
        assert {link.target for link in evidence} <= context
        assert len(evidence) == len(set(asked["evidence"]))
