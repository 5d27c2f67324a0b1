"""The step of the demo that manages: the same session in a budget, and why a page it needed was out."""

from __future__ import annotations

from pathlib import Path

from vmstore.shell.commands.data.redrive import SUFFIX
from vmstore.shell.demo.tour import TourStep
from vmstore.shell.terminal.layout import Block, StyledText
from vmstore.store.live.live_session import Live
from vmstore.store.store import open_store

BUDGET = 8_000
STORE = "managed.vms"


def managed(path: Path, source: Path, named: str) -> TourStep:
    """Re-drives the shipped session under a kernel, in a store beside, and asks it about the first fault."""
    store = open_store(path)
    try:
        recorded = store.import_file(source).sessions[0].session
        name = recorded + SUFFIX
        known = name in {entry.session for entry in store.sessions()}  # where the demo was here before
        live = store.session(name) if known else store.admin.redrive(recorded, name, l0_tokens_max=BUDGET)
        assert isinstance(live, Live), "what was re-driven manages its memory"
        numbers = live.stats()
        fault = next(entry for entry in live.debug.faults() if entry.out_since is not None)
        asked = f"WHY NOT {fault.page} IN CONTEXT AT CALL {fault.call} IN SESSION '{live.name}'"
        (out, *_) = store.query(asked).to_dicts()
        said = f"{fault.page} is not in call {fault.call}: "
        peak = f"{numbers.l0_peak:,} of {BUDGET:,} tokens at most over {numbers.calls} calls"
        blocks: list[Block] = [
            StyledText(f"{peak}; {numbers.evictions} pages left, {numbers.faults} were asked for again."),
            (StyledText(f"{fault.page} was {out['event']}: ", "bold"), str(out["reason"]).removeprefix(said)),
        ]
        facts = {"budget": BUDGET, "peak": numbers.l0_peak, "evictions": numbers.evictions, "faults": numbers.faults}
        return TourStep(
            f"The same session in {BUDGET:,} tokens, and why a page was out",
            "Re-driven, a kernel decides what its prompts hold; each decision is logged with the contest it came from.",
            f'vmql {named} -c "{asked}"',
            blocks,
            {**facts, "page": fault.page, "call": fault.call, "contest": out["contest"]},
        )
    finally:
        store.close()
