"""The figures of the house, as `python tools/tidy.py --figures` prints them: counts, against what they should be."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Names that modules once had and that did not say what was in them, by room.
OLD_NAMES = {
    "aio": "twins",
    "capture": (
        "born change client/underway feed held hiding revise thoughts unseen shapes/plain shapes/shape "
        "shapes/chat sources/glance sources/lines sources/packed sources/shaped sources/talk sources/chat"
    ),
    "columns": "cut shelf table",
    "core": "notice reference words sharing kind",
    "debug": "answers asked film happened live refusals share texts",
    "engine": (
        "adopt anew apart doors gate granted growth histories inherited known opening policy recent ruling "
        "sealing soundness subject"
    ),
    "exports": "intake newfile weight",
    "live": "configuring facts finder forms leaves packing remembering renewing saying shorter spoken",
    "log": "archived archives archiving files reading readlog vault waiting",
    "redact": "door keys named people suspects",
    "replay": "crew keep paper places",
    "shell": (
        "about arguments_care ask blame catalog consent damage erase_arguments handing keep leaving looks "
        "looks_page managed opening questions retain_arguments share sharing sheet take trust_arguments "
        "upkeep words tour vmql/desk vmql/modes vmql/offered vmql/running vmql/sitting"
    ),
    "store": (
        "across acting annotating answering answers approving archiving asking beginning bringing called "
        "candidates catalog causes cell_uses charter copies disputes encrypting erasing erasing_again fallout "
        "faulted keys ledger lifted live measuring merging naming opening packed proving recording redacted "
        "redriving relatives replaying retaining retention retracting retraction scrubbing searching sweeping "
        "symptoms together until upgrading vacating verdict"
    ),
    "testing": "life living wording checks",
    "views": "access cellar erased ground lane moves notes prefix walk moment",
    "vm": (
        "held measures pace overhead phrases wording reading references room shortening compressors/lines "
        "compressors/references policies/fixed policies/keep policies/line policies/lines protocol/calls "
        "protocol/envelope protocol/leaf protocol/packs protocol/wire"
    ),
    "vmql": (
        "asker common forms habits handed made pieces problems refusals rows run shared shows slips tables "
        "terms until unused wide world"
    ),
}

INFLECTED = ("ing", "ed")
INFLECTED_ALLOWED = frozenset(["testing"])
"""Names that end so and are plain: what is for tests is called so everywhere, and users import it by that name."""

ASSERTS_ROOMS = ("core", "log", "views", "engine")

# Counts the files of vmstore that one call runs through, in a process of its own.
TRACED = """
import json, sys
import vmstore

SAID = [{"role": "user", "content": "Hello?"}]

def request(said):
    return {"model": "m", "messages": said}

def answer(text):
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}

def files_of(call):
    seen = set()
    def look(frame, event, argument):
        seen.add(frame.f_code.co_filename)
    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    inside = vmstore.__file__.removesuffix("__init__.py")
    return sorted(name.removeprefix(inside) for name in seen if name.startswith(inside))

