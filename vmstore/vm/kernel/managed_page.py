"""A page with all the kernel keeps of it: its forms by level, its place, and what holds it."""

from __future__ import annotations

import msgspec

from vmstore.core.decision import Holder
from vmstore.core.mutation import Residence
from vmstore.core.page import Method, Mime
from vmstore.vm.policies.resident import Resident

_HARD = 1 << Holder.HAND | 1 << Holder.SYSTEM | 1 << Holder.TOOLS | 1 << Holder.PLAN


class ManagedForm(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One form of a page's content: the position that made it, its tokens, and how it was made where it is shorter."""

    position: int
    tokens: int
    method: Method | None = None


class ManagedPage(Resident, gc=False, kw_only=True, array_like=True):
    """A page of a session. `forms` are those of its last version by level, None where there is none.

    `holders` has a bit for each `Holder` that pins it; `faulted` and `yields` are the turns it was
    last asked for and last had to yield in, -1 where never. What is `opaque` has no content to shorten.
    `answers` is the page of the tool call it answers, `origin` the page it was written to stand for; 0 of none.
    """

    version: int
    message: int
    segment: int
    role: int
    mime: Mime
    forms: list[ManagedForm | None]
    opaque: bool = False
    rank: int = 0
    holders: int = 0
    faulted: int = -1
    yields: int = -1
    answers: int = 0
    origin: int = 0

    @property
    def pinned(self) -> bool:
        """Whether it never yields."""
        return bool(self.holders & _HARD)

    def made(self, level: int) -> int | None:
        """The lowest level from one on that it has a form of."""
        return next((at for at in range(level, len(self.forms)) if self.forms[at] is not None), None)

    @property
    def residence(self) -> Residence:
        """Its place in a pack."""
        return self.residence_at(self.level)

    def residence_at(self, level: int) -> Residence:
        """Its place in a pack that shows it at another level."""
        form = self.forms[level]
        assert form is not None, "what is shown has a form"
        return self.page, form.position, level, self.rank
