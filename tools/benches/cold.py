"""Cold: what a mutation weighs in a cold tier, and what one session as of a position costs from a million of them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from benches.parts import child, doors, stores
from benches.parts.rounds import LOWER, Bench, Goal, Row, row
from benches.parts.story import AT, Story
from benches.parts.text import Texts
from vmstore.maintenance.publish import publish

BYTES = Goal("archives, column segments and manifest of sessions of 1000: bytes a mutation", 60, LOWER)
ARCHIVES = Goal("of that archives", 60, LOWER)
FETCHED = Goal("a session of 1000 as of a position, nothing of it here: CPU ms", 100, LOWER)
COPIED = Goal("the same with its archive here: CPU ms", 100, LOWER)
GOALS = (BYTES, ARCHIVES, FETCHED, COPIED)

SESSIONS = (1_000, 8)
MUTATIONS_EACH = (1_000, 200)
COMMIT = 20
ROUNDS = (11, 2)


def measure(bench: Bench) -> Iterator[Row]:
    """All rows; the tier is a folder, so that no network is measured."""
    count, each = bench.size(*SESSIONS), bench.size(*MUTATIONS_EACH)
    store = stores.built(bench, f"cold-{count}-by-{each}", lambda path: tell(path, count, each))
    tier = bench.folder / "tier"
    address = f"cold://{tier}"
    with doors.opened(stores.copied(store, bench.folder / "cold.vms")) as opened:
        bench.say("publishing")
        publish(opened, address)
    mutations = count * each
    sizes = {kind: sum(file.stat().st_size for file in tier.glob(f"*/{kind}/**/*") if file.is_file()) for kind in KINDS}
    yield row(BYTES, [sum(sizes.values()) / mutations])
    yield row(ARCHIVES, [sizes["archives"] / mutations])
    yield row(FETCHED, _asked(bench, address, each // 2, fresh=True))
    yield row(COPIED, _asked(bench, address, each // 2, fresh=False))


KINDS = ("archives", "segments", "catalogues", "manifests")


def tell(path: Path, count: int, each: int) -> None:
    """Writes sessions of one length."""
    texts = Texts(9)
    with doors.opened(path) as store:
        for number in range(count):
            story = Story(number, texts)
            with doors.opening(store, f"s{number}", AT) as under_way:
                doors.play(under_way, story.commit(COMMIT - 1))
            session = store.session(f"s{number}")
            for _ in range(each // COMMIT - 1):
                doors.write(session, story.commit(COMMIT))
        store.admin.follow()


def _asked(bench: Bench, address: str, position: int, *, fresh: bool) -> list[float]:
    """Milliseconds of CPU, each time in a process of its own."""
    copies = bench.folder / "copies"
    asked: list[float] = []
    for _ in range(bench.size(*ROUNDS)):
        if fresh:
            shutil.rmtree(copies, ignore_errors=True)
        asked.append(1000 * child.seconds("as_of", f"{address}?cache={copies}", "s7", position))
    return asked
