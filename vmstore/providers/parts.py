"""The typed content parts of chat, Responses and Anthropic messages, each taken into one page.

Their type words do not clash, so one table serves all three: a request whose shape was guessed
wrong is still taken apart the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vmstore.core.draft import Part
from vmstore.core.page import MIMES, Mime, Modality
from vmstore.core.text.skeleton import TEXT, text_bytes, unbase64
from vmstore.providers.message import Holes

Block = dict[str, Any]

TEXT_KEYS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "thinking": "thinking",
    "refusal": "refusal",
}
MIMES_AUDIO = {"mp3": "audio/mpeg"}  # the one format whose content type has another name
FAMILIES = {
    "image": Modality.IMAGE,
    "audio": Modality.AUDIO,
    "video": Modality.VIDEO,
    "text": Modality.TEXT,
}


def take_part(holes: Holes, part: Any) -> Any:
    """The skeleton of a content part, its content moved into `holes`."""
    if isinstance(part, str):
        return holes.text(part)
    if not isinstance(part, dict):
        return holes.json(part)
    kind = part.get("type", "text")
    if not isinstance(kind, str):
        return holes.json(part)
    key = TEXT_KEYS.get(kind)
    if key is not None and isinstance(text := part.get(key), str):
        return {**part, key: holes.text(text)}
    if kind.endswith("tool_use"):
        return holes.call(part, part.get("id"), part.get("name"))
    if kind.endswith("tool_result"):
        return _result(holes, part)
    taken = TAKERS[kind](holes, part) if kind in TAKERS else None
    return holes.json(part, MODALITIES.get(kind, Modality.STRUCTURED)) if taken is None else taken


def take_output(holes: Holes, output: Any) -> Any:
    """The skeleton of a tool's output: its text where it is one, else one JSON part."""
    if isinstance(output, str):
        return holes.text(output)
    single = output[0] if isinstance(output, list) and len(output) == 1 else output
    if isinstance(single, dict) and single.get("type") in ONE_PAGE:
        taken = take_part(holes, single)
        return [taken] if isinstance(output, list) else taken
    return holes.json(output)


def take_base64(holes: Holes, data: Any, media: Any) -> dict[str, int] | None:
    """The hole of decoded base64; None where it would not come back as the very same text."""
    if not isinstance(data, str) or not isinstance(media, str):
        return None
    modality, mime, name = media_of(media)
    if modality is Modality.STRUCTURED or (found := unbase64(data)) is None:
        return None
    kind, decoded = found
    if modality is Modality.TEXT and not _is_text(decoded):
        return None
    return holes.put(kind, Part(decoded, modality, mime, mime_name=name))


def media_of(media: str) -> tuple[Modality, Mime, str | None]:
    """Modality, content type and, where that is OTHER, the name of a media type."""
    name = media.partition(";")[0].strip().lower()
    mime = MIMES.get(name, Mime.OTHER)
    # Models read a PDF as pictures of its pages.
    family = "image" if mime is Mime.PDF else name.partition("/")[0]
    modality = FAMILIES.get(family, Modality.STRUCTURED)
    named = mime is Mime.OTHER and name.isascii()
    return modality, mime, (name or None) if named else None


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _data_url(holes: Holes, url: Any) -> dict[str, int] | None:
    """The hole of a data: URL, kept as its text; None for a URL that points elsewhere."""
    if not isinstance(url, str) or not url.startswith("data:"):
        return None
    modality, mime, name = media_of(url[5:].partition(",")[0])
    return holes.put(TEXT, Part(text_bytes(url), modality, mime, mime_name=name))


def _result(holes: Holes, part: Block) -> Block:
    since = len(holes.parts)
    content = part.get("content")
    taken = holes.json(part) if content is None else {**part, "content": take_output(holes, content)}
    holes.answers(since, part.get("tool_use_id"))
    return taken


def _url_under(key: str) -> Callable[[Holes, Block], Block | None]:
    """Takes a URL that stands under `key`, or under `url` in the object there."""

    def take(holes: Holes, part: Block) -> Block | None:
        inner = part.get(key)
        if isinstance(inner, dict):
            taken = _data_url(holes, inner.get("url"))
            return taken and {**part, key: {**inner, "url": taken}}
        taken = _data_url(holes, inner)
        return taken and {**part, key: taken}

    return take


def _source(holes: Holes, part: Block) -> Block | None:
    """Takes the data of an Anthropic image or document."""
    source = part.get("source")
    if not isinstance(source, dict):
        return None
    data = source.get("data")
    if source.get("type") == "text" and isinstance(data, str):
        return {**part, "source": {**source, "data": holes.text(data)}}
    taken = take_base64(holes, data, source.get("media_type"))
    return taken and {**part, "source": {**source, "data": taken}}


def _audio(holes: Holes, part: Block) -> Block | None:
    audio = part.get("input_audio")
    if not isinstance(audio, dict):
        return None
    form = audio.get("format")
    media = MIMES_AUDIO.get(form, f"audio/{form}") if isinstance(form, str) else None
    taken = take_base64(holes, audio.get("data"), media)
    return taken and {**part, "input_audio": {**audio, "data": taken}}


def _file(holes: Holes, part: Block) -> Block | None:
    """Takes the data of a file: under `file` in chat, beside the type in Responses."""
    inner = part.get("file")
    if isinstance(inner, dict):
        taken = _data_url(holes, inner.get("file_data"))
        return taken and {**part, "file": {**inner, "file_data": taken}}
    taken = _data_url(holes, part.get("file_data"))
    return taken and {**part, "file_data": taken}


TAKERS: dict[str, Callable[[Holes, Block], Block | None]] = {
    "image_url": _url_under("image_url"),
    "input_image": _url_under("image_url"),
    "computer_screenshot": _url_under("image_url"),
    "video_url": _url_under("video_url"),
    "audio_url": _url_under("audio_url"),
    "image": _source,
    "document": _source,
    "input_audio": _audio,
    "file": _file,
    "input_file": _file,
}
MODALITIES = {
    "image": Modality.IMAGE,
    "image_url": Modality.IMAGE,
    "input_image": Modality.IMAGE,
    "computer_screenshot": Modality.IMAGE,
    "input_audio": Modality.AUDIO,
    "audio_url": Modality.AUDIO,
    "video_url": Modality.VIDEO,
}
# What a tool's output may be, alone, to stay one page of its own kind. A tuple: any value is looked up.
ONE_PAGE = ("text", "input_text", "output_text", "image", "input_image", "computer_screenshot")
