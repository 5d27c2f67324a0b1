"""Differences between two contexts: pages that entered, left, or changed form or place."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

from vmstore.core.address import page_name
from vmstore.core.page import PageType, Role
from vmstore.namespace.results import Change, Diff
from vmstore.store.reads.context import Context
from vmstore.views.reads.context import ShownPage

K = TypeVar("K", bound=Hashable)


def diff(first: Context, second: Context, texts: Mapping[int, str]) -> Diff:
    """The differences between two contexts of a session, whose pages have the beginnings in `texts`."""
    before, after = ({shown.page: shown for shown in context.shown} for context in (first, second))
    changes, unchanged = differing(before, after, texts)
    ordered = [change for _, change in changes]
    return Diff(first.basis, second.basis, first.tokens, second.tokens, unchanged, ordered)


def differing(
    before: Mapping[K, ShownPage], after: Mapping[K, ShownPage], texts: Mapping[K, str]
) -> tuple[list[tuple[K, Change]], int]:
    """Each difference between two contexts, whose pages are identified by some key, and how many there are not."""
    gone = [key for key in before if key not in after]
    changes = [(key, _change("left", before[key], None, texts.get(key, ""))) for key in gone]
    unchanged = 0
    for key, shown in after.items():
        was, text = before.get(key), texts.get(key, "")
        if was is None:
            changes.append((key, _change("entered", None, shown, text)))
        elif (was.commitment, was.level, was.rank) != (shown.commitment, shown.level, shown.rank):
            changes.append((key, _change(_kind(was, shown), was, shown, text)))
        else:
            unchanged += 1
    return changes, unchanged


def one_sided(shown: ShownPage, *, entered: bool) -> Change:
    """A page that only one of two contexts has."""
    return _change("entered", None, shown, "") if entered else _change("left", shown, None, "")


def _kind(was: ShownPage, now: ShownPage) -> str:
    """The change of a page that stays: shorter, other words, or another place alone."""
    if now.level > was.level:
        return "compressed"
    return "changed" if (was.commitment, was.level) != (now.commitment, now.level) else "moved"


def _change(change: str, was: ShownPage | None, now: ShownPage | None, text: str) -> Change:
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
        text=text,
    )
