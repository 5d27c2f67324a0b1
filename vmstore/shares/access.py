"""Access of a handle to a region, checked again at each act.

The grants are those of the region's log as it ends: what is granted or taken back by whichever
process counts from the next act of an open handle on. A write is looked at once more at the gate,
while no other writer can be first.
"""

from __future__ import annotations

from collections.abc import Sequence

from vmstore.core.grants import Principal, Verb, words_of
from vmstore.core.mutation import AnyMutation, Revoke, Share
from vmstore.engine.grants import ActiveGrants
from vmstore.errors import RefusedError, UnknownError
from vmstore.namespace import system_session
from vmstore.namespace.namespace import Namespace


class Access:
    """The principals who hold a handle on a region, and what they may do."""

    def __init__(self, namespace: Namespace, who: Sequence[Principal]) -> None:
        self.who = tuple(who)
        self._ns = namespace
        self._granted = ActiveGrants()
        self._seen = self._last = -1  # the log's end that was looked at, the last commit that was folded
        self._erased = 0  # the last erasure that is taken into account: it may have been of a grant
        self._looking = False

    def granted(self) -> ActiveGrants:
        """The grants as the log ends; within a moment that is held, as they were when it began."""
        ns = self._ns
        with ns.views_lock:
            end = ns.log.ordinal
            if end != self._seen and not self._looking and not ns.views.in_transaction:
                self._looking = True
                try:
                    ns.reader.follow()
                    if ns.projection.last_erasure != self._erased:
                        self._granted, self._last, self._erased = ActiveGrants(), -1, ns.projection.last_erasure
                    for entry in system_session.entries(ns, self._last):
                        self._granted.apply(entry.position, entry.at, entry.mutation, entry.text)
                        self._last = entry.ordinal
                    self._seen = end
                finally:
                    self._looking = False
            return self._granted

    def verbs(self) -> Verb:
        """The verbs that these principals have now."""
        return self.granted().verbs(self.who)

    def read(self) -> None:
        """Raises UnknownError where they may not read: to them there is no such region."""
        with self._ns.views_lock:
            if not self._looking and not self.verbs():
                raise absent(self._ns.name, self.who)

    def may_write(self) -> bool:
        """Whether they may write."""
        return Verb.WRITE in self.verbs()

    def change(self) -> None:
        """Raises RefusedError where they may read alone."""
        if not self.verbs() & (Verb.WRITE | Verb.GRANT):
            raise self._refused("write_is_granted", Verb.WRITE, "nothing can be changed")

    def let(self, mutations: Sequence[AnyMutation], *, charter: bool) -> None:
        """Refuses what they may not write: nothing without `write`, no grants without `grant`."""
        verbs = self.verbs()
        if not verbs:
            raise absent(self._ns.name, self.who)
        needed = Verb.GRANT if charter else Verb.WRITE
        if needed not in verbs:
            what = "nothing can be granted or taken back" if charter else "nothing can be written"
            raise self._refused(f"{words_of(needed)[0]}_is_granted", needed, what)
        for m in mutations if charter else ():
            if isinstance(m, Share) and Verb(m.verbs) & ~verbs:
                lacking = ", ".join(words_of(Verb(m.verbs) & ~verbs))
                raise RefusedError(
                    f"who may not {lacking} cannot grant it (rule grants_what_is_held); grant less",
                    code="grants_what_is_held",
                )
            grant = self.granted().at(m.share) if isinstance(m, Revoke) else None
            if grant is not None and grant.by not in self.who:
                giver = grant.by or "who keeps the region"
                raise RefusedError(
                    f"{giver} granted that, and alone takes it back (rule revokes_its_own); ask there",
                    code="revokes_its_own",
                )

    def _refused(self, rule: str, verb: Verb, what: str) -> RefusedError:
        who, word = ", ".join(map(str, self.who)), words_of(verb)[0]
        return RefusedError(
            f"{what} in region {self._ns.name!r} by {who} (rule {rule}); who keeps it grants that: "
            f"vmstore share STORE {self._ns.name} --to {self.who[0]} --may {word}",
            code=rule,
        )


def absent(region: str, who: Sequence[Principal]) -> UnknownError:
    """The one answer of a region that is not there, or not for these."""
    return UnknownError(
        f"there is no region {region!r} for {', '.join(map(str, who))} (rule region_is_shared); who keeps one shares "
        f"it: vmstore share STORE {region} --to {who[0]} --may read",
        code="region_is_shared",
    )
