"""Which pages may be shown shorter under pressure, and which are better whole or gone."""

from __future__ import annotations

from vmstore.core.page import Modality, PageType, Role
from vmstore.vm.held import Held

TOKENS_MIN = 64  # what is shorter gains nothing from an abstract
WHOLE = frozenset((PageType.INDEX, PageType.CLAIM, PageType.PROCEDURE, PageType.SUMMARY))


def may_shorten(held: Held) -> bool:
    """Whether an abstract of a page is worth making; of a tool call nothing but the whole is one."""
    full = held.forms[0]
    if held.type in WHOLE or held.opaque or full is None or full.tokens < TOKENS_MIN:
        return False
    return not (held.role == Role.ASSISTANT and held.modality is Modality.STRUCTURED)
