"""The same session gives the same decisions, in whichever process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
RUN = f"""
import sys
sys.path[:0] = {[str(ROOT), str(ROOT / "tools")]!r}
from tests.vm.policies.test_order import SLOW, Story, long_story, policy
for name in SLOW:
    story = Story([policy(name, 3_000)])
    for deed in long_story(5):
        story.play(deed)
        if deed[0] != "use":
            print(name, [tuple(scored) for scored in story.told[0].victims(story.now)])
from benches.parts.traces import family
print(family(3, 2_000))
"""


def decided(seed: str) -> str:
    """Everything every policy says about a session, in a process with a hash seed of its own."""
    environment = {"PYTHONHASHSEED": seed, "PATH": ""}
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, env=environment, check=True)
    return done.stdout


def test_a_hash_seed_changes_nothing() -> None:
    """Order and scores of all policies, and the traces they are measured on, are the same under any hash seed."""
    first, *others = (decided(seed) for seed in ("0", "1", "4294967295"))
    assert len(first) > 100_000
    assert all(other == first for other in others)
