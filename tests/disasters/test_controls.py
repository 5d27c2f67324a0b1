"""The campaigns can fail: with less flushing, a wrong projector or a hash check removed each finds what is wrong."""

from __future__ import annotations

import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import campaign
import pytest
from campaigns import asking, chores, flips, gate, power, tamper
from campaigns.cut import World, lay
from campaigns.held import Broken, read_log
from campaigns.script import LOG, STORE
from msgspec.structs import replace

import vmstore
from vmstore.cells import verify_proof
from vmstore.engine.named_cells import BatchContents
from vmstore.seals.seal import Seal
from vmstore.views.projectors import calls
from vmstore.views.projectors.calls import CallsProjector
from vmstore.views.projectors.residency import ResidencyProjector

CUTS = 120


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory, where a flush costs nothing."""
    with TemporaryDirectory(dir=campaign.MEMORY if campaign.MEMORY.is_dir() else None) as place:
        yield Path(place)


@contextmanager
def synchronous(level: str) -> Iterator[None]:
    """Every connection opened meanwhile flushes as little as `level` says, whatever it asks for."""

    def weaken(db: apsw.Connection) -> None:
        db.execute(f"PRAGMA synchronous = {level}")
        db.authorizer = ignored

    apsw.connection_hooks.append(weaken)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(weaken)


def ignored(operation: int, name: str | None, *_: Any) -> int:
    """Lets everything happen but a change of how much is flushed."""
    asked = operation == apsw.SQLITE_PRAGMA and (name or "").lower() == "synchronous"
    return apsw.SQLITE_IGNORE if asked else apsw.SQLITE_OK


def broken(folder: Path, level: str) -> Counter[str]:
    """Cuts the power at moments of a script played with less flushing; what is broken after each."""
    with synchronous(level):
        value = power.play(1, folder)
    chance, kinds = random.Random(1), Counter[str]()
    for moment in chance.choices(power.moments(value.events), k=CUTS):
        try:
            power.cuts(value, [moment], folder / "left", chance)
        except Broken as error:
            kinds[error.kind] += 1
    return kinds


def test_full_loses_nothing(folder: Path) -> None:
    """The control of the controls: as vmstore flushes, the same cuts break nothing."""
    assert broken(folder, "FULL") == Counter()


def test_normal_loses_what_was_acknowledged(folder: Path) -> None:
    """With synchronous=NORMAL a power cut loses acknowledged appends, and tears nothing."""
    assert broken(folder, "NORMAL").keys() == {"lost"}


def test_off_corrupts(folder: Path) -> None:
    """With synchronous=OFF a power cut leaves logs that cannot be read."""
    assert broken(folder, "OFF")["unreadable"]


def later(name: str) -> Any:
    """A change of a mutation: one of its numbers is one too high."""
    return lambda mutation: replace(mutation, **{name: getattr(mutation, name) + 1})


OFF_BY_ONE = {
    "a call is numbered one too high": (CallsProjector, "on_pack", later("call")),
    "a page that left stays": (ResidencyProjector, "on_pack", lambda pack: replace(pack, left=pack.left[1:])),
}


@pytest.mark.parametrize("fault", OFF_BY_ONE)
def test_a_projector_off_by_one_is_caught(fault: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A projector that folds wrongly breaks what is asked of the store after a cut."""
    value = power.play(6, folder)
    ask_anew(value, folder / "left")
    projector, handler, change = OFF_BY_ONE[fault]
    right = getattr(projector, handler)

    def wrong(self: Any, *row: Any) -> None:
        right(self, *row[:-1], change(row[-1]))  # the mutation is the last thing a handler is given

    monkeypatch.setattr(projector, handler, wrong)
    with pytest.raises(Broken):
        ask_anew(value, folder / "left")


