"""Pages as the lines of a context, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, Field

from vmstore.core.text.token_estimate import CHARACTERS_PER_TOKEN
from vmstore.integrations.chuk.models.content import FormattedPage
from vmstore.integrations.chuk.models.enums import ContextPrefix, MessageRole, Modality, PageType
from vmstore.integrations.chuk.models.page import MemoryPage
from vmstore.integrations.items import as_json

TRUNCATED_TOKENS_MIN = 50  # what has to be left for a text to be cut and not left out
SPOKEN_CHARACTERS_MAX = 200  # of what is said in sound, in a line
CUT = "..."
ROLES = {
    MessageRole.USER.value: ContextPrefix.USER,
    MessageRole.ASSISTANT.value: ContextPrefix.ASSISTANT,
    MessageRole.TOOL.value: ContextPrefix.TOOL,
}


class PackedContext(BaseModel):
    """The lines of a context, and which pages are in them, cut, or left out."""

    content: str
    tokens_est: int = 0
    pages_included: list[str] = Field(default_factory=list)
    pages_truncated: list[str] = Field(default_factory=list)
    pages_omitted: list[str] = Field(default_factory=list)


class ContextPackerConfig(BaseModel):
    """How lines are written; a text longer than `max_text_length` is cut, 0 for none."""

    include_page_ids: bool = True
    include_timestamps: bool = False
    max_text_length: int = 0


class ContextPacker(BaseModel):
    """Writes a line a page: a letter, the page's id, and what it says."""

    config: ContextPackerConfig = Field(default_factory=ContextPackerConfig)

    def pack(self, pages: list[MemoryPage], token_budget: int | None = None) -> PackedContext:
        """Pages in their order; what does not fit is cut where it is a text and there is room, else left out."""
        lines: list[str] = []
        included: list[str] = []
        truncated: list[str] = []
        omitted: list[str] = []
        used = 0
        for page in pages:
            line = self._format_page(page)
            left = None if token_budget is None else token_budget - used
            if left is not None and line.tokens_est > left:
                if page.modality != Modality.TEXT or left < TRUNCATED_TOKENS_MIN:
                    omitted.append(page.page_id)
                    continue
                line = self._format_page(page, max_tokens=left - self._around(page))
                truncated.append(page.page_id)
            lines.append(line.content)
            included.append(page.page_id)
            used += line.tokens_est
        return PackedContext(
            content="\n".join(lines),
            tokens_est=used,
            pages_included=included,
            pages_truncated=truncated,
            pages_omitted=omitted,
        )

    def pack_with_wrapper(self, pages: list[MemoryPage], token_budget: int | None = None) -> PackedContext:
        """The same between the tags of a context."""
        packed = self.pack(pages, token_budget)
        content = f"<VM:CONTEXT>\n{packed.content}\n</VM:CONTEXT>"
        return packed.model_copy(update={"content": content, "tokens_est": len(content) // CHARACTERS_PER_TOKEN})

    def _around(self, page: MemoryPage) -> int:
        """The tokens of a line beside what its page says."""
        return 1 + len(self._line(page, ContextPrefix.UNKNOWN, CUT + '""')) // CHARACTERS_PER_TOKEN

    def _format_page(self, page: MemoryPage, max_tokens: int | None = None) -> FormattedPage:
        forms: dict[str, Callable[[MemoryPage, int | None], FormattedPage]] = {
            Modality.TEXT: self._format_text,
            Modality.IMAGE: self._format_image,
            Modality.AUDIO: self._format_audio,
            Modality.VIDEO: self._format_video,
            Modality.STRUCTURED: self._format_structured,
        }
        return forms.get(page.modality, self._format_generic)(page, max_tokens)

    def _format_text(self, page: MemoryPage, max_tokens: int | None = None) -> FormattedPage:
        text = _text(page.content)
        most = self.config.max_text_length
        if most and len(text) > most:
            text = text[:most] + CUT
        return self._made(page, _prefix(page), f'"{_within(text, max_tokens)}"')

    def _format_image(self, page: MemoryPage, max_tokens: int | None = None) -> FormattedPage:
        facts = [page.caption or _text(page.content)]
        if page.dimensions:
            facts.append("x".join(map(str, page.dimensions)))
        return self._made(page, ContextPrefix.IMAGE, _medium("IMAGE", facts))

    def _format_audio(self, page: MemoryPage, max_tokens: int | None = None) -> FormattedPage:
        spoken = page.transcript or _text(page.content)
        if len(spoken) > SPOKEN_CHARACTERS_MAX:
            spoken = spoken[:SPOKEN_CHARACTERS_MAX] + CUT
        facts = [_duration(page), f'transcript: "{spoken}"' if spoken else ""]
        return self._made(page, ContextPrefix.AUDIO, _medium("AUDIO", facts))

    def _format_video(self, page: MemoryPage, max_tokens: int | None = None) -> FormattedPage:
        scenes, topic = page.metadata.get("scene_count"), page.metadata.get("topic") or page.caption
        facts = [_duration(page), f"{scenes} scenes" if scenes else "", f'topic: "{topic}"' if topic else ""]
        return self._made(page, ContextPrefix.VIDEO, _medium("VIDEO", facts))

    def _format_structured(self, page: MemoryPage, max_tokens: int | None = None) -> FormattedPage:
        content = page.content if page.content is not None else {}
        text = content if isinstance(content, str) else as_json(content).decode()
        return self._made(page, ContextPrefix.STRUCTURED, _within(text, max_tokens))

    def _format_generic(self, page: MemoryPage, max_tokens: int | None = None) -> FormattedPage:
        text = _text(page.content) or "[no content]"
        return self._made(page, ContextPrefix.UNKNOWN, _within(text, max_tokens))

    def _made(self, page: MemoryPage, prefix: ContextPrefix, says: str) -> FormattedPage:
        line = self._line(page, prefix, says)
        return FormattedPage(content=line, tokens_est=len(line) // CHARACTERS_PER_TOKEN)

    def _line(self, page: MemoryPage, prefix: ContextPrefix, says: str) -> str:
        name = f" ({page.page_id})" if self.config.include_page_ids else ""
        at = f" [{page.created_at:%Y-%m-%d %H:%M}]" if self.config.include_timestamps else ""
        return f"{prefix.value}{name}{at}: {says}"


def _prefix(page: MemoryPage) -> ContextPrefix:
    """The letter of the author: by what the page says of itself, else a summary's, else a user's."""
    role = str(page.metadata.get("role", ""))
    if role in ROLES:
        return ROLES[role]
    kinds = (page.metadata.get("type"), page.page_type.value)
    is_summary = PageType.SUMMARY.value in kinds or page.page_id.startswith(PageType.SUMMARY.value)
    return ContextPrefix.SUMMARY if is_summary else ContextPrefix.USER


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, bytes):
        return f"[{len(content):,} bytes]"
    return content if isinstance(content, str) else as_json(content).decode()


def _within(text: str, tokens: int | None) -> str:
    if tokens is None or len(text) <= tokens * CHARACTERS_PER_TOKEN:
        return text
    return text[: max(0, tokens) * CHARACTERS_PER_TOKEN] + CUT


def _medium(kind: str, facts: list[str]) -> str:
    stated = ", ".join(fact for fact in facts if fact)
    return f"[{kind}: {stated}]" if stated else f"[{kind}]"


def _duration(page: MemoryPage) -> str:
    if page.duration_seconds is None:
        return ""
    minutes, seconds = divmod(int(page.duration_seconds), 60)
    return f"{minutes}:{seconds:02} duration"
