"""Every law is seen to bite: a fault is planted, and the law that held before breaks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from msgspec.structs import replace

from tests import laws
from tests.against_model import key_of
from vmstore.capture.record import gap
from vmstore.columns.segment_writer import SegmentWriter
from vmstore.core.clock import SeededIds, SystemIds
from vmstore.errors import VmstoreError
from vmstore.store import recorder
from vmstore.testing.agent import ConversationEdit, ModelAnswer
from vmstore.testing.simulate import Player, play
from vmstore.testing.strategies import (
    LISTING,
    AnnotateStep,
    AskStep,
    ForkStep,
    GapStep,
    Life,
    RebuildStep,
    RefusedStep,
    ReopenStep,
    RetryStep,
)
from vmstore.views.branch import NEVER, Branch
from vmstore.views.projectors.calls import CallsProjector
from vmstore.views.projectors.lineage import LineageProjector
from vmstore.views.projectors.messages import MessagesProjector
from vmstore.views.projectors.pages import PagesProjector
from vmstore.views.projectors.residency import ResidencyProjector
from vmstore.views.projectors.turns import TurnsProjector


def say(text: str, *edits: ConversationEdit, **fields: Any) -> AskStep:
    """A step in which a person says something, after some edits."""
    return AskStep(edits=(*edits, ConversationEdit("say", text=text)), **fields)


# One life with something of everything, so that a planted fault has where to show.
RICH = Life(
    "chat",
    (
        say("hello", ConversationEdit("prompt", text="Be brief."), marked=True, request_id="r"),
        AskStep(edits=(ConversationEdit("say", text="look"),), answer=ModelAnswer("asks_twice", "ls", 300)),
        AskStep(
            edits=(ConversationEdit("answer", k=1, text=LISTING),),
            answer=ModelAnswer("asks", "cat", 900),
            request_id="s",
        ),
        RetryStep(0),
        RetryStep(1, other=True),
        ForkStep(by="call", number=2),
        AskStep(
            edits=(ConversationEdit("answer", text=LISTING), ConversationEdit("omit", n=1)),
            answer=ModelAnswer("says", "seen"),
        ),
        say("on", ConversationEdit("field", n=1, k=0), ConversationEdit("clip"), marked=True, pause=-5000),
        AskStep(
            session=2,
            edits=(ConversationEdit("answer", text="other"), ConversationEdit("rewrite", n=1, text="hello there")),
            marked=True,
        ),
        say("again", ConversationEdit("delete", n=2), ConversationEdit("add_part", n=1, text="more"), elsewhere=True),
        RefusedStep(n=3),
        AnnotateStep(n=1, k=0),
        AnnotateStep(n=1, k=1),
        AnnotateStep(session=2, n=1, k=3),
        say("once more"),
        say("lost", broken=True),
        GapStep(reason="lost"),
        ReopenStep(forget=True),
        say("sum up", ConversationEdit("compact", n=3, k=1, text="all of it"), ConversationEdit("tools", n=1)),
        ForkStep(session=2, by="head"),
        say("there", session=3, marked=True),
        say(
            "back",
            ConversationEdit("restore"),
            ConversationEdit("back", k=1),
            answer=ModelAnswer("aborts"),
            marked=True,
        ),
        RebuildStep(),
    ),
)


def test_the_rich_life_keeps_every_law(tmp_path: Path) -> None:
    """The life the faults are planted in breaks no law by itself, and has something of everything."""
    counts = laws.hold(RICH, tmp_path)
    kinds = {
        "open",
        "turn",
        "create",
        "update",
        "compress",
        "link",
        "message",
        "reply",
        "pack",
        "configure",
        "annotate",
    }
    assert kinds <= counts.keys(), kinds - counts.keys()


Patch = pytest.MonkeyPatch
Caught = (AssertionError, VmstoreError)


def folds(patch: Patch, projector: type, handler: str, change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Makes a projector fold another fact or mutation than the one the log holds."""
    right = getattr(projector, handler)

    def wrong(self: Any, fact: Any, mutation: Any) -> None:
        right(self, *change(copy.copy(fact), mutation))

    patch.setattr(projector, handler, wrong)


