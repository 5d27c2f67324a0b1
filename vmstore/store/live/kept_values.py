"""Values that a program keeps in its session: no messages, never in a prompt, each change a version in the log."""

from __future__ import annotations

import json
from typing import Any

from vmstore.core.draft import Draft, Part
from vmstore.core.erasure import ErasedContent
from vmstore.core.mutation import Update
from vmstore.core.page import Mime, Modality, PageType, Role, Standing
from vmstore.core.text.token_estimate import estimate
from vmstore.errors import ErasedError, UnknownError
from vmstore.live import messages
from vmstore.live.runtime import Act, Runtime
from vmstore.live.transcript import KEPT
from vmstore.namespace.namespace import Namespace
from vmstore.providers import plain
from vmstore.store.live.page_names import titled
from vmstore.views.branch import Branch
from vmstore.views.reads.annotations import notes_of

ACTOR = "program"


def keep(act: Act, name: str, value: Any) -> int:
    """Keeps a value under a name, as another version where it has one that differs; its page."""
    titled(name, needed=True)
    content = json.dumps(plain(value, name), ensure_ascii=False, allow_nan=False).encode("utf-8", "surrogatepass")
    part = Part(content, Modality.STRUCTURED, Mime.JSON, PageType.VALUE)
    draft = messages.hidden(act, Draft(Role.OTHER, b"", (part,), hint=f"{KEPT}{name}", actor=ACTOR))
    number = act.spoken.values.get(name)
    if number is None:
        return messages.alone(act, draft)
    managed = act.state.pages[number]
    form = managed.forms[0]
    assert form is not None, "every page has its full content"
    (part,) = draft.parts
    if act.forms.of(form.position) != part.content:
        tokens = estimate(part.content, Modality.STRUCTURED)
        act.tell(Update(number, managed.version + 1, act.cell(part.content), len(part.content), tokens))
    return number


def kept_now(runtime: Runtime) -> dict[str, bytes]:
    """The values that are kept, by name, as JSON."""
    pages = {name: runtime.state.pages[number] for name, number in runtime.spoken.values.items()}
    forms = {name: managed.forms[0].position for name, managed in pages.items() if managed.forms[0] is not None}
    contents = runtime.forms.all(forms.values())
    return {name: contents[position] for name, position in forms.items()}


def kept_at(lane: Branch, position: int) -> dict[str, int]:
    """The pages of the values that were kept at a position, by name."""
    rows = [
        row
        for stretch in reversed(lane.upto(position))
        for row in lane.db.execute(_VALUES, (stretch.session, stretch.high, int(PageType.VALUE)))
    ]
    notes = notes_of(lane, position, [page for page, _ in rows])
    undone = {page for page, note in notes.items() if note.status == Standing.SUPERSEDED}
    return {hint.removeprefix(KEPT): page for page, hint in rows if page not in undone and hint}


def value_of(name: str, found: dict[str, bytes]) -> Any:
    """A value by its name; UnknownError names the nearest where there is none."""
    if name not in found:
        raise UnknownError(f"no value is kept as {name!r:.80}; {Namespace.nearest(name, list(found))}", code="no-value")
    content = found[name]
    if isinstance(content, ErasedContent):
        raise ErasedError(f"what was kept as {name!r} was erased; nothing can bring it back")
    return json.loads(content.decode("utf-8", "surrogatepass"))


_VALUES = "SELECT page, hint FROM pages WHERE session = ? AND page <= ? AND type = ? ORDER BY page"