store = vmstore.memory_store()
store.record("recorded", request(SAID), answer("Hi."))
more = [*SAID, {"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on."}]
recorded = files_of(lambda: store.record("recorded", request(more), answer("Yes.")))
live = store.live_session("live", l0_tokens_max=8000)
live.user("Hello?")
packed = files_of(live.pack)
print(json.dumps({"record": recorded, "pack": packed}))
"""


class Figure(NamedTuple):
    """One row: what is counted, the number, the goal in words, and what the number is made of."""

    what: str
    value: float
    goal: str
    of: list[str]


def figures(root: Path) -> list[Figure]:
    """Every figure of a checkout."""
    sources = {path: path.read_text(encoding="utf-8") for path in sorted((root / "vmstore").rglob("*.py"))}
    names = {path.relative_to(root / "vmstore").as_posix(): text for path, text in sources.items()}
    trees = {path: ast.parse(text) for path, text in names.items()}
    poor = sorted({*inflected(list(names)), *old_names(list(names))})
    shared = {name: places for name, places in public_classes(trees).items() if len(places) > 1}
    folder, most = max(by_folder(list(names)).items(), key=lambda item: item[1])
    actual_figures = [
        Figure("modules named in -ing or -ed, or by a name that was given up", len(poor), "0", poor),
        Figure("public class names used for different things", len(shared), "at most 10", words(shared)),
        Figure("files in vmstore/", len(names), "at most 430", []),
        Figure("lines in vmstore/", sum(text.count("\n") for text in names.values()), "at most 65,000", []),
        Figure("files in one folder", most, "at most 20", [folder]),
    ]
    through = traced(root)
    actual_figures.append(
        Figure("files that Store.record runs through, second call", len(through["record"]), "30", through["record"])
    )
    actual_figures.append(Figure("files that session.pack runs through", len(through["pack"]), "50", through["pack"]))
    for room in ASSERTS_ROOMS:
        actual_figures.append(Figure(f"asserts per 1,000 lines in {room}", asserts(names, room), "10", []))
    return actual_figures


def words(shared: dict[str, list[str]]) -> list[str]:
    """Names and where they stand, one a line."""
    return [f"{name}: {', '.join(places)}" for name, places in sorted(shared.items())]


def inflected(paths: list[str]) -> Iterator[str]:
    """Modules and packages whose names end like a participle."""
    for path in paths:
        parts = path.removesuffix("/__init__.py").removesuffix(".py").split("/")
        if parts[-1].endswith(INFLECTED) and parts[-1] not in INFLECTED_ALLOWED:
            yield path


def old_names(paths: list[str]) -> Iterator[str]:
    """Modules that stand under a name that was given up."""
    given_up = {f"{room}/{name}.py" for room, listed in OLD_NAMES.items() for name in listed.split()}
    return (path for path in paths if path in given_up)


def public_classes(trees: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Where each public class is defined; those of `aio` are twins, which share the names of what they twin."""
    fields = defaultdict(list)
    for path, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and not path.startswith("aio/"):
                fields[node.name].append(path)
    return fields


def by_folder(paths: list[str]) -> dict[str, int]:
    """How many Python files each folder has."""
    counts: dict[str, int] = defaultdict(int)
    for path in paths:
        counts[path.rpartition("/")[0] or "."] += 1
    return counts


def asserts(names: dict[str, str], room: str) -> float:
    """The asserts of a room per 1,000 of its lines."""
    texts = [text for path, text in names.items() if path.startswith(f"{room}/")]
    lines = sum(text.count("\n") for text in texts)
    count = sum(isinstance(node, ast.Assert) for text in texts for node in ast.walk(ast.parse(text)))
    return round(1000 * count / lines, 1) if lines else 0.0


def traced(root: Path) -> dict[str, list[str]]:
    """The files that two calls run through, looked at in a process of their own."""
    own = root / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    done = subprocess.run([python, "-c", TRACED], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise SystemExit(
            f"{python} cannot follow the two calls ({reason}); run `python3 tools/check.py` once, then again"
        )
    fields: dict[str, list[str]] = json.loads(done.stdout)
    return fields


def show(root: Path, as_json: bool) -> None:
    """Prints the figures, as a table or as JSON with what each is made of."""
    actual_figures = figures(root)
    if as_json:
        print(json.dumps([actual_figure._asdict() for actual_figure in actual_figures], indent=1))
        return
    print(table(actual_figures))


def table(rows: list[Figure]) -> str:
    """The figures as lines of three columns."""
    wide = max(len(row.what) for row in rows)
    lines = (f"{row.what:{wide}}  {row.value:>8,}  {row.goal}" for row in rows)
    return "\n".join([f"{'what':{wide}}  {'now':>8}  goal", *lines])
