"""Importing costs what a source adds: a call of a long conversation is no dearer than one of a short conversation."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.capture.imports import chat, pi
from vmstore.capture.importers.importer import Importer
from vmstore.capture.steps import CallStep, MessageStep, ParsedSource, Step, SummaryStep, Track
from vmstore.core.draft import Draft, Part, ReplyDraft
from vmstore.core.page import Modality, Role, Slot, Status
from vmstore.store.store import Store, memory_store

CODE = ("/vmstore/capture/", "/vmstore/engine/", "/vmstore/cells/")


def lines_run(store: Store, file: Path) -> int:
    """How many lines of the code that writes an import takes."""
    count = 0

    def tick(frame: Any, event: str, arg: Any) -> Any:
        nonlocal count
        if not any(where in frame.f_code.co_filename for where in CODE):
            return None
        count += 1
        return tick

    sys.settrace(tick)
    try:
        store.import_file(file)
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("make", [chat, pi])
def test_four_times_the_calls_take_about_four_times_the_work(make: Any, tmp_path: Path) -> None:
    """What an answer saw is the line before it, which is not gone through again at each answer."""
    work = {}
    for turns in (1, 40, 160):
        file = tmp_path / f"{turns}.jsonl"
        file.write_text("".join(json.dumps(record) + "\n" for record in make(turns)))
        with memory_store() as store:
            work[turns] = lines_run(store, file)
    assert work[160] < 5 * work[40]


def draft_of(n: int, role: Role, slot: Slot) -> Draft:
    content = b"message %d" % n
    return Draft(role, json.dumps({"n": n}).encode(), (Part(content, Modality.TEXT),), slot)


def line_of(sofar: list[tuple[Slot, int]]) -> list[int]:
    """What a call shows of what was said: by slots, within each as it came."""
    return [n for _, n in sorted(sofar, key=lambda row: row[0])]


def test_what_comes_late_to_an_early_part_of_the_request_stands_there_at_the_next_call(tmp_path: Path) -> None:
    """Instructions and tools told between calls stand before all messages, a summary before what was kept."""
    steps: list[Step] = []
    sofar: list[tuple[Slot, int]] = []
    expected: list[list[int]] = []

    def say(role: Role, slot: Slot) -> None:
        n = len(steps)
        steps.append(MessageStep(raw=b"%d" % n, line=n + 1, draft=draft_of(n, role, slot)))
        sofar.append((slot, n))

    def answer() -> None:
        n = len(steps)
        expected.append(line_of(sofar))
        reply = ReplyDraft(Status.OK, (draft_of(n, Role.ASSISTANT, Slot.MESSAGES),), True)
        steps.append(CallStep(raw=b"%d" % n, line=n + 1, reply=reply))
        sofar.append((Slot.MESSAGES, n))

    say(Role.USER, Slot.MESSAGES)
    answer()
    say(Role.SYSTEM, Slot.SYSTEM)
    say(Role.USER, Slot.MESSAGES)
    answer()
    say(Role.USER, Slot.MESSAGES)
    answer()
    say(Role.SYSTEM, Slot.TOOLS)
    say(Role.SYSTEM, Slot.SYSTEM)
    answer()
    answer()
    kept, n = len(steps) - 2, len(steps)
    steps.append(SummaryStep(raw=b"%d" % n, line=n + 1, draft=draft_of(n, Role.USER, Slot.MESSAGES), kept_from=kept))
    stay = [row for row in sofar if row[0] is not Slot.MESSAGES]
    sofar[:] = [*stay, (Slot.MESSAGES, n), *[row for row in sofar if row[0] is Slot.MESSAGES and row[1] >= kept]]
    answer()
    say(Role.SYSTEM, Slot.SYSTEM)
    answer()
    with memory_store() as store:
        reading = ParsedSource(format="test", tracks=[Track(key="k", steps=steps)])
        Importer(store._ns.engine, reading, tmp_path / "f", None).run()
        session = store.session("k")
        for call, want in enumerate(expected, 1):
            shown = [int(content.split()[1]) for content in session.context(call=call).contents().values()]
            assert shown == want
