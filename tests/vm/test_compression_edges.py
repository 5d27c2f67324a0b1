"""Compression at its edges: long and hostile contents, other seeds of hashes, real sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.growing import grows_at_most
from tests.vm.test_compressors import LEVELS, PROGRAM, PROSE, ROWS, check_ladder, text
from vmstore.vm.compressors.form import Form, Material
from vmstore.vm.recall.text_pieces import CHARS_MAX

CHECKOUT = Path(__file__).resolve().parents[2]

# Long and hostile contents


def test_fifty_megabytes_are_read_at_their_ends() -> None:
    """What a summary of 50 MB keeps is of its first and last characters; the middle changes nothing in it."""
    line = "The server keeps a log of the cache in file number 17. "
    ends = line * (CHARS_MAX // len(line))
    long, longer = ends + "a b. " * 100_000 + ends, ends + "c d? " * 10_000_000 + ends
    for level in (1, 2):
        assert text(long, level) == text(longer, level)
        assert isinstance(text(long, level), Form)


GROWING: dict[str, Callable[[int], str]] = {
    "prose": lambda size: (PROSE + "\n") * (size // len(PROSE)),
    "program": lambda size: PROGRAM * (size // len(PROGRAM) + 1),
    "points": lambda size: "." * size,
    "quotes": lambda size: '."' * (size // 2),
    "brackets": lambda size: "[" * size,
    "fences": lambda size: "```\n" * (size // 4),
    "items": lambda size: "- a b\n" * (size // 6),
    "short sentences": lambda size: "Ab cd. " * (size // 7),
    "spaces": lambda size: "a" + " " * size + ".",
    "escapes": lambda size: "\x1b[" * (size // 2),
    "rows": lambda size: json.dumps(ROWS * (size // 5_000)),
    "keys": lambda size: json.dumps({f"k{at}": at for at in range(size // 12)}),
}


@pytest.mark.parametrize("shape", GROWING.values(), ids=GROWING)
def test_the_work_grows_with_the_text(shape: Callable[[int], str]) -> None:
    """Four times the text is at most ten times the work, whatever it is made of."""

    def work(content: str) -> Callable[[], object]:
        return lambda: [text(content, level) for level in LEVELS]

    assert grows_at_most(work(shape(16_000)), work(shape(64_000)), 10)


SEEDED = """
import json, sys
from vmstore.core.page import Modality
from vmstore.vm.claims.claims import ClaimSource, find
from vmstore.vm.compressors.form import Material
from vmstore.vm.compressors.registry import compressed
from vmstore.vm.recall.postings import Postings
from vmstore.vm.signals import asked
from vmstore.vm.recall.topics import topics
prose, rows = json.load(sys.stdin)
for level in (1, 2, 3):
    print(compressed(Material(content=prose.encode()), level))
    print(compressed(Material(content=rows.encode(), modality=Modality.STRUCTURED), level))
print(topics(prose), find([ClaimSource(1, 1, prose), ClaimSource(
    2, 1, "Let's use Go for the server and Rust for the parser.")]))
postings = Postings()
for page, text in enumerate(("limit", "bucket", "bucket of limits"), 1):
    postings.add(page, text)
print(postings.matches(asked("as we said, the bucket and its limit"), lambda page: True))
"""


def test_the_seed_of_hashes_changes_nothing() -> None:
    """Forms, topics, claims and wanted pages are the same under every PYTHONHASHSEED."""
    around = {key: value for key, value in os.environ.items() if key != "PYTHONHASHSEED"}
    around["PYTHONPATH"] = str(CHECKOUT)
    given_in = json.dumps([PROSE, json.dumps(ROWS)])
    printed = {
        subprocess.run(
            [sys.executable, "-c", SEEDED],
            input=given_in, capture_output=True, text=True, check=True, env={**around, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("0", "1", "4711")
    }  # fmt: skip
    assert len(printed) == 1 and "Rust" in printed.pop()


# Real contents


def real_texts(data: Path) -> list[str]:
    """What people, models and tools said in recorded sessions."""
    runs = json.loads((data / "tau-bench" / "airline_even_tasks.json").read_text())
    contents = [turn["content"] for run in runs[::20] for turn in run["traj"] if turn.get("content")]
    for line in (data / "pi" / "before-compaction.jsonl").read_text().splitlines()[:700]:
        content = json.loads(line).get("message", {}).get("content", [])
        contents += [part["text"] for part in content if isinstance(part, dict) and part.get("text")]
    history = json.loads((data / "swe-agent" / "marshmallow-1867_default.traj").read_text())["history"]
    return contents + [record["content"] for record in history if isinstance(record["content"], str)]


def test_real_sessions_become_shorter(data: Path) -> None:
    """Of long real texts nearly all have each level, and together they shrink as they should."""
    texts = [real_text for real_text in real_texts(data) if len(real_text) >= 1_500]
    whole = sum(map(len, texts))
    assert len(texts) > 40
    for level, least, share in ((1, 95, 40), (2, 90, 12), (3, 100, 4)):
        forms = [text(prose, level) for prose in texts]
        there = [form for form in forms if isinstance(form, Form)]
        assert len(there) * 100 >= least * len(texts), (level, len(there), len(texts))
        assert sum(len(form.content) for form in there) * 100 <= share * whole
    for each_text in texts[::10]:
        check_ladder(Material(content=each_text.encode()))
