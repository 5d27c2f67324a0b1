"""Redaction: how fast texts are looked through for secrets and personal data."""

from __future__ import annotations

from collections.abc import Iterator

from bootstrap import ROOT

from benches.parts import text
from benches.parts.rounds import Bench, Goal, Row, row
from vmstore.redact.find import spans

LONG = Goal("prose, code and a session as they lie here, looked through: MB a second of CPU", 5)
PAGES = Goal("10,000 pages of made-up text, one by one: MB a second of CPU", 5)
GOALS = (LONG, PAGES)

COUNT = (10_000, 200)
ROUNDS = (7, 2)
READ = ("specs/*.md", "vmstore/**/*.py", "vmstore/shell/demo.jsonl")
OURS = "redact"  # the package whose tables hold every literal that is looked for, as no other text does


def measure(bench: Bench) -> Iterator[Row]:
    """Looks through long texts and short ones."""
    paths = [path for pattern in READ for path in sorted(ROOT.glob(pattern)) if path.parent.name != OURS]
    whole = "\n".join(path.read_text() for path in paths)
    made = iter(text.Texts(1))
    pages = [next(made).decode() for _ in range(bench.size(*COUNT))]
    whole = whole[: bench.size(len(whole), 100_000)]
    taken = bench.race(
        {"long": lambda: spans(whole), "pages": lambda: [spans(page) for page in pages]}, bench.size(*ROUNDS)
    )
    sizes = {"long": len(whole.encode()) / 1e6, "pages": sum(len(page.encode()) for page in pages) / 1e6}
    bench.say(f"  {sizes['long']:.1f} MB in one text, {sizes['pages']:.1f} MB in {len(pages)}")
    for goal, name in ((LONG, "long"), (PAGES, "pages")):
        yield row(goal, [sizes[name] / item for item in taken[name]])
