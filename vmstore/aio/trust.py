"""The async twin of what makes contents trusted."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.aliases import old_keywords_of_methods
from vmstore.core.clock import Clock
from vmstore.namespace.reports import ErasedAgain, ErasurePlan, ErasureReport, SealInfo
from vmstore.store.parts import trust as sync_trust
from vmstore.views.projection import Progress

if TYPE_CHECKING:
    from vmstore.aio.session import Session
    from vmstore.namespace.effects import Agree
    from vmstore.namespace.signing_keys import SigningKey
    from vmstore.retention.apply import RetentionReport
    from vmstore.retention.rules import RetentionRule
    from vmstore.retraction.results import Retraction
    from vmstore.seals.seal import Seal
    from vmstore.store.approvals import ApprovalInfo
    from vmstore.store.reads.proofs import Proof


@described_by(sync_trust.Trust)
@old_keywords_of_methods(until="until_us")
class Trust:
    """See `vmstore.Trust`."""

    def __init__(self, sync: sync_trust.Trust, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def erase(
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
        """See `vmstore.Trust.erase`."""
        return await self._worker.do(
            partial(
                self._sync.erase,
                page=page,
                session=session,
                user=user,
                where=where,
                in_session=in_session,
                derived=derived,
                copies=copies,
                reason=reason,
                key=key,
            )
        )

    async def plan_erasure(
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
        """See `vmstore.Trust.plan_erasure`."""
        return await self._worker.do(
            partial(
                self._sync.plan_erasure,
                page=page,
                session=session,
                user=user,
                where=where,
                in_session=in_session,
                derived=derived,
                copies=copies,
                listing=listing,
            )
        )

    async def erase_again(
        self,
        certificates: str | os.PathLike[str],
        *,
        public_key: str | os.PathLike[str] | None = None,
        agreed: Agree = False,
        dry_run: bool = False,
    ) -> ErasedAgain:
        """See `vmstore.Trust.erase_again`."""
        call = partial(self._sync.erase_again, certificates, public_key=public_key, agreed=agreed, dry_run=dry_run)
        return await self._worker.do(call)

    async def retain(
        self, time: str, *, where: str | None = None, user: str | None = None, name: str = "default"
    ) -> RetentionRule:
        """See `vmstore.Trust.retain`."""
        return await self._worker.do(partial(self._sync.retain, time, where=where, user=user, name=name))

    async def retention_rules(self) -> list[RetentionRule]:
        """See `vmstore.Trust.retention_rules`."""
        return await self._worker.do(partial(self._sync.retention_rules))

    async def drop_rule(self, name: str) -> None:
        """See `vmstore.Trust.drop_rule`."""
        await self._worker.do(partial(self._sync.drop_rule, name))

    async def apply_retention(self, *, dry_run: bool = False, key: SigningKey | None = None) -> RetentionReport:
        """See `vmstore.Trust.apply_retention`."""
        return await self._worker.do(partial(self._sync.apply_retention, dry_run=dry_run, key=key))

    async def retract(
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
        """See `vmstore.Trust.retract`."""
        return await self._worker.do(
            partial(
                self._sync.retract,
                page=page,
                session=session,
                actor=actor,
                tool=tool,
                in_session=in_session,
                reason=reason,
                rebuild=rebuild,
                dry_run=dry_run,
            )
        )

    async def seal(
        self,
        key: SigningKey | str | os.PathLike[str],
        out: str | os.PathLike[str] | None = None,
        *,
        clock: Clock | None = None,
        progress: Progress | None = None,
    ) -> SealInfo:
        """See `vmstore.Trust.seal`."""
        return await self._worker.do(partial(self._sync.seal, key, out, clock=clock, progress=progress))

    async def prove(
        self, session: str | Session, page: str | int | None = None, *, call: int, seal: Seal | None = None
    ) -> Proof:
        """See `vmstore.Trust.prove`."""
        chosen = session if isinstance(session, str) else session._session
        return await self._worker.do(partial(self._sync.prove, chosen, page, call=call, seal=seal))

    async def approve(
        self,
        artifacts: str | Iterable[str],
        sessions: str | Iterable[str] | None = None,
        *,
        who: str,
        until_us: int | None = None,
        granted: bool = True,
    ) -> list[ApprovalInfo]:
        """See `vmstore.Trust.approve`."""
        return await self._worker.do(
            partial(self._sync.approve, artifacts, sessions, who=who, until_us=until_us, granted=granted)
        )

    async def approvals(self) -> list[ApprovalInfo]:
        """See `vmstore.Trust.approvals`."""
        return await self._worker.do(partial(self._sync.approvals))
