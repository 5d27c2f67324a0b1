"""The verdict on a store: every hash, every rule, every view, every column, and what is wrong with them."""

from __future__ import annotations

from vmstore.engine.verify import Finding, verify
from vmstore.log.port import Progress
from vmstore.store.columns import VIEW, ColumnStore
from vmstore.store.namespace import Namespace
from vmstore.store.reports import Problem, Verdict


def verdict_on(ns: Namespace, columns: ColumnStore, progress: Progress | None, *, views: bool, rules: bool) -> Verdict:
    """Checks the log, and with `views` what follows it, with `rules` each mutation against them."""
    with ns.lock:
        problems: list[Finding] = []
        try:
            if views:
                ns.follow()
        except Exception as error:  # the views could not be folded: the log check says why
            problems.append(Finding("views", "views", f"{type(error).__name__}: {error}"))
        counts, found = verify(ns.log, ns.projection, progress, views=views, rules=rules)
        problems = found + [p for p in problems if not found]
        if views and not problems:
            problems = [Finding(VIEW, *problem) for problem in columns.problems()]
        return Verdict(not problems, *counts, [Problem(*p) for p in problems])
