"""The errors vmstore raises: one class for each thing a caller might handle.

Every message names the thing, the reason and the remedy; `code` is the word for it that stays when the
wording changes.
"""

from __future__ import annotations


class VmstoreError(Exception):
    """Anything vmstore refuses or cannot do; catch it to catch them all.

    `code` is a stable word: that of the class, the name of the rule that refuses, or a query's fault.
    """

    code = "vmstore"

    def __init__(self, message: str = "", *, code: str | None = None) -> None:
        super().__init__(message)
        if code is not None:
            self.code = code


class StoreError(VmstoreError):
    """A path that is no store, or a store this version cannot open."""

    code = "store"


class LockedError(StoreError):
    """Another process holds what is needed, for longer than was to be waited; nothing was written."""

    code = "locked"


class UnknownError(VmstoreError):
    """A session, page, turn, call or position that does not exist; names the nearest that does."""

    code = "unknown"


class ErasedError(UnknownError):
    """A content that was there and was erased; says at which position."""

    code = "erased"


class InputError(VmstoreError):
    """A file, request or reference that cannot be taken in; nothing of it was written."""

    code = "input"


class RefusedError(VmstoreError):
    """A mutation the gate refuses because a named rule does not hold; nothing was written."""

    code = "refused"


class ConflictError(RefusedError):
    """A commit whose expected position or request id does not fit what the log holds."""

    code = "conflict"


class OvertakenError(ConflictError):
    """A commit that was decided before another writer added something; read that and decide again."""

    code = "overtaken"


class ReadOnlyError(VmstoreError):
    """A write through a handle opened for reading only."""

    code = "read-only"


class CorruptError(VmstoreError):
    """Bytes that do not match their hash; names the commit or cell."""

    code = "corrupt"


class EmbedderError(VmstoreError):
    """An embedder that failed, hung, or answered with what are no vectors; nothing of its answer was written."""

    code = "embedder"


class TextModelError(VmstoreError):
    """A text model that failed, hung, or answered with what holds no text."""

    code = "text_model"


class SpanExportError(VmstoreError):
    """A collector of spans that cannot be reached, or refused what it was sent."""

    code = "spans"


class InternalError(VmstoreError):
    """A fault of vmstore itself; the store is as it was."""

    code = "internal"
