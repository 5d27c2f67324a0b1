"""The laws of the store: each a function that looks at a life played on it and raises where it is broken.

Every answer of the public object is held against the model (`tests/against_model.py`), against
what was really sent, and against what was answered before. `tests/test_laws.py` runs each law by
itself and sees it bite; `tools/hold.py` runs all of them over thousands of lives.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from tests.against_model import answers_are_the_models, key_of, model_of, unknown
from vmstore.core import mutation as kinds
from vmstore.engine.lookups import load_head
from vmstore.errors import ConflictError, InputError, RefusedError, StoreError, UnknownError, VmstoreError
from vmstore.namespace.results import to_json
from vmstore.store.session import Session
from vmstore.store.store import Store
from vmstore.testing.simulate import Player, StepOutcome, Thread, digest, play
from vmstore.testing.strategies import AskStep, ForkStep, Life, RebuildStep, RefusedStep, ReopenStep, RetryStep
from vmstore.views.reads.page_table import page_table as table_of_views

MARK = re.compile(r"<([a-z0-9.]+)#(\d+)>")


def same(fields: Any, other: Any) -> bool:
    """Whether two JSON values are equal in every field, numbers and booleans told apart."""
    if type(fields) is not type(other):
        return False
    if isinstance(fields, dict):
        return fields.keys() == other.keys() and all(same(fields[key], other[key]) for key in fields)
    if isinstance(fields, list):
        return len(fields) == len(other) and all(map(same, fields, other))
    return repr(fields) == repr(other)


# ---- 2: a request comes back for ever


def requests_come_back(player: Player) -> None:
    """Every call's request equals what was sent: now, reopened, with the views deleted, and rebuilt."""
    prepare: tuple[Callable[[], Any], ...] = (
        lambda: None,
        player.reopen,
        lambda: player.reopen(forget=True),
        lambda: player.store.admin.rebuild(),
    )
    for step in prepare:
        step()
        for thread in player.opened:
            session = player.session(thread)
            assert len(session.calls()) == len(thread.sent), "as many calls as were made"
            for call, request in thread.sent.items():
                if request is None:
                    unknown(session.wire.request, call=call)
                else:
                    response = session.wire.request(call=call)
                    assert same(response, request), f"{thread.name} call {call}: {response!r} is not {request!r}"


# ---- 3: views are folds


def digests(store: Store) -> dict[str, str]:
    """A digest of each view."""
    projection = store._ns.projection
    return {projector.name: projection.digest(projector.name).hex() for projector in projection.projectors}


def rebuilt_views_are_equal(player: Player) -> None:
    """Each view folded again, alone or with all, equals what it was."""
    player.store.info()  # the views follow when they are asked
    before = digests(player.store)
    for view in before:
        player.store.admin.rebuild(view)
        assert digests(player.store) == before, f"{view} rebuilt is another"
    player.store.admin.rebuild()
    assert digests(player.store) == before
    player.reopen(forget=True)
    player.store.info()
    assert digests(player.store) == before


