"""What a page is called, and what else its labels say of it."""

from __future__ import annotations

import msgspec

from vmstore.views.projectors.pages import born_tags, object_of


class Known(msgspec.Struct, frozen=True, omit_defaults=True):
    """What labels say of a page."""

    name: str | None = msgspec.field(default=None, name="hint")
    call_id: str | None = msgspec.field(default=None, name="asks")
    answers: str | None = None
    tags: tuple[str, ...] = ()
    mime: str | None = None
    origin: str | None = None


def known(labels: bytes) -> Known:
    """What the labels of a page say."""
    try:
        return _READ(labels)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # they hold what is no character
        told = object_of(labels)
        hint, asks, answers, mime = (told.get(name) for name in ("hint", "asks", "answers", "mime"))
        origin = _text(told.get("origin"))
        return Known(_text(hint), _text(asks), _text(answers), tuple(born_tags(told)), _text(mime), origin)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


_READ = msgspec.json.Decoder(Known).decode
