"""Shorter forms of a session's observations: of several together, and as a model writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import msgspec

from vmstore.core.asof import Moment, When, one_moment
from vmstore.store.host import SessionHost
from vmstore.store.work.model_forms import FormModel, ModelForms, write_forms
from vmstore.store.work.observations import check_share, observations
from vmstore.vm.compressors.callback import TIMEOUT_S
from vmstore.work.aggregate import RATIO, aggregated, runs_of
from vmstore.work.observation import Observation


class AggregateInfo(msgspec.Struct, frozen=True):
    """One form of the observations that did the same kind of thing in a row; `pages` call the tools.

    The whole of each is the content of its page and its result.
    """

    session: str
    pages: list[str]
    turn: int
    summary: str
    key_facts: list[str]
    original_tokens: int
    compressed_tokens: int
    ratio: float
    method: str
    lossy: bool
    reconstructible: bool


class Forms:
    """Shorter forms of a session's observations: `session.work.forms`."""

    def __init__(self, session: SessionHost) -> None:
        self._session = session

    def together(
        self, at: When | None = None, *, target_ratio: float = RATIO, **moment: Unpack[Moment]
    ) -> list[AggregateInfo]:
        """One form of the observations that did the same kind of thing in a row of one turn: edits, looks, commands.

        A form takes `target_ratio` of their tokens, and 400 at most.
        """
        check_share(target_ratio)
        return [_aggregate(run, target_ratio) for run in runs_of(observations(self._session, one_moment(at, moment)))]

    def write(self, model: FormModel, *, timeout_s: float = TIMEOUT_S) -> ModelForms:
        """Has a model write a form of each observation of more than 64 tokens that has none; it is told from then on.

        `model` is a function from a prompt to a text, or a text model; what it answers is logged. Where it fails, or
        says nothing that can be used, the form by rules stands. Key facts that it made up are left out.
        """
        return write_forms(self._session, model, timeout_s)


def _aggregate(run: Sequence[Observation], target_ratio: float) -> AggregateInfo:
    form = aggregated(run, target_ratio=target_ratio)
    return AggregateInfo(
        run[0].session,
        [of.page for of in run],
        run[0].turn,
        form.summary,
        list(form.key_facts),
        form.original_tokens,
        form.compressed_tokens,
        form.ratio,
        form.method,
        form.lossy,
        form.reconstructible,
    )
