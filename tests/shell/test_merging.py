"""The command that merges stores."""

from __future__ import annotations

import shutil
from pathlib import Path

import vmstore
from tests.shell.conftest import SYSTEM, Run


def test_merge_shape(run: Run, recorded: Path, tmp_path: Path) -> None:
    """`merge` says what came, leaves with 1 and names the remedy where sessions parted, and writes nothing when dry."""
    other = tmp_path / "other.vms"
    shutil.copytree(recorded, other)
    with vmstore.open(other) as store:
        store.record("s2", {"model": "m", "messages": [SYSTEM]}, None)
    dry = run("merge", recorded, other, "--dry-run")
    assert dry.code == 0 and "would merge: 2 sessions looked at: 1 the same, 1 new" in dry.out
    done = run("merge", recorded, other, "--json")
    assert done.code == 0 and done.json["conflicts"] == 0
    assert [(session["session"], session["outcome"]) for session in done.json["sessions"]] == [
        ("s1", "same"),
        ("s2", "new"),
    ]
    for path in (recorded, other):
        with vmstore.open(path) as store:
            store.record("s2", {"model": "m", "messages": [SYSTEM, {"role": "user", "content": path.name}]}, None)
    parted = run("merge", recorded, other)
    assert parted.code == 1 and "conflict: s2: both went on differently after position" in parted.out
    assert f"vmstore export {other} s2" in parted.out
