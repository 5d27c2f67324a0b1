"""The request of a live session's call, given back: the log is folded to its pack and written again.

It is checked against the digest in the pack, so what is answered is what was sent or an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from vmstore.core.address import page_name
from vmstore.core.erasure import ErasedContent
from vmstore.errors import CorruptError, ErasedError, InputError
from vmstore.live.prompt_pages import PromptPages
from vmstore.live.request import digest, request_of, written
from vmstore.live.runtime import Runtime
from vmstore.namespace.namespace import Namespace
from vmstore.views.branch import Branch
from vmstore.views.projectors.calls import CallRow
from vmstore.vm.kernel.window import chosen

CONVERSATIONS = "messages", "contents", "input"  # by shape
KEPT_MAX = 4  # sessions at hand as they stood, those asked last


def sent(namespace: Namespace, lane: Branch, call: CallRow, *, marked: bool = False) -> dict[str, Any]:
    """The request of a call; with `marked`, what was erased says so in its place.

    Raises ErasedError where anything of it was erased, CorruptError where it is not what the pack says.
    """
    with stood(namespace, lane, call.position) as runtime:
        return _written(namespace, runtime, call, marked)


def _written(namespace: Namespace, runtime: Runtime, call: CallRow, marked: bool) -> dict[str, Any]:
    state = runtime.state
    runtime.forms.forget()  # what is read now is there now
    assert state.settings is not None, "a session with a budget packed it"
    leaves = PromptPages(state, runtime.spoken, runtime.forms, chosen(state)).here()
    erased = [leaf for leaf in leaves if isinstance(leaf.content, ErasedContent)]
    if erased and not marked:
        raise ErasedError(
            f"{erased[0].name} of call {call.call} was {bytes(erased[0].content or b'').decode()[1:-1]}, so its "
            "request cannot be had whole; ask for its messages"
        )
    body = request_of(state.settings, leaves)
    if erased or state.sent is None or state.sent == digest(written(body)):
        return body
    if not namespace.projection.last_erasure:
        raise CorruptError(
            f"the request of call {call.call} ({page_name(call.position)}) is not the one its pack states; run "
            "`vmstore verify`, and read it with the version of vmstore that wrote it",
            code="request-differs",
        )
    if not marked:
        raise ErasedError(f"a name in call {call.call} was erased, so its request cannot be had whole")
    return body


def conversation_of(body: dict[str, Any]) -> list[Any]:
    """The messages of a request, in any shape."""
    found = next((body[name] for name in CONVERSATIONS if name in body), None)
    assert isinstance(found, list), "a request has messages"
    return found


@contextmanager
def stood(namespace: Namespace, lane: Branch, position: int) -> Iterator[Runtime]:
    """The session as it stood at a position, to look at."""
    with namespace.views_lock:
        namespace.check()
        runtime = _stood(namespace, lane)
        try:
            if runtime.stand(position).position != position:
                raise InputError(f"{page_name(position)} is not in the log yet; ask when its turn has ended")
            yield runtime
        finally:
            _keep(namespace, lane, runtime)


def _stood(namespace: Namespace, lane: Branch) -> Runtime:
    """The session as it stood where it was asked last, to go on from there; nobody else has it meanwhile."""
    erasure, runtime = namespace.past.pop(lane.session, (0, None))
    if runtime is None or erasure != namespace.projection.last_erasure:  # names that were erased may be in it
        return Runtime(namespace.reader, lane, past=True)
    return runtime


def _keep(namespace: Namespace, lane: Branch, runtime: Runtime) -> None:
    """Keeps the session as it stands; of many those asked last."""
    past = namespace.past
    past[lane.session] = namespace.projection.last_erasure, runtime
    if len(past) > KEPT_MAX:
        del past[next(iter(past))]
