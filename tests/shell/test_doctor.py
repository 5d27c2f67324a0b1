"""The command that looks at a store."""

from __future__ import annotations

import os
from pathlib import Path

from tests.shell.conftest import Run


def test_doctor_shape(run: Run, recorded: Path) -> None:
    """`doctor` leaves with 0 where nothing is to be done, and with 1 and the command that mends it otherwise."""
    done = run("doctor", recorded)
    assert done.code == 0 and "healthy: nothing to do" in done.out and " behind" in done.out
    assert run("doctor", recorded, "--full", "--json").json["ok"] and run("doctor", recorded, "--quiet").out == ""
    stray = recorded / "default/blobs/00" / ("00" * 32)
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"x")
    os.utime(stray, (1, 1))
    done = run("doctor", recorded)
    assert done.code == 1 and f"vmstore sweep {recorded}" in done.out
    assert run("doctor", recorded, "--json").json["symptoms"][0]["kind"] == "stray"
    assert run("doctor", recorded, "--quiet").out.count("stray") == 1
    assert run("doctor", recorded.parent / "none").code == 1
