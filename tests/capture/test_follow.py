"""A conversation that is followed, tail by tail, is the one that is loaded afresh, by any writer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests import laws
from tests.against_model import key_of
from tests.capture import imports
from tests.capture.words import answer, model_text, request, system, user
from tests.test_laws import EDITED_THEN_FORKED, FEWER
from tests.test_laws_bite import RICH
from vmstore.capture.conversation.catch_up import CatchUp
from vmstore.capture.conversation.conversation import Conversation
from vmstore.capture.conversation.load import follow, load
from vmstore.capture.conversation.message_state import MessageState
from vmstore.core.mutation import Compress, Configure, Create, Known, Message, Pack, Reply, Turn, Update
from vmstore.core.page import Fidelity, Method, Modality, PageType, Role, Slot, Status
from vmstore.engine.batch import Batch
from vmstore.errors import VmstoreError
from vmstore.store.store import Store, memory_store
from vmstore.testing.simulate import Player
from vmstore.testing.strategies import LISTING, REPORT, Life, Step, lives


def fields_of(message: MessageState) -> dict[str, Any]:
    """All there is to a message."""
    values = {name: getattr(message, name) for name in ("message", "role", "slot", "skeleton", "packed", "seen")}
    names = ("page", "kin", "version", "level", "rank", "shown", "position", "full", "contents")
    return values | {"pages": [{name: getattr(page, name) for name in names} for page in message.pages]}


def state(conversation: Conversation) -> dict[str, Any]:
    """All of a conversation that decides what the next call writes."""
    names = ("calls", "hints", "answered", "final", "opaque", "opaque_page", "rest", "shape", "factor_ppm")
    values = {name: getattr(conversation, name) for name in names}
    keys = {message.key for message in conversation.messages}
    known = {key: [page.message for page in conversation.alike(key) if page.key == key] for key in keys}
    return values | {
        "messages": [fields_of(message) for message in conversation.messages],
        "pages": {page.page: (page.of.message, page.rank) for page in conversation.pages},
        "known": known,
        "context": [
            (
                state.message,
                json.dumps(state.value, sort_keys=True, default=lambda _: "nothing"),
                state in conversation.changed,
            )
            for state in conversation.context
        ],
        "answers": [item.message for item in conversation.answers],
    }


class Follower:
    """Follows every session of a store, and holds what it has against a fresh load."""

    def __init__(self) -> None:
        self.at: dict[str, tuple[int, Conversation]] = {}
        self.tails = 0

    def look(self, store: Store) -> None:
        """Follows what was written since the last time; then each conversation is what is loaded."""
        engine = store._ns.engine
        for info in store.sessions():
            key = key_of(store.admin.views, info.session)
            position, before = self.at.get(info.session, (0, Conversation()))
            stood, conversation = state(before), before.copy()
            assert state(conversation) == stood
            self.tails += 0 < position < info.position
            position = follow(engine, key, conversation, position)
            assert position == info.position
            assert state(before) == stood, "a copy that goes on leaves what it was made of as it stood"
            self.at[info.session] = position, conversation
            fresh = load(engine, key)
            first, other = state(conversation), state(fresh)
            assert first == other, _differ(first, other)
            kept = store._ns.conversations.get(key)
            if kept is not None and kept[0] == position:
                self.same_as_kept(kept[1], fresh)

    def same_as_kept(self, kept: Conversation, fresh: Conversation) -> None:
        """What a recorder holds of the calls it wrote itself is what is loaded."""
        first, other = state(kept), state(fresh)
        for left_open in ("opaque", "hints", "final"):  # a recorder asks less of them
            del first[left_open], other[left_open]
        assert first == other, _differ(first, other)


def _differ(fields: dict[str, Any], other: dict[str, Any]) -> list[Any]:
    """Where two states differ, message by message."""
    rows: list[Any] = [
        (name, fields[name], other[name]) for name in fields if name != "messages" and fields[name] != other[name]
    ]
    return rows + [pair for pair in zip(fields["messages"], other["messages"], strict=False) if pair[0] != pair[1]]


# ---- mutations of one's own

Hand = tuple[str, int, int]
HANDS = ("page", "loose", "update", "compress", "message", "reply", "turn", "configure", "leave", "enter", "swap")
hands = st.tuples(st.sampled_from(HANDS), st.integers(0, 40), st.integers(0, 40))
TEXTS = (b"", b"yes", LISTING.encode(), LISTING[:300].encode(), REPORT.encode(), b"{}")


def by_hand(store: Store, hand: Hand) -> None:
    """Writes a commit of one's own to a session, where the rules let it through."""
    sessions = store.sessions()
    verb, n, k = hand
    if not sessions:
        return
    session = store.session(sessions[n % len(sessions)].session)
    try:
        with session.batch(at_us=1) as batch:
            for mutation in WRITTEN[verb](batch, n, k):
                batch.add(mutation)
    except VmstoreError:
        return


