"""Makes shorter forms of pages at the door: by a callback that was handed in, else by the compressors.

Whatever is asked, a form comes back: where there is none at a level the next higher one is tried,
and a line that only says what the page is ends the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vmstore.core.address import page_name
from vmstore.core.page import Level, Method, Modality
from vmstore.core.text.image_size import size_of
from vmstore.core.text.token_estimate import estimate
from vmstore.live.transcript import PageLabels
from vmstore.vm.compressors.callback import TIMEOUT_S, Callback, Outcome, ask
from vmstore.vm.compressors.form import Form, Material
from vmstore.vm.compressors.registry import compressed
from vmstore.vm.kernel.managed_page import ManagedPage


class CompressedForm(NamedTuple):
    """A shorter form: its level, how it was made, its bytes and their estimated tokens."""

    level: Level
    method: Method
    content: bytes
    tokens: int
    lossy: bool


class FormMaker:
    """Compressors, and the callback that goes before them; `outcomes` counts what came of asking it."""

    def __init__(self, callback: Callback | None = None, timeout_s: float = TIMEOUT_S) -> None:
        self._callback = callback
        self._timeout_s = timeout_s
        self.outcomes: dict[Outcome, int] = {}
        self._hung = False

    def begin(self) -> None:
        """A new act begins, in which a callback that hung is asked again."""
        self._hung = False

    def of(
        self,
        managed: ManagedPage,
        known: PageLabels | None,
        content: bytes,
        level: int,
        below: Sequence[Form] = (),
        spoken: str = "",
    ) -> CompressedForm:
        """The form of a page at a level, or at the next higher one that has one.

        It is shorter than the forms `below` that the page has at lower levels. `said` are the words
        handed in about it: a picture's caption, the transcript of sound or film.
        """
        material = material_of(managed, known, content, spoken)
        for at in range(level, len(Level)):
            form = self._form(material, at, managed, below)
            if form is not None:
                return CompressedForm(Level(at), form.method, form.content, form.tokens, form.lossy)
        line = f"[{page_name(managed.page)}: {managed.modality.word}, {len(content):,} bytes]".encode()
        return CompressedForm(Level.REFERENCE, Method.REFERENCE, line, estimate(line, Modality.TEXT), True)

    def _form(self, material: Material, level: int, managed: ManagedPage, below: Sequence[Form]) -> Form | None:
        if self._callback is None or self._hung or level == Level.REFERENCE or material.caption:
            made = compressed(material, level, managed.type, below)
            return made if isinstance(made, Form) else None
        answer = ask(self._callback, material, level, managed.type, self._timeout_s, below)
        self._hung = answer.outcome is Outcome.HUNG  # an act that shortens ten pages waits once
        self.outcomes[answer.outcome] = self.outcomes.get(answer.outcome, 0) + 1
        return answer.form if isinstance(answer.form, Form) else None


def material_of(managed: ManagedPage, known: PageLabels | None, content: bytes, spoken: str = "") -> Material:
    """A page as compressors take it, with the words that were handed in about it."""
    width, height = (size_of(content) if managed.modality is Modality.IMAGE else None) or (0, 0)
    return Material(
        content=content,
        modality=managed.modality,
        mime=_mime(managed, known),
        name=(known.name or "") if known else "",
        width=width,
        height=height,
        caption=spoken,
        transcript=spoken,
    )


def _mime(managed: ManagedPage, known: PageLabels | None) -> str:
    return (known.mime if known and known.mime else None) or managed.mime.type
