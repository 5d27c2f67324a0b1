"""Which pages may be shown shorter under pressure, and which are better whole or gone."""

from __future__ import annotations

from vmstore.core.page import Level, Modality, Role
from vmstore.vm.compressors.page_types import COMPRESSION
from vmstore.vm.kernel.managed_page import Held

TOKENS_MIN = 256  # what is shorter gains little from an abstract, and costs a form and two decisions


def may_shorten(held: Held, level: int = Level.REDUCED, *, rarely: bool = False) -> bool:
    """Whether a page may be shown at a level, where `rarely` even as one that seldom is.

    Of a tool call nothing but the whole is one.
    """
    rule, full = COMPRESSION[held.type], held.forms[0]
    if level > rule.level_max or (rule.rarely and not rarely) or held.opaque:
        return False
    if full is None or full.tokens < TOKENS_MIN:
        return False
    return not (held.role == Role.ASSISTANT and held.modality is Modality.STRUCTURED)