def _page(batch: Batch, message: int, text: bytes, labels: Any = None) -> Create:
    cell = None if labels is None else batch.cell(msgspec.json.encode(labels))
    where = (Role.ASSISTANT, message, 0, batch.cell(text), len(text), len(text) // 4)
    return Create(PageType.TRANSCRIPT, Modality.TEXT, *where, labels=cell)


def _near(batch: Batch, n: int) -> int:
    """A position that may hold what is looked for."""
    return 1 + n % max(1, batch.head.position)


def _message(batch: Batch, n: int, k: int) -> list[Known]:
    reply_to = batch.head.call if k % 2 and batch.head.call else None
    envelope = batch.cell(b'{"role":"assistant","content":{"\\u0000t":0}}')
    message = Message(Role.ASSISTANT, Slot.MESSAGES, envelope, reply_to=reply_to)
    labels = ({"asks": f"c{k}"}, {"answers": f"c{n}"}, {"hint": "h"}, None)[k % 4]
    return [message, _page(batch, batch.position, TEXTS[k % len(TEXTS)], labels)]


def _repacked(batch: Batch, entered: list[tuple[int, int, int, int]], left: list[int]) -> list[Known]:
    totals = batch.head.foresee(entered, left)
    values = (
        batch.head.call + 1,
        Fidelity.DERIVED,
        totals.leaves,
        totals.tokens,
        totals.root,
        tuple(entered),
        tuple(left),
    )
    return [Pack(*values, rest=batch.cell(b'{"model":"by hand"}'))]


def _leave(batch: Batch, n: int, k: int) -> list[Known]:
    order = batch.head.order
    if not order:
        return []
    return _repacked(batch, [], [order[(n + i) % len(order)][0] for i in range(1 + k % min(2, len(order)))])


def _enter(batch: Batch, n: int, k: int) -> list[Known]:
    page = _near(batch, n)
    last = batch.head.order[-1][3] if batch.head.order else 0
    if batch.head.content(page) is None:
        return []
    return _repacked(batch, [(page, page, 0, last + 1)], [])


def _swap(batch: Batch, n: int, k: int) -> list[Known]:
    order = batch.head.order
    if not order or n % len(order) == k % len(order):
        return []
    first, other = order[n % len(order)], order[k % len(order)]
    return _repacked(batch, [(*first[:3], other[3]), (*other[:3], first[3])], [])


def _update(batch: Batch, n: int, k: int) -> list[Known]:
    page, text = _near(batch, n), TEXTS[k % len(TEXTS)]
    return [Update(page, (batch.head.version(page) or 0) + 1, batch.cell(text), len(text), len(text) // 4)]


def _compress(batch: Batch, n: int, k: int) -> list[Known]:
    page, text = _near(batch, n), TEXTS[k % len(TEXTS)]
    version = batch.head.version(page) or 0
    return [Compress(page, version, 1 + k % 3, Method.CLIPPED, 1, batch.cell(text), len(text), len(text) // 4)]


WRITTEN: dict[str, Callable[[Batch, int, int], list[Known]]] = {
    "page": lambda batch, n, k: [_page(batch, _near(batch, n), TEXTS[k % len(TEXTS)])],
    "loose": lambda batch, n, k: [_page(batch, 0, TEXTS[k % len(TEXTS)], {"hint": "loose"})],
    "update": _update,
    "compress": _compress,
    "message": _message,
    "reply": lambda batch, n, k: [Reply(batch.head.call, Status.OK, k % 2, tokens_in=k * 100)],
    "turn": lambda batch, n, k: [Turn(batch.head.turn + 1)],
    "configure": lambda batch, n, k: [Configure(1, 900_000 + k)],
    "leave": _leave,
    "enter": _enter,
    "swap": _swap,
}


@FEWER
@given(lives(), st.data())
@example(EDITED_THEN_FORKED, None)
def test_followed_is_loaded(life: Life, data: Any) -> None:
    """After every step of a life, and every commit of one's own, what was followed is what is loaded."""
    with TemporaryDirectory() as folder:
        player, follower = Player(Path(folder), life.shape), Follower()
        for step in life.steps:
            lived(player, step, follower)
            for hand in data.draw(st.lists(hands, max_size=2)) if data else ():
                by_hand(player.store, hand)
                follower.look(player.store)
        player.close()


def lived(player: Player, step: Step, follower: Follower) -> None:
    """Plays a step and looks."""
    player.play(step)
    follower.look(player.store)


def rich(folder: Path) -> Follower:
    """Follows the life that has something of everything."""
    player, follower = Player(folder, RICH.shape), Follower()
    for step in RICH.steps:
        lived(player, step, follower)
    player.close()
    return follower


def test_the_rich_life_has_tails(tmp_path: Path) -> None:
    """The life that the faults below are planted in is followed many times over."""
    assert rich(tmp_path).tails > 10


@pytest.mark.parametrize("kind", ["turn", "create", "update", "compress", "message", "reply", "pack", "configure"])
def test_a_kind_that_is_not_followed_is_caught(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A conversation already at hand that overlooks a kind of mutation is not the one loaded."""
    right: Callable[..., None] = getattr(CatchUp, f"on_{kind}")
    begin = CatchUp.__init__

    def init(self: CatchUp, conversation: Conversation, position: int, hash: bytes) -> None:
        begin(self, conversation, position, hash)
        self.blind = bool(position)  # type: ignore[attr-defined]

    def on(self: Any, fact: Any, mutation: Any) -> None:
        if not self.blind:
            right(self, fact, mutation)

    monkeypatch.setattr(CatchUp, "__init__", init)
    monkeypatch.setattr(CatchUp, f"on_{kind}", on)
    with pytest.raises((AssertionError, KeyError, IndexError, VmstoreError, StopIteration)):
        rich(tmp_path)


@pytest.mark.parametrize("source", ["chat", "exchanges", "pi"])
def test_an_import_is_followed_as_it_grows(source: str, tmp_path: Path) -> None:
    """A file that is imported again each time it grew is followed to what is loaded, and so are calls in between."""
    records = getattr(imports, source)(4)
    follower, file = Follower(), tmp_path / "source.jsonl"
    with memory_store() as store:
        for end in range(2, len(records) + 1):
            file.write_text("".join(json.dumps(record) + "\n" for record in records[:end]))
            store.import_file(file)
            follower.look(store)
            store.record("beside", request([user(str(n)) for n in range(end)]), answer(model_text(str(end))))
            follower.look(store)
    assert follower.tails > len(records)


def test_an_update_of_ones_own_is_sent(tmp_path: Path) -> None:
    """A page of the context that somebody updates, and whose new words are sent, stands in the context with them."""
    with memory_store() as store:
        store.record("s", request([system("Be brief."), user("one")]), answer(model_text("two")))
        session = store.session("s")
        page = session.context(call=1).pages[1].page
        with session.batch() as batch:
            number = int(page.removeprefix("p"))
            batch.add(Update(number, 2, batch.cell(b"three"), 5, 1))
        sent = request([system("Be brief."), user("three"), model_text("two"), user("four")])
        store.record("s", sent)
        assert session.wire.request(call=2) == sent


def test_an_old_version_in_a_pack_of_ones_own_is_followed() -> None:
    """Where a pack shows what was changed before it, a shorter form made later is followed as it is loaded."""
    follower = Follower()
    with memory_store() as store:
        store.record("s", request([user(LISTING), user("and?")]), answer(model_text("two")))
        follower.look(store)
        page = int(store.session("s").context(call=1).pages[0].page[1:])
        for hand in (("update", page - 1, 4), ("swap", 0, 1), ("compress", page - 1, 1)):
            by_hand(store, hand)
            follower.look(store)
        sent = request([user(LISTING), user("and?"), model_text("two"), user("so")])
        store.record("s", sent)
        assert store.session("s").wire.request(call=3) == sent


@pytest.mark.parametrize("verb", ["swap", "enter"])
def test_a_call_puts_back_what_somebody_moved(verb: str, tmp_path: Path) -> None:
    """Where a pack of one's own moved a page away from its message, or before it, the next call is as it was sent."""
    with memory_store() as store:
        first = [user([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]), user("three"), user("four")]
        store.record("s", request(first), answer(model_text("five")))
        session = store.session("s")
        if verb == "enter":
            by_hand(store, ("loose", 0, 1))
            with session.batch() as batch:
                page, first_rank = batch.position - 1, batch.head.order[0][3]
                for mutation in _repacked(batch, [(page, page, 0, first_rank - 1)], []):
                    batch.add(mutation)
        else:
            by_hand(store, ("swap", 1, 3))
        sent = request([*first, model_text("five"), user("six")])
        store.record("s", sent, answer(model_text("seven")))
        assert session.wire.request(call=3) == sent
        assert store.verify().ok


def test_two_handles_that_take_turns_write_what_one_would(tmp_path: Path) -> None:
    """Calls recorded by two handles in turn are told as by one: what the other wrote is folded, not guessed."""
    laws.taking_turns_changes_nothing(RICH, tmp_path)


@FEWER
@given(lives())
def test_any_life_can_be_shared(life: Life) -> None:
    """Two handles that take turns with a life write the mutations that one would."""
    with TemporaryDirectory() as folder:
        laws.taking_turns_changes_nothing(life, Path(folder))
