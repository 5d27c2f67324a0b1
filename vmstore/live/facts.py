"""Facts of a live session: a page each, which assembly or a recall brings into the prompt."""

from __future__ import annotations

from functools import partial

from vmstore.capture.facts import write
from vmstore.core.decision import Cause
from vmstore.core.mutation import Evict
from vmstore.facts.fact import StatedFact
from vmstore.live.messages import alone
from vmstore.live.runtime import Act


def state(act: Act, fact: StatedFact) -> int:
    """Writes a fact that was checked; its page, which leaves the prompt at once: facts are many and it is small."""
    page = write(fact, partial(alone, act), act.cell, act.tell)
    here = act.state.here.get(page)
    if here is not None:
        act.tell(Evict(page, Cause.ASKED, here.tokens))
    return page