def ask_anew(other_world: power.PlayedScript, left: Path) -> None:
    """Cuts the power at some moments and asks the store everything, its views folded again."""
    for moment in range(len(other_world.events) // 2, len(other_world.events), len(other_world.events) // 8):
        world = World(other_world.events, other_world.root)
        world.advance(moment)
        views_gone(world)
        power.whole(world, other_world, left, random.Random(moment))


def views_gone(world: World) -> None:
    """Has the views folded again, by the projectors as they are now."""
    for names in (world.now, world.flushed):
        for path in [path for path in names if not power.of_the_log(path)]:
            del names[path]
    world.journal = [change for change in world.journal if power.of_the_log(change[1])]


def test_a_removed_hash_check_is_caught(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a commit's hash is taken as it stands, flips of hashed bytes go unnoticed, and the campaign says so."""
    for name in ("checked", "unchecked"):
        (folder / name).mkdir()
    logging.getLogger("vmstore").setLevel(logging.CRITICAL)
    try:
        assert flips.batch(1, folder / "checked")["hashed"]
        for module in [module for name, module in sys.modules.items() if name.startswith("vmstore.")]:
            if hasattr(module, "follows"):
                monkeypatch.setattr(module, "follows", lambda previous, commit: True)
        with pytest.raises(Broken) as raised:
            flips.batch(1, folder / "unchecked")
    finally:
        logging.getLogger("vmstore").setLevel(logging.NOTSET)
    assert raised.value.kind in ("unnoticed", "foreign error", "changed")


@pytest.mark.parametrize("noise", [0, 512, 4096])
def test_noise_in_the_first_sector_is_recovered(noise: int, folder: Path) -> None:
    """A log whose first sector a checkpoint that was cut left as noise opens: its WAL still holds that page."""
    other_world = power.play(1, folder)
    checkpointed = (
        number
        for number, event in enumerate(other_world.events, 1)
        if (event.kind, event.path, event.offset) == ("write", str(other_world.root / STORE / LOG), 0)
    )
    world = World(other_world.events, other_world.root)
    world.advance(next(checkpointed))
    image = world.image({}, len(world.journal), random.Random(1), power.of_the_log)
    path = next(path for path in image if path.endswith("/log.sqlite"))
    image[path] = random.Random(1).randbytes(noise) + (image[path] or b"")[noise:]
    with power.place(folder / "left"):
        lay(image, folder / "left")
        assert read_log(folder / "left" / STORE).commits


def test_a_seal_that_is_not_looked_at_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is held against the seal, the campaign says that nobody notices a forged history."""
    monkeypatch.setattr(Seal, "problems", lambda seal, histories: iter(()))
    with pytest.raises(Broken, match="nobody notices"):
        tamper.batch(1, folder, 300)


def test_a_signature_that_is_not_checked_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where any signature holds, the campaign says that a proof that is none passes."""
    monkeypatch.setattr(verify_proof, "signed", lambda public, message, signature: True)
    with pytest.raises(Broken, match="a proof that is none"):
        tamper.batch(1, folder, 300)


NOT_WHOLE: dict[str, tuple[str, Any]] = {
    "killed": ("vmstore.maintenance.backup.beside", contextmanager(lambda path: iter([path]))),
    "cut": ("vmstore.core.system.atomic_file.flush", lambda path: None),
}


@pytest.mark.parametrize("way", NOT_WHOLE)
def test_a_copy_that_is_not_whole_is_noticed(way: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a backup is written in place, or its name is not flushed, breaking it at every step finds so."""
    made = chores.scene(1, folder)
    monkeypatch.setattr(*NOT_WHOLE[way])
    chore, left = chores.CHORES["backup"], folder / "left"
    events, seen = chores.played(made, chore, left)
    kinds = Counter[str]()
    for n in range(1, 9 if way == "cut" else seen + 1):
        try:
            at = len(events) if way == "cut" else n  # it was acknowledged, and the power is cut in many ways
            chores.BREAK[way](made, chore, left, at, events, random.Random(n))
        except Broken as error:
            kinds[error.kind] += 1
    assert kinds.keys() <= {"unusable", "lost"} and kinds


def test_an_answer_of_another_basis_is_noticed(folder: Path) -> None:
    """An answer that is said to be of the commit before is found, and one of its own basis is not."""
    text = "MUTATIONS kind, count(*) BY kind ACROSS SESSIONS"
    with vmstore.open(folder / STORE) as store:
        for n in range(3):
            store.record("s", {"model": "m", "messages": [{"role": "user", "content": f"{n}"}]})
        answer = store.query(text)
        actual_answer = asking.Answer(text, None, answer.basis, asking.rows_text(answer), "rw")
    assert asking.check(folder, [actual_answer], random.Random(1))["answers"] == 1
    (folder / "cut.vms").rename(folder / "before.vms")
    early = actual_answer._replace(basis={**actual_answer.basis, "ordinal": actual_answer.basis["ordinal"] - 1})
    with pytest.raises(Broken, match="moved"):
        asking.check(folder, [early], random.Random(1))


# ---- the gate


def test_a_gate_that_looks_at_no_cell_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the gate lets any bytes into a cell, the campaign names the batch after which a question fails."""
    monkeypatch.setattr(BatchContents, "wrong", lambda self, ref, form: None)
    with pytest.raises(Broken, match=r"step \d+, batch in .*(verify|doctor)"):
        for seed in (7, 4, 1):
            (folder / str(seed)).mkdir()
            gate.batch(seed, folder / str(seed), 20)


def test_a_fold_that_raises_over_a_cell_is_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where such a cell stops the fold too, as it did once, the campaign meets the question that is not answered."""

    def decoded(content: bytes | None) -> Any:
        return json.loads(content or b"{}")

    monkeypatch.setattr(BatchContents, "wrong", lambda self, ref, form: None)
    monkeypatch.setattr(calls, "object_of", decoded)
    with pytest.raises(Broken):
        for seed in (7, 4, 1):
            (folder / str(seed)).mkdir()
            gate.batch(seed, folder / str(seed), 20)
