"""What came of asking for a page, told to whoever asked."""

from __future__ import annotations

from vmstore.core.address import page_name
from vmstore.core.decision import Denial
from vmstore.core.mutation import Evict, FaultDenied, FaultIn
from vmstore.live.page_moves import Answered
from vmstore.live.runtime import Act
from vmstore.namespace.results import Faulted


def faulted(act: Act, found: Answered, asked: str) -> Faulted:
    """The answer to a fault: what is shown, and what had to give way."""
    denied = [m for m in found.decided if isinstance(m, FaultDenied) and m.page == found.page]
    held = act.state.here.get(found.page)
    content = b""
    if held is not None:
        content = act.forms.of(held.residence[1])
    evicted = [page_name(m.page) for m in found.decided if isinstance(m, Evict) and m.level is None]
    return Faulted(
        page=page_name(found.page) if found.page else asked,
        number=found.page,
        granted=not denied and held is not None,
        denied_because=Denial(denied[0].because).word if denied else None,
        level=found.level,
        tokens=held.tokens if held is not None else 0,
        content=content,
        came=any(isinstance(m, FaultIn) for m in found.decided),
        evicted=evicted,
    )
