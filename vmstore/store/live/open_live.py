"""Begins live sessions: opened with their settings and what stands before all, or gone on with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from vmstore.core.page import Standing
from vmstore.engine.head import NewSession
from vmstore.errors import InputError, RefusedError
from vmstore.live import messages
from vmstore.live.compression import FormMaker
from vmstore.live.pack import reserve_front
from vmstore.live.recall.claim_finder import Callback as Finding
from vmstore.live.recall.claim_finder import ClaimFinder
from vmstore.live.runtime import Act, Runtime
from vmstore.live.settings import configure
from vmstore.namespace.namespace import Namespace
from vmstore.store.close import idle_reason, is_idle
from vmstore.store.live.acts import PageActions
from vmstore.store.recall.fact_model import FactExtractor, FactModel
from vmstore.store.recall.tag_model import TagModel, TurnTagger
from vmstore.views.branch import Branch
from vmstore.vm.compressors.callback import TIMEOUT_S
from vmstore.vm.compressors.callback import Callback as Compressor
from vmstore.vm.kernel.settings import known_settings

if TYPE_CHECKING:
    from vmstore.store.recorder import CallRecorder


def begun(
    namespace: Namespace,
    recording: Callable[[], CallRecorder],
    opening: NewSession,
    *,
    system: str | None = None,
    tools: list[Any] | None = None,
    compressor: Compressor | None = None,
    finder: Finding | None = None,
    fact_model: FactModel | None = None,
    tagger: TagModel | None = None,
    callback_timeout_s: float = TIMEOUT_S,
    bring: Callable[[Act], None] | None = None,
    **owner: Any,
) -> int:
    """The key of a session that manages its memory, opened where there is none: whole, or nothing is written.

    A new one begins with what `bring` writes. Of one that is live already what differs is logged: settings, the
    instructions, the tools. What was recorded is refused.
    """
    _check_callbacks(compressor, finder, fact_model, tagger)
    _check_user(namespace, opening, owner)
    shorter, finding = FormMaker(compressor, callback_timeout_s), ClaimFinder(finder, callback_timeout_s)

    def begin(act: Act) -> None:
        before = act.state.settings
        configure(act, owner)
        if messages.instruct(act, system, tools) or before is None:
            reserve_front(act)
        if bring is not None and before is None:
            bring(act)

    def opened() -> int:
        key = namespace.key(opening.name)
        if key is None:
            known_settings(owner)
            _check_budget(opening, owner)
            now = namespace.clock.now()
            batch = namespace.begin(opening, now)
            runtime = Runtime(namespace.engine, Branch(namespace.views, 0), shorter, finding)
            key = batch.commit(runtime.play(batch, [(now, begin)]))[-1].session
            namespace.follow()
        return key

    live = PageActions(namespace, recording, key := namespace.retried(opened), opening.name)
    runtime = live.runtime()
    if compressor is not None or finder is not None:
        runtime.shorter, runtime.finder = namespace.callbacks[key] = shorter, finding
    if fact_model is not None:
        namespace.fact_models[key] = fact_model, callback_timeout_s
    if tagger is not None:
        namespace.taggers[key] = TurnTagger(tagger, callback_timeout_s)
    if runtime.current().settings is None:
        unbegun(runtime, opening.name, owner)
        namespace.retried(lambda: runtime.act(begin, namespace.clock.now()))
    else:
        _end_idle(live)
        live._act(begin)
    return key


def _check_budget(opening: NewSession, owner: dict[str, Any]) -> None:
    """Refuses to begin without a budget."""
    if "l0_tokens_max" not in owner:
        raise InputError(
            f"session {opening.name!r} is to manage its memory; give it a budget: l0_tokens_max", code="no-budget"
        )


def _end_idle(live: PageActions) -> None:
    """Ends a session that is opened again so long after what was written last that its setting says it ended then."""
    settings = live.runtime().current().settings
    hours = 0 if settings is None else settings.idle_hours
    if hours and live.info().status == Standing.ACTIVE.word and is_idle(live, hours):
        live.close(reason=idle_reason(hours))


def _check_callbacks(
    compressor: Compressor | None, finder: Finding | None, fact_model: FactModel | None, tagger: TagModel | None
) -> None:
    """Refuses callbacks that cannot be called, before anything is written."""
    for callback in (compressor, finder):
        if callback is not None and not callable(callback):
            raise InputError(
                f"{callback!r:.60} cannot be called; a compressor and a finder are functions", code="not-a-function"
            )
    if fact_model is not None:
        FactExtractor(fact_model)  # raises where the model cannot be asked
    if tagger is not None:
        TurnTagger(tagger, TIMEOUT_S)  # this too


def _check_user(namespace: Namespace, opening: NewSession, owner: dict[str, Any]) -> None:
    """Refuses to remember the sessions of a user where the session has none."""
    if owner.get("remembers") == "user" and not _user(namespace, opening):
        raise InputError(
            f"session {opening.name!r} has no user whose sessions it could remember; give it one: user=…",
            code="no-user",
        )


def _user(namespace: Namespace, opening: NewSession) -> str | None:
    """The user of a session, existing or about to be opened."""
    key = namespace.key(opening.name)
    return opening.meta.get("user") if key is None else namespace.session_info(key).user


def unbegun(runtime: Runtime, name: str, owner: dict[str, Any]) -> None:
    """Refuses to manage the memory of a session in which something was recorded."""
    if runtime.state.pages or runtime.state.call or "l0_tokens_max" not in owner:
        raise RefusedError(
            f"session {name!r} was recorded, so others made its prompts; to say it again to a memory "
            f"that manages itself: store.admin.redrive({name!r}, 'another name', l0_tokens_max=…)",
            code="recorded-session",
        )
