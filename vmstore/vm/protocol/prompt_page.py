"""A page of the prompt as the protocol sees it: what it is, how much of it is shown, its bytes."""

from __future__ import annotations

import re

import msgspec

from vmstore.core.page import IMPORTANCE, Modality, PageType, Role, Slot, Tier

TEXT = re.compile(r"text/.*|application/(?:json|x-ndjson|xml|yaml|x-yaml|javascript|toml)|.*\+(?:json|xml)", re.DOTALL)
HINT_CHARS_MAX = 120
INSTRUCTING = (Role.SYSTEM, Role.DEVELOPER)
MEDIA = (Modality.IMAGE, Modality.AUDIO, Modality.VIDEO)


class PageForm(msgspec.Struct, frozen=True, kw_only=True):
    """One way to show a page: how much of it, in how many tokens, and the bytes where they are at hand."""

    level: int
    tokens: int
    content: bytes | None = None
    mime: str = "text/plain"

    @property
    def is_text(self) -> bool:
        """Whether its bytes are to be read as text."""
        return TEXT.fullmatch(self.mime.partition(";")[0]) is not None

    @property
    def text(self) -> str | None:
        """Its bytes as text, what is no UTF-8 replaced; None where there is no text."""
        if self.content is None or not self.is_text:
            return None
        return self.content.decode("utf-8", "replace")


class PromptPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page and one way it is shown: `level`, `tokens`, `content` and `mime` are that form, `others` the rest.

    `turn` is the turn it was last wanted in (said, faulted in), `segment` where it was said, 0 for
    the one still open. A leaf in the slot TOOLS takes room and is written nowhere: requests carry their
    tools themselves. `origin` names the page it stands for where somebody wrote it as a stand-in
    (a caption); `provenance` what it was made from. `message` and `part` are its place in the
    conversation, 0 where it was in no message. A tool's question and its answer share `call_id`.
    `task` marks the active plan, `thought` a model's thinking. `importance` is in parts per million.
    """

    name: str
    type: PageType = PageType.TRANSCRIPT
    modality: Modality = Modality.TEXT
    role: Role = Role.OTHER
    slot: Slot = Slot.MESSAGES
    level: int = 0
    tokens: int = 0
    content: bytes | None = None
    mime: str = "text/plain"
    others: tuple[PageForm, ...] = ()
    version: int = 1
    hint: str = ""
    importance: int = IMPORTANCE
    tier: Tier = Tier.L0
    pinned: bool = False
    task: bool = False
    turn: int = 0
    segment: int = 0
    origin: str = ""
    provenance: tuple[str, ...] = ()
    message: int = 0
    part: int = 0
    call_id: str = ""
    tool: str = ""
    is_call: bool = False
    is_result: bool = False
    thought: bool = False
    width: int = 0
    height: int = 0
    duration_ms: int = 0

    @property
    def form(self) -> PageForm:
        """The form that is shown."""
        return PageForm(level=self.level, tokens=self.tokens, content=self.content, mime=self.mime)

    @property
    def forms(self) -> list[PageForm]:
        """Every way to show it, by level."""
        return sorted((self.form, *self.others), key=lambda form: form.level)

    @property
    def levels(self) -> list[int]:
        """The levels it can be shown at."""
        return [form.level for form in self.forms]

    @property
    def text(self) -> str | None:
        """The text that is shown; None where it is not loaded."""
        return self.form.text

    @property
    def about(self) -> str:
        """Its hint on one line, cut to what helps to find it: no way to read it."""
        flat = " ".join(self.hint[: 10 * HINT_CHARS_MAX].split())
        return flat if len(flat) <= HINT_CHARS_MAX else flat[: HINT_CHARS_MAX - 1] + "…"

    @property
    def instructs(self) -> bool:
        """Whether it is the developer's word, not the conversation's: instructions, or the schemas of tools.

        What the memory wrote itself, as a summary, instructs nobody.
        """
        is_said = self.role in INSTRUCTING and self.type is PageType.TRANSCRIPT
        return is_said or self.slot is not Slot.MESSAGES

    @property
    def is_media(self) -> bool:
        """Whether it is a picture, a sound or a film."""
        return self.modality in MEDIA

    def at(self, level: int) -> PromptPage:
        """The same page at another of its levels."""
        forms = {form.level: form for form in self.forms}
        assert level in forms, f"{self.name} has levels {self.levels}"
        to = forms.pop(level)
        return msgspec.structs.replace(
            self, level=level, tokens=to.tokens, content=to.content, mime=to.mime, others=tuple(forms.values())
        )

    def lower(self) -> PromptPage | None:
        """The same page at the next level down that takes fewer tokens; None where there is none."""
        smaller = (form.level for form in self.forms if form.level > self.level and form.tokens < self.tokens)
        level = next(smaller, None)
        return None if level is None else self.at(level)

    def caption(self) -> PromptPage:
        """The same page in its fullest form that is text; itself where it has none."""
        spoken = next((form.level for form in self.forms if form.is_text), None)
        return self if spoken is None or self.form.is_text else self.at(spoken)
