"""Packs: what the model is sent at its next call, within the budget, logged as it is."""

from __future__ import annotations

from typing import Any, NamedTuple

from vmstore.core.address import page_name
from vmstore.core.mutation import LIVE, PARTIAL, Configure, Pack
from vmstore.core.page import Fidelity, Modality
from vmstore.core.text.skeleton import dumps
from vmstore.core.text.token_estimate import ESTIMATOR
from vmstore.errors import RefusedError
from vmstore.live.request import Rendered, body_of, digest, made_of, rendered, request_of, tokens_of, written
from vmstore.live.runtime import Act
from vmstore.live.settings import configure
from vmstore.providers import Shape
from vmstore.vm.kernel.window import BEFORE_ALL, Membership, membership
from vmstore.vm.protocol.messages import Messages
from vmstore.vm.protocol.prompt_page import PromptPage
from vmstore.vm.protocol.select import Selection

SHAPES = {
    "chat": Shape.CHAT,
    "chat-system": Shape.CHAT,
    "responses": Shape.RESPONSES,
    "anthropic": Shape.ANTHROPIC,
    "gemini": Shape.GEMINI,
}
TRIES_MAX = 16  # each takes pages out, until what stands beside them fits too
SLACK = 50  # a fiftieth more than what stands beside the pages is reserved for it, so that it is logged seldom
LOOSE = 2  # what is reserved for it is given back where only half of it is needed


class PackedRequest(NamedTuple):
    """A request as it is sent: its JSON value and text, its tokens, the pages of it and how they were chosen.

    `made` and `body` hold values that the next request may hold too, so they stay as they are.
    """

    made: Messages
    body: dict[str, Any]
    text: str
    tokens: int
    leaves: list[PromptPage]
    now: Membership
    rendered: Rendered


def pack(act: Act, options: dict[str, Any]) -> PackedRequest | Selection | None:
    """Applies the settings that are passed, lets the kernel decide a last time, then logs what the call is sent.

    Where the session has no shape, how the pages were chosen, None where it is all of L0. Raises RefusedError
    where what cannot leave takes more than the budget.
    """
    if options:
        configure(act, options)
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
    call, before = act.memo.last.get("sent", (0, None))  # of a call that another process made nothing is known
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
            voided=_voided(act, call, before, sent),
        )
    )
    act.memo.last["sent"] = state.call, sent.rendered
    return sent


def _voided(act: Act, call: int, before: Rendered | None, sent: PackedRequest) -> int | None:
    """Tokens of the request before that this one invalidates; None where that is not in memory."""
    if not act.state.call:
        return 0
    return before.voided(sent.rendered) if before is not None and call == act.state.call else None


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


def _fitted(act: Act) -> PackedRequest:
    """The request, once it is within the budget: what stands beside its pages is logged, and pages leave for it."""
    state, tight = act.state, False
    if state.window <= 0:  # less than what stands beside all of L0: of a smaller prompt less stands beside
        act.tell(Configure(ESTIMATOR, state.factor_ppm, _with_slack(_front(act))))
        act.react()
    for _ in range(TRIES_MAX):
        sent = _written(act)
        limit = state.tokens(_limit(act))
        beside = sent.tokens - sent.now.tokens
        if sent.tokens <= limit and (tight or beside * LOOSE >= state.beside):
            return sent
        tight = sent.tokens <= limit
        needed = _with_slack(beside) if tight else max(_with_slack(beside), state.beside + sent.tokens - limit)
        if needed >= limit > state.beside:  # pages that leave take their labels with them: less may do
            needed = (state.beside + limit + 1) // 2
        act.tell(Configure(ESTIMATOR, state.factor_ppm, needed))
        act.react()
    raise RefusedError(
        f"the request takes {sent.tokens:,} tokens and {limit:,} is the budget, and nothing more can leave: unpin "
        "something, use shorter rules, offer fewer tools, or give a larger l0_tokens_max (law request_fits)"
    )


def _front(act: Act) -> int:
    """The tokens of rules, tools and labels around what stands before every conversation."""
    state = act.state
    assert state.settings is not None
    front = [managed for managed in state.here.values() if managed.holders & BEFORE_ALL]
    leaves = [leaf for leaf in act.leaves(None) if leaf.name in {page_name(managed.page) for managed in front}]
    body = request_of(state.settings, leaves)
    return tokens_of(body, written(body), pictured=False) - sum(managed.tokens for managed in front)


def _limit(act: Act) -> int:
    """The provider's tokens that a call may be sent."""
    settings = act.state.settings
    assert settings is not None
    return min(settings.l0_tokens_max, settings.window_tokens_max or settings.l0_tokens_max)


def _with_slack(tokens: int) -> int:
    return tokens + tokens // SLACK


def _written(act: Act) -> PackedRequest:
    now, settings = membership(act.state), act.state.settings
    leaves = act.leaves(now.choice)
    assert settings is not None
    made = made_of(settings, leaves, act.shape, act.memo)
    body = body_of(settings, leaves, made, act.shape)
    text = written(body, act.memo)
    pictured = any(leaf.modality is Modality.IMAGE for leaf in leaves)
    return PackedRequest(
        made, body, text, tokens_of(body, text, pictured=pictured), leaves, now, rendered(body, act.memo)
    )