def late(fact: Any, mutation: Any) -> tuple[Any, Any]:
    """One position too late."""
    fact.position += 1
    return fact, mutation


def other(**fields: Callable[[Any], Any]) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Some fields changed."""

    def change(fact: Any, mutation: Any) -> tuple[Any, Any]:
        return fact, replace(mutation, **{name: make(mutation) for name, make in fields.items()})

    return change


FOLDS: dict[str, tuple[type, str, Callable[[Any, Any], tuple[Any, Any]]]] = {
    "a turn one position late": (TurnsProjector, "on_turn", late),
    "a page without its message": (PagesProjector, "on_create", other(message=lambda m: 0)),
    "a version one too high": (PagesProjector, "on_update", other(version=lambda m: m.version + 1)),
    "a shorter form one token longer": (PagesProjector, "on_compress", other(tokens=lambda m: m.tokens + 1)),
    "a tag that is not lost": (PagesProjector, "on_annotate", other(untags=lambda m: None)),
    "an importance one part too high": (
        PagesProjector,
        "on_annotate",
        other(importance=lambda m: (m.importance or 0) + 1),
    ),
    "something said one position late": (PagesProjector, "on_annotate", late),
    "a summary without its sources": (
        LineageProjector,
        "on_link",
        other(source=lambda m: m.target, target=lambda m: m.source),
    ),
    "a page without its call": (LineageProjector, "on_create", other(links=lambda m: ())),
    "a message by another speaker": (MessagesProjector, "on_message", other(role=lambda m: m.role + 1)),
    "a page that never left": (ResidencyProjector, "on_pack", other(left=lambda m: m.left[1:])),
    "a call that cost one token more": (CallsProjector, "on_reply", other(tokens_in=lambda m: (m.tokens_in or 0) + 1)),
}


@pytest.mark.parametrize("fault", FOLDS)
def test_a_projector_that_folds_wrongly_is_caught(fault: str, tmp_path: Path, monkeypatch: Patch) -> None:
    """A projector that is wrong about one thing is caught by the model."""
    player = play(RICH, tmp_path)
    folds(monkeypatch, *FOLDS[fault])
    player.store.admin.rebuild()
    with pytest.raises(Caught):
        laws.answers_are_the_models(player)
    player.close()


def forgotten_envelopes(player: Player, patch: Patch) -> None:
    """A message keeps the envelope it came in."""
    folds(patch, MessagesProjector, "on_pack", other(envelopes=lambda m: ()))
    player.store.admin.rebuild()


def a_fold_with_a_memory(player: Player, patch: Patch) -> None:
    """A projector that counts how often it was asked."""
    asked = iter(range(1_000_000))
    folds(patch, TurnsProjector, "on_turn", other(number=lambda m: m.number + next(asked)))
    player.store.admin.rebuild()


def an_endless_stretch(player: Player, patch: Patch) -> None:
    """A fork that sees all its parent ever wrote."""
    right = Branch.__init__

    def init(self: Branch, db: apsw.Connection, session: int) -> None:
        right(self, db, session)
        self.stretches = [stretch._replace(high=NEVER) for stretch in self.stretches]

    patch.setattr(Branch, "__init__", init)


def a_changed_row(player: Player, patch: Patch) -> None:
    """A row of a view that somebody changed."""
    player.store.admin.views.execute("UPDATE messages SET role = role + 1 WHERE message = 3")


def a_head_that_counts_wrongly(player: Player, patch: Patch) -> None:
    """A head that believes it is a turn further."""
    for session in player.opened:
        player.store._ns.engine.head(key_of(player.store.admin.views, session.name)).turn += 1


def a_cut_that_misses_what_left(player: Player, patch: Patch) -> None:
    """Columns are cut as if packs let nothing go."""
    taken = SegmentWriter.on_pack
    patch.setattr(SegmentWriter, "on_pack", lambda cut, fact, m: taken(cut, fact, replace(m, left=())))


AFTERWARDS = [
    (laws.columns_are_the_views, a_cut_that_misses_what_left),
    (laws.requests_come_back, forgotten_envelopes),
    (laws.rebuilt_views_are_equal, a_fold_with_a_memory),
    (laws.nothing_leaks, an_endless_stretch),
    (laws.verify_is_clean, a_changed_row),
    (laws.heads_are_the_views, a_head_that_counts_wrongly),
]


@pytest.mark.parametrize(("law", "fault"), AFTERWARDS, ids=lambda rule: rule.__name__)
def test_a_fault_planted_after_a_life_is_caught(
    law: Callable[[Player], None], fault: Callable[[Player, Patch], None], tmp_path: Path, monkeypatch: Patch
) -> None:
    """A law that held before the fault is broken by it."""
    player = play(RICH, tmp_path)
    fault(player, monkeypatch)
    with pytest.raises(Caught):
        law(player)
    player.close()


def test_a_past_that_moves_is_caught(tmp_path: Path, monkeypatch: Patch) -> None:
    """A question about the past that is answered from the present is caught by the witness."""
    player, witness = Player(tmp_path, RICH.shape), laws.Witness()
    for step in RICH.steps:
        player.play(step)
        witness.look(player)
    monkeypatch.setattr(Branch, "upto", lambda self, position: self.stretches)
    with pytest.raises(Caught):
        witness.moved(player)
    player.close()


def half_a_call(patch: Patch) -> None:
    """A call that is written before it is found to be none."""
    right = recorder.record

    def record(conversation: Any, batch: Any, *arguments: Any, at: int, **fields: Any) -> Any:
        gap(conversation, batch, "half", at=at)
        batch.commit(at)
        return right(conversation, batch, *arguments, at=at, **fields)

    patch.setattr(recorder, "record", record)


def no_memory_of_ids(patch: Patch) -> None:
    """A store that forgets which request ids it answered."""
    patch.setattr(recorder.CallRecorder, "answered", lambda *_: None)


def half_a_conversation(patch: Patch) -> None:
    """A conversation that keeps what could not be written."""

    class Kept(dict[int, Any]):
        def pop(self, key: int, *default: Any) -> Any:
            return self.get(key, *default)

    begin = recorder.CallRecorder.__init__

    def init(self: Any, *arguments: Any) -> None:
        begin(self, *arguments)
        self._ns.conversations = Kept()

    patch.setattr(recorder.CallRecorder, "__init__", init)


BEFOREHAND = [
    (laws.refusals_write_nothing, half_a_call),
    (laws.retries_answer_the_same, no_memory_of_ids),
    (laws.failures_pass, half_a_conversation),
]


@pytest.mark.parametrize(("law", "fault"), BEFOREHAND, ids=lambda rule: rule.__name__)
def test_a_fault_planted_before_a_life_is_caught(
    law: Callable[[Player], None], fault: Callable[[Patch], None], tmp_path: Path, monkeypatch: Patch
) -> None:
    """A store that goes wrong while it is used breaks the law or the life itself."""
    fault(monkeypatch)
    with pytest.raises(Caught):
        player = play(RICH, tmp_path)
        law(player)


def test_bytes_from_elsewhere_are_caught(tmp_path: Path, monkeypatch: Patch) -> None:
    """Salts that do not come from the ids handed in make the same life come to other bytes."""
    monkeypatch.setattr(SeededIds, "salt", SystemIds.salt)
    with pytest.raises(Caught):
        laws.same_stimuli_same_bytes(RICH, tmp_path)


def test_a_conversation_loaded_wrongly_is_caught(tmp_path: Path, monkeypatch: Patch) -> None:
    """A conversation that comes back from the store with another idea of its turn is caught."""
    right = recorder.follow

    def follow(engine: Any, session: int, conversation: Any, position: int) -> int:
        position = right(engine, session, conversation, position)
        conversation.final = not conversation.final
        return position

    monkeypatch.setattr(recorder, "follow", follow)
    with pytest.raises(Caught):
        laws.reopening_changes_nothing(RICH, tmp_path)
