"""Facts of a live session: a page each, which assembly or a recall brings into the prompt."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vmstore.capture.facts import FactAnswer, caused_by, write, write_additions, write_answer
from vmstore.core.decision import Cause
from vmstore.core.mutation import Evict
from vmstore.facts.addition import Addition
from vmstore.facts.fact import StatedFact
from vmstore.live.messages import alone
from vmstore.live.runtime import Act


def state(act: Act, added: Sequence[Addition], answer: FactAnswer | None = None) -> list[int]:
    """Writes facts that were checked, behind the answer that a model gave of them; their pages.

    They leave the prompt at once: they are many and it is small.
    """
    if answer is not None:
        added = caused_by(added, write_answer(answer, partial(alone, act), act.tell))

    def one(fact: StatedFact) -> int:
        page = write(fact, partial(alone, act), act.cell, act.tell)
        here = act.state.here.get(page)
        if here is not None:
            act.tell(Evict(page, Cause.ASKED, here.tokens))
        return page

    return write_additions(added, one, act.tell)
