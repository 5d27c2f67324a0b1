"""What a page is called, and what else its labels say of it."""

from __future__ import annotations

import msgspec

from vmstore.capture.skeleton import loads


class Known(msgspec.Struct, frozen=True):
    """What labels say of a page."""

    name: str | None = msgspec.field(default=None, name="hint")
    call_id: str | None = msgspec.field(default=None, name="asks")
    answers: str | None = None
    tags: tuple[str, ...] = ()
    mime: str | None = None


def known(labels: bytes) -> Known:
    """What the labels of a page say."""
    try:
        return _READ(labels)
    except (msgspec.MsgspecError, UnicodeDecodeError):  # they hold what is no character
        told = loads(labels)
        return Known(
            told.get("hint"), told.get("asks"), told.get("answers"), tuple(told.get("tags", ())), told.get("mime")
        )


_READ = msgspec.json.Decoder(Known).decode
