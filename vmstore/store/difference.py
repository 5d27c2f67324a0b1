"""What changed between the contexts of two moments."""

from __future__ import annotations

from vmstore.core.page import PageType, Role
from vmstore.core.reference import page_name
from vmstore.store.answers import Change, Diff
from vmstore.store.context import Context
from vmstore.views.context import Shown


def diff_of(first: Context, second: Context, texts: dict[int, str]) -> Diff:
    """What changed between two contexts; `texts` are the beginnings of their pages."""
    before = {shown.page: shown for shown in first.shown}
    after = {shown.page: shown for shown in second.shown}
    changes = [_change("left", shown, None, texts) for page, shown in before.items() if page not in after]
    unchanged = 0
    for page, shown in after.items():
        was = before.get(page)
        if was is None:
            changes.append(_change("entered", None, shown, texts))
        elif was.commitment != shown.commitment:
            changes.append(_change("compressed" if shown.level > was.level else "changed", was, shown, texts))
        else:
            unchanged += 1
    return Diff(first.basis, second.basis, first.tokens, second.tokens, unchanged, changes)


def _change(change: str, was: Shown | None, now: Shown | None, texts: dict[int, str]) -> Change:
    shown = now or was
    assert shown is not None, "a change has at least one side"
    return Change(
        change=change,
        page=page_name(shown.page),
        message=f"m{shown.message}" if shown.message else None,
        role=Role(shown.role).word,
        type=PageType(shown.type).word,
        tokens_before=was.tokens if was else 0,
        tokens_after=now.tokens if now else 0,
        level_before=was.level if was else None,
        level_after=now.level if now else None,
        text=texts.get(shown.page, ""),
    )
