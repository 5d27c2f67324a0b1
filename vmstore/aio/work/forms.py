"""The async twin of the shorter forms of a session's observations."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from vmstore.aio.docs import described_by
from vmstore.aio.worker import Worker
from vmstore.core.asof import Moment, When
from vmstore.store.work import forms
from vmstore.store.work.forms import AggregateInfo
from vmstore.store.work.model_forms import FormModel, ModelForms
from vmstore.vm.compressors.callback import TIMEOUT_S
from vmstore.work.aggregate import RATIO


@described_by(forms.Forms)
class Forms:
    """See `vmstore.Forms`."""

    def __init__(self, sync: forms.Forms, worker: Worker) -> None:
        self._sync = sync
        self._worker = worker

    async def together(
        self, at: When | None = None, *, target_ratio: float = RATIO, **moment: Unpack[Moment]
    ) -> list[AggregateInfo]:
        """See `vmstore.Forms.together`."""
        return await self._worker.do(partial(self._sync.together, at, target_ratio=target_ratio, **moment))

    async def write(self, model: FormModel, *, timeout_s: float = TIMEOUT_S) -> ModelForms:
        """See `vmstore.Forms.write`."""
        return await self._worker.do(partial(self._sync.write, model, timeout_s=timeout_s))
