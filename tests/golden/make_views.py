"""Writes `views-1.json`: `PYTHONPATH=. python tests/golden/make_views.py`.

It holds the version of each view and the digests of its rows for two logs that are always the same, written with a
clock and ids that repeat: the session that ships with a fork of it, and a story of every kind of mutation. Run it
where the version of a view was raised, or where what is logged of them was changed.
"""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import apsw

import vmstore
from tests.engine.author import Author, engine_over
from tests.views.test_alphabet import STORY
from vmstore.core.clock import ManualClock, SeededIds
from vmstore.log.memory import MemoryLog
from vmstore.log.port import Log
from vmstore.shell.demo.demo import SHIPPED
from vmstore.views.projection import PROJECTORS, Projection

VIEWS = Path(__file__).resolve().with_name("views-1.json")


def folded() -> dict[str, Any]:
    """Of each log the hash of its last commit; of each view its version and the digest of its rows, log by log."""
    with vmstore.memory_store(clock=ManualClock(1_795_301_701_000_000), ids=SeededIds(5)) as store:
        with chdir(SHIPPED.parent):  # where the file lies stands in no log
            name = store.import_file(SHIPPED.name).sessions[0].session
        store.session(name).fork("fork", turn=20)
        logs = (store.admin.log, story())
        lasts = [log.tail(log.ordinal - 1, 1)[0].hash.hex()[:16] for log in logs]
        digests: dict[str, list[Any]] = {view.name: [view.version] for view in PROJECTORS}
        for log in logs:
            projection = Projection(log, apsw.Connection(":memory:"))
            projection.catch_up()
            for name, digest in digests.items():
                digest.append(projection.digest(name).hex()[:16])
        return {"logs": lasts, "views": digests}


def story() -> Log:
    """A log of every kind of mutation."""
    log = MemoryLog()
    Author(engine_over(log)).write(STORY)
    return log


def main() -> None:
    """Writes the file, a line for each view."""
    made = folded()
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(view)}" for name, view in made["views"].items())
    VIEWS.write_text(f'{{"logs": {json.dumps(made["logs"])}, "views": {{\n{lines}\n}}}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
