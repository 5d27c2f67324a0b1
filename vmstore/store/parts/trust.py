"""Trust in a store's contents: erasure, retention, retraction, seals, proofs, approvals."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vmstore.core.aliases import old_keywords_of_methods
from vmstore.core.clock import Clock
from vmstore.namespace.reports import ErasedAgain, ErasurePlan, ErasureReport, SealInfo
from vmstore.store.host import StoreHost
from vmstore.views.projection import Progress

if TYPE_CHECKING:
    from vmstore.namespace.effects import Agree
    from vmstore.namespace.signing_keys import SigningKey
    from vmstore.retention.apply import RetentionReport
    from vmstore.retention.rules import RetentionRule
    from vmstore.retraction.results import Retraction
    from vmstore.seals.seal import Seal
    from vmstore.store.approvals import ApprovalInfo
    from vmstore.store.reads.proofs import Proof
    from vmstore.store.session import Session


@old_keywords_of_methods(until="until_us")
class Trust:
    """Erasure, retention, seals and proofs: `store.trust`."""

    def __init__(self, store: StoreHost) -> None:
        self._store = store

    # ---- erasure

    def erase(
        self,
        *,
        page: str | None = None,
        session: str | None = None,
        user: str | None = None,
        where: str | None = None,
        in_session: str | None = None,
        derived: bool = False,
        copies: bool = False,
        reason: str = "asked",
        key: SigningKey | None = None,
    ) -> ErasureReport:
        """Destroys contents for good; every hash still holds, and a certificate, signed with `key`, says what went.

        The subject is one of `page` (a name, in `in_session` or an address of its own), `session`, `user` or
        `where` (a condition on PAGES). `derived` takes what was made from it too, `copies` what says or quotes the
        same. `reason` is one of asked, retention, mistake, secret, law. Raises UnknownError where there is no such
        thing, before anything is written.
        """
        from vmstore.erasure.erase import erase

        subject = {"page": page, "session": session, "user": user, "where": where, "in_session": in_session}
        return erase(self._store, derived=derived, copies=copies, reason=reason, key=key, **subject)

    def plan_erasure(
        self,
        *,
        page: str | None = None,
        session: str | None = None,
        user: str | None = None,
        where: str | None = None,
        in_session: str | None = None,
        derived: bool = False,
        copies: bool = False,
        listing: bool = True,
    ) -> ErasurePlan:
        """The plan of `erase` for the same subject: what would go and what would stay; nothing is written.

        Without `listing` the pages are counted and not named.
        """
        from vmstore.erasure.erase import plan_erasure

        subject = {"page": page, "session": session, "user": user, "where": where, "in_session": in_session}
        return plan_erasure(self._store, derived=derived, copies=copies, listing=listing, **subject)

    def erase_again(
        self,
        certificates: str | os.PathLike[str],
        *,
        public_key: str | os.PathLike[str] | None = None,
        agreed: Agree = False,
        dry_run: bool = False,
    ) -> ErasedAgain:
        """Erases what the certificates of a folder name and what is here all the same: another tool put it back.

        Those that the key of `public_key` signed are obeyed. What others would destroy has to be `agreed` to, else
        RefusedError is raised and nothing is erased; with `dry_run` nothing is either.
        """
        from vmstore.erasure.reapply import erase_again
        from vmstore.namespace.signing_keys import public_key as read_public_key

        trusted = None if public_key is None else read_public_key(public_key)
        return erase_again(self._store._ns, Path(certificates), trusted, agreed, dry_run=dry_run)

    # ---- retention

    def retain(
        self, time: str, *, where: str | None = None, user: str | None = None, name: str = "default"
    ) -> RetentionRule:
        """States how long contents are kept, like `90d`; a rule of the same name is replaced. Nothing is erased yet.

        Without `where`, a condition on PAGES, it is about whole sessions. Raises QueryError where that is none.
        """
        from vmstore.retention.apply import keep

        return keep(self._store, time, where=where, user=user, name=name)

    def retention_rules(self) -> list[RetentionRule]:
        """The rules that hold, by name."""
        from vmstore.retention.apply import rules

        return rules(self._store)

    def drop_rule(self, name: str) -> None:
        """Takes a rule of retention away; UnknownError names those there are."""
        from vmstore.retention.apply import drop

        drop(self._store, name)

    def apply_retention(self, *, dry_run: bool = False, key: SigningKey | None = None) -> RetentionReport:
        """Erases what is due by the rules, with a certificate; with `dry_run` only says what that is.

        Raises InputError where there is no rule.
        """
        from vmstore.retention.apply import apply

        return apply(self._store, dry_run=dry_run, key=key)

    # ---- retraction

    def retract(
        self,
        *,
        page: str | None = None,
        session: str | None = None,
        actor: str | None = None,
        tool: str | None = None,
        in_session: str | None = None,
        reason: str | None = None,
        rebuild: bool = False,
        dry_run: bool = False,
    ) -> Retraction:
        """Marks everything that was made from a page, a session, an actor or a tool superseded, in every session.

        An actor is a role, or the user or the agent of a session; a tool stands for its results; `in_session` looks
        for those in one session alone. With `rebuild`, claims and summaries of live sessions that can be made from
        what is left are made again. A `dry_run` says what would be done, and writes nothing. Raises UnknownError
        where the cause made nothing.
        """
        from vmstore.retraction.retract import retract

        return retract(
            self._store, page=page, session=session, actor=actor, tool=tool, in_session=in_session, reason=reason,
            rebuild=rebuild, dry_run=dry_run,
        )  # fmt: skip

    # ---- seals and proofs

    def seal(
        self,
        key: SigningKey | str | os.PathLike[str],
        out: str | os.PathLike[str] | None = None,
        *,
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> SealInfo:
        """Signs where every session stands, while others may write, and writes that to a file.

        `out` is by default a new file in the folder of seals beside the store. Every hash of the log is checked
        first: raises CorruptError where the chain is broken, RefusedError where the log no longer holds what was
        sealed, or nothing yet.
        """
        from vmstore.seals.seals import seal

        return seal(self._store, key, out, clock=clock, progress=progress)

    def prove(
        self, session: str | Session, page: str | int | None = None, *, call: int, seal: Seal | None = None
    ) -> Proof:
        """The proof that a page was in the context of a call, as a seal covers it, or the oldest one kept that does.

        Without a page it is of what a live session's call was sent.
        """
        chosen = self._store.session(session) if isinstance(session, str) else session
        return chosen._prove(page, call=call, seal=seal)

    # ---- approvals

    def approve(
        self,
        artifacts: str | Iterable[str],
        sessions: str | Iterable[str] | None = None,
        *,
        who: str,
        until_us: int | None = None,
        granted: bool = True,
    ) -> list[ApprovalInfo]:
        """Lifts redaction for kinds of export (jsonl, html, all and the others) of sessions, all by default.

        `who` says so, and it ends at `until_us`, in microseconds since 1970; not `granted` puts redaction back.
        What forks off later, and what comes to be, needs a word of its own. What is in force then.
        """
        from vmstore.store.approvals import approve

        return approve(self._store, artifacts, sessions, who=who, until_us=until_us, granted=granted)

    def approvals(self) -> list[ApprovalInfo]:
        """Everything that was lifted and put back, session after session."""
        from vmstore.store.approvals import approvals

        return approvals(self._store)