def columns_are_the_views(player: Player) -> None:
    """At a few positions of every session the page table of the columns is that of the views, in memory and sealed."""
    store = player.store
    ends = {info.session: info.position for info in store.sessions()}
    moments = [{name: max(1, end * share // 4) for name, end in ends.items()} for share in range(1, 5)]
    want = [
        sorted((name, *row) for name, at in moment.items() for row in table_of_views(store.session(name)._lane(), at))
        for moment in moments
    ]
    for prepare in (lambda: None, store.admin.column_segments):
        prepare()
        for moment, rows in zip(moments, want, strict=True):
            assert sorted(store.admin.page_table(moment).rows()) == rows, f"at {moment}"
    assert store._columns.problems() == []


# ---- 4: the past does not move


class Witness:
    """Asks about a moment when it has just passed, and again when all is over."""

    def __init__(self) -> None:
        self.told: dict[tuple[str, int], Any] = {}

    def look(self, player: Player) -> None:
        """Remembers what is answered about the end of the session just written."""
        if player.last is not None:
            session = player.session(player.last)
            position = session.info().position
            self.told[player.last.name, position] = testimony(session, position)

    def moved(self, player: Player) -> None:
        """Asks everything again: live, on every fork that inherits it, and on a rebuilt store."""
        for prepare in (lambda: None, lambda: player.reopen(forget=True)):
            prepare()
            for thread in player.opened:
                session = player.session(thread)
                for (name, position), value in self.told.items():
                    if position <= _visible(thread, name, player):
                        again = testimony(session, position)
                        assert again == value, f"{name} position {position} asked of {thread.name}"


def testimony(session: Session, position: int) -> str:
    """What a session answers about one of its positions, the session's own name left out."""
    pages = session.pages(position=position)
    fields: dict[str, Any] = {"pages": to_json(pages)}
    if any(call.position <= position for call in session.calls()):
        fields["context"] = context = session.context(position=position).to_dict(messages=True, render=True)
        # A fork at a call does not see how that call ended.
        del context["basis"]["session"], context["tokens_reported"]
    for page in pages[:: max(1, len(pages) // 3)]:
        moment = f"p{page.position}@position:{position}"
        asked = (
            session.lineage.history(moment),
            session.lineage.ancestors(moment),
            session.lineage.descendants(moment),
            session.content(moment),
        )
        fields[page.page] = to_json(asked)
    return json.dumps(fields, sort_keys=True, default=repr)


def _visible(thread: Thread, name: str, player: Player) -> int:
    """Up to which position a session shares what another wrote; -1 for one that is no ancestor."""
    position = 1 << 62
    while thread.name != name:
        if thread.parent is None:
            return -1
        position = min(position, player.session(thread).info().fork_position or 0)
        thread = thread.parent
    return position


# ---- 5: nothing leaks


def nothing_leaks(player: Player) -> None:
    """What one session says after a fork appears in no answer of the other."""
    for thread in player.opened:
        allowed = {}
        limit = 1 << 62
        parent: Thread | None = thread
        while parent is not None:
            allowed[parent.name] = limit
            limit, parent = parent.inherited, parent.parent
        for name, number in _marks(player.session(thread)):
            assert number <= allowed.get(name, 0), f"{thread.name} answers with what {name} said"


def _marks(session: Session) -> Iterator[tuple[str, int]]:
    items: list[Any] = [session.turns(), session.calls()]
    for call in session.calls():
        items.append(session.context(call=call.call).to_dict(messages=True, render=True))
    for page in session.pages():
        items += [session.content(page.position), session.lineage.history(page.position)]
        items += [session.lineage.ancestors(page.position), session.lineage.descendants(page.position)]
    for name, number in MARK.findall(json.dumps(to_json(items), default=repr)):
        yield name, int(number)


# ---- 6: verify


def verify_is_clean(player: Player) -> None:
    """Verify finds nothing, and counts what there is."""
    verdict, info = player.store.verify(), player.store.info()
    assert verdict.ok, verdict.problems
    assert (verdict.commits, verdict.mutations, verdict.sessions) == (info.commits, info.mutations, info.sessions)


# ---- 8, 9, 10: what was refused, sent again, and went wrong


def refusals_write_nothing(player: Player) -> None:
    """What is refused is refused by an error of ours, and leaves every byte of the log as it was."""
    for outcome in player.outcomes:
        if isinstance(outcome.step, RefusedStep):
            assert isinstance(outcome.error, InputError | RefusedError), f"{outcome.step} came to {outcome.error!r}"
        if outcome.error is not None:
            assert isinstance(outcome.error, VmstoreError), f"{outcome.step} came to {outcome.error!r}"
            assert outcome.before == outcome.after, f"{outcome.step} was refused and left something behind"
        if isinstance(outcome.step, ForkStep):
            _forked(outcome)


def _forked(outcome: StepOutcome) -> None:
    if outcome.step.name_taken:
        assert isinstance(outcome.error, RefusedError | UnknownError), "a name is taken once"
    elif outcome.step.by in ("head", "commit"):
        assert outcome.error is None, "the head and every commit end can be forked from"
    elif outcome.step.by in ("turn", "call"):
        assert outcome.error is None or isinstance(outcome.error, UnknownError), outcome.error


def retries_answer_the_same(player: Player) -> None:
    """A retry returns the first answer and writes nothing; the id with another call is a conflict."""
    for outcome in player.outcomes:
        if isinstance(outcome.step, RetryStep):
            assert outcome.before == outcome.after, "a retry writes nothing"
            if outcome.step.other:
                assert isinstance(outcome.error, ConflictError), f"{outcome.error!r}"
            else:
                assert (outcome.answer, outcome.error) == (outcome.wanted, None)


def failures_pass(player: Player) -> None:
    """A disk that was full for a moment loses that call, says so, and no other."""
    for outcome in player.outcomes:
        if isinstance(outcome.step, AskStep):
            assert isinstance(outcome.error, StoreError), f"{outcome.error!r}"
            assert outcome.before == outcome.after
    for thread in player.opened:
        player.store.record(thread.name, {"messages": [{"role": "user", "content": "and on"}]})
        assert same(player.session(thread).wire.messages(), [{"role": "user", "content": "and on"}])


# ---- what identity and the gate rest on


def results_keep_their_calls(player: Player) -> None:
    """A tool's result is shown as the page of the call it answers, however alike two results are."""
    for thread in player.opened:
        session = player.session(thread)
        for call in (call for call, request in thread.sent.items() if request is not None):
            context = session.context(call=call)
            groups = [list(pages) for _, pages in groupby(context.pages, lambda page: page.message)]
            messages = context.messages()
            for pages, message in zip(groups[len(groups) - len(messages) :], messages, strict=True):
                answered = message.get("tool_call_id") if isinstance(message, dict) else None
                for page in pages if answered else ():
                    for link in session.lineage.ancestors(page.page, depth=1, kinds=["caused_by"]):
                        asked = json.loads(session.content(link.target))
                        assert answered in (asked.get("id"), asked.get("call_id")), (
                            f"{page.page} of {link.target} answers {answered}"
                        )


def heads_are_the_views(player: Player) -> None:
    """What the gate holds of a session in memory is what the views say of it."""
    player.store.info()  # the views follow when they are asked
    engine = player.store._ns.engine
    for thread in player.opened:
        key = key_of(player.store.admin.views, thread.name)
        head = engine.head(key)
        fresh = load_head(player.store.admin.views, key)
        for field in ("uid", "position", "turn", "call", "order", "tokens"):
            assert getattr(head, field) == getattr(fresh, field), field
        assert head.tree.root == fresh.tree.root


# ---- 7: the same stimuli


def same_stimuli_same_bytes(life: Life, folder: Path) -> None:
    """The same life under the same clock and ids writes the same bytes."""
    logs = []
    for name in ("first", "second"):
        player = play(life, _made(folder / name))
        logs.append(digest(player.store.admin.log))
        player.close()
    assert logs[0] == logs[1], "the same life came to other bytes"


def reopening_changes_nothing(life: Life, folder: Path) -> None:
    """A store closed and opened after every step writes what it would have written had it stayed open."""
    steps = [step for step in life.steps if not isinstance(step, ReopenStep | RebuildStep)]
    kept, reopened = Player(_made(folder / "kept"), life.shape), Player(_made(folder / "reopened"), life.shape)
    for step in steps:
        kept.play(step)
        reopened.play(step)
        reopened.reopen()
    for first, other in zip(_story(kept.store), _story(reopened.store), strict=True):
        assert first == other, f"kept open {first}, reopened {other}"
    kept.close()
    reopened.close()


def taking_turns_changes_nothing(life: Life, folder: Path) -> None:
    """Two handles that take turns with the steps write what one would have written."""
    steps = [step for step in life.steps if not isinstance(step, ReopenStep | RebuildStep)]
    kept, shared = Player(_made(folder / "one"), life.shape), Player(_made(folder / "two"), life.shape)
    other = shared.open()
    for step in steps:
        kept.play(step)
        shared.play(step)
        shared.store, other = other, shared.store
    for first, two in zip(_story(kept.store), _story(shared.store), strict=True):
        assert first == two, f"one handle {first}, two handles {two}"
    for store in (kept, shared, other):
        store.close()


def _story(store: Store) -> list[Any]:
    """Every mutation with what its cells say; salts, and the hashes they enter, left out."""
    model = model_of(store)
    story = []
    for fact in model.facts:
        fields = msgspec.structs.asdict(fact.mutation)
        refs = [name for name in CELLS if fields.get(name) is not None and not isinstance(fields[name], bytes)]
        if isinstance(fact.mutation, kinds.Link):
            refs.remove("source")  # a page
        for name in refs:
            fields[name] = model.cell(fact.session, fact.position, fields[name])
        if isinstance(fact.mutation, kinds.Pack):
            fields["envelopes"] = [(m, model.cell(fact.session, fact.position, ref)) for m, ref in fields["envelopes"]]
        salted = ("root", "uid", "parent")
        story.append((fact.session, fact.position, {key: fields[key] for key in fields if key not in salted}))
    return story


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


CELLS = (
    "name",
    "meta",
    "source",
    "key",
    "content",
    "labels",
    "envelope",
    "aside",
    "rest",
    "note",
    "tags",
    "untags",
    "anchors",
)


# ---- all of them


LAWS: tuple[Callable[[Player], None], ...] = (
    answers_are_the_models,
    refusals_write_nothing,
    retries_answer_the_same,
    heads_are_the_views,
    results_keep_their_calls,
    nothing_leaks,
    verify_is_clean,
    rebuilt_views_are_equal,
    columns_are_the_views,
    requests_come_back,
    failures_pass,
)


def hold(life: Life, folder: Path) -> Counter[str]:
    """Holds one life against every law; how much of what it had."""
    player, witness = Player(_made(folder / "all"), life.shape), Witness()
    for step in life.steps:
        player.play(step)
        witness.look(player)
    counts = Counter(entry.kind for entry in player.store.tail())
    counts.update(mutations=counts.total(), calls=counts["pack"], sessions=counts["open"])
    witness.moved(player)
    for law in LAWS:
        law(player)
    player.close()
    same_stimuli_same_bytes(life, folder)
    reopening_changes_nothing(life, folder)
    taking_turns_changes_nothing(life, folder)
    return counts
