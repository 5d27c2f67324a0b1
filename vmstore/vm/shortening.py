"""Which pages may be shown shorter under pressure, and which are better whole or gone."""

from __future__ import annotations

from vmstore.core.page import PageType
from vmstore.vm.held import Held

TOKENS_MIN = 64  # what is shorter gains nothing from an abstract
WHOLE = frozenset((PageType.INDEX, PageType.CLAIM, PageType.PROCEDURE, PageType.SUMMARY))


def may_shorten(held: Held) -> bool:
    """Whether an abstract of a page is worth making; of claims, procedures, indexes and summaries it is not."""
    return (
        held.type not in WHOLE
        and not held.opaque
        and held.forms[0] is not None
        and (held.forms[0].tokens >= TOKENS_MIN)
    )
