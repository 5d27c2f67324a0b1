"""Packs: what the model is sent at its next call, within the budget, logged as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from vmstore.capture.shapes import Shape
from vmstore.capture.skeleton import dumps
from vmstore.core.mutation import LIVE, PARTIAL, Configure, Pack
from vmstore.core.page import Fidelity, Modality
from vmstore.core.tokens import ESTIMATOR
from vmstore.errors import RefusedError
from vmstore.live.configuring import configure
from vmstore.live.request import digest, request_of, tokens_of, written
from vmstore.live.runtime import Act
from vmstore.vm.protocol.leaf import Leaf
from vmstore.vm.protocol.select import Selection
from vmstore.vm.window import Membership, membership

SHAPES = {"chat": Shape.CHAT, "chat-system": Shape.CHAT, "anthropic": Shape.ANTHROPIC, "gemini": Shape.GEMINI}
TRIES_MAX = 16  # each takes pages out, until what stands beside them fits too
SLACK = 50  # a fiftieth more than what stands beside the pages is reserved for it, so that it is logged seldom
LOOSE = 2  # what is reserved for it is given back where only half of it is needed


class Sent(NamedTuple):
    """A request as it is sent: its JSON value and text, its tokens, the pages of it and how they were chosen."""

    body: dict[str, Any]
    text: str
    tokens: int
    leaves: list[Leaf]
    now: Membership


def pack(act: Act, told: dict[str, Any]) -> Sent | Selection | None:
    """Changes settings as told, lets the kernel decide a last time, then logs what the call is sent.

    Where the session has no shape, how the pages were chosen, None where it is all of L0. Raises RefusedError
    where what cannot leave takes more than the budget.
    """
    if told:
        configure(act, told)
    act.react()
    state = act.state
    assert state.settings is not None, "a live session has settings"
    model = state.settings.model
    rest = None if model == act.spoken.model else act.cell(dumps({"model": model}))
    if state.settings.shape is None:
        now = membership(state)
        totals = act.batch.head.foresee(now.entered, now.left)
        entered, left = tuple(now.entered), tuple(now.left)
        act.end(Pack(state.call + 1, Fidelity.DERIVED, *totals, entered, left, rest, renderer=PARTIAL))
        return now.choice
    sent = _fitted(act)
    now = sent.now
    totals = act.batch.head.foresee(now.entered, now.left)
    act.end(
        Pack(
            state.call + 1,
            Fidelity.RECORDED,
            *totals,
            tuple(now.entered),
            tuple(now.left),
            rest,
            shape=SHAPES[state.settings.shape],
            renderer=LIVE,
            sent=digest(sent.text),
            sent_tokens=sent.tokens,
        )
    )
    return sent


def reserve_front(act: Act) -> None:
    """Takes what stands before every conversation off the budget; RefusedError where that leaves no room for one."""
    settings = act.state.settings
    if settings is None or settings.shape is None:
        return
    sent = _written(act)
    beside = _with_slack(sent.tokens - sent.now.tokens)
    if beside + act.state.pinned >= act.state.whole:
        raise RefusedError(
            f"rules, instructions and tools take {sent.tokens:,} tokens and l0_tokens_max is {act.state.whole:,}, so "
            "no conversation fits: give more, fewer tools, or shorter rules (rules='short', or 'passive' for none)"
        )
    act.tell(Configure(ESTIMATOR, act.state.factor_ppm, beside))


def _fitted(act: Act) -> Sent:
    """The request, once it is within the budget: what stands beside its pages is logged, and pages leave for it."""
    state, tight = act.state, False
    for nth in range(1, TRIES_MAX + 1):
        sent = _written(act)
        limit = state.tokens(_limit(act))
        beside = sent.tokens - sent.now.tokens
        if sent.tokens <= limit and (tight or beside * LOOSE >= state.beside):
            return sent
        tight = sent.tokens <= limit
        needed = _with_slack(beside) if tight else max(_with_slack(beside), state.beside + sent.tokens - limit)
        # What stands beside a thousand small pages goes with them, so room is taken from them step by step.
        needed = min(needed, max(state.beside, state.whole - (state.whole >> nth)))
        act.tell(Configure(ESTIMATOR, state.factor_ppm, needed))
        act.react()
    raise RefusedError(
        f"the request takes {sent.tokens:,} tokens and {limit:,} is the budget, and nothing more can leave: unpin "
        "something, use shorter rules, offer fewer tools, or give a larger l0_tokens_max (law request_fits)"
    )


def _limit(act: Act) -> int:
    """The provider's tokens that a call may be sent."""
    settings = act.state.settings
    assert settings is not None
    return min(settings.l0_tokens_max, settings.window_tokens_max or settings.l0_tokens_max)


def _with_slack(tokens: int) -> int:
    return tokens + tokens // SLACK


def _written(act: Act) -> Sent:
    now = membership(act.state)
    leaves = act.leaves(now.choice)
    assert act.state.settings is not None
    body = request_of(act.state.settings, leaves)
    text = written(body)
    pictured = any(leaf.modality is Modality.IMAGE for leaf in leaves)
    return Sent(body, text, tokens_of(body, text, pictured=pictured), leaves, now)
