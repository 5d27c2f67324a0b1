"""The errors vmstore raises: one class for each thing a caller might handle.

Every message names the thing, the reason and the remedy.
"""

from __future__ import annotations


class VmstoreError(Exception):
    """Anything vmstore refuses or cannot do; catch it to catch them all."""


class StoreError(VmstoreError):
    """A path that is no store, or a store this version cannot open."""


class LockedError(StoreError):
    """Another process holds what is needed, for longer than was to be waited; nothing was written."""


class UnknownError(VmstoreError):
    """A session, page, turn, call or position that does not exist; names the nearest that does."""


class ErasedError(UnknownError):
    """A content that was there and was erased; says at which position."""


class InputError(VmstoreError):
    """A file, request or reference that cannot be taken in; nothing of it was written."""


class RefusedError(VmstoreError):
    """A mutation the gate refuses because a named rule does not hold; nothing was written."""


class ConflictError(RefusedError):
    """A commit whose expected position or request id does not fit what the log holds."""


class OvertakenError(ConflictError):
    """A commit that was decided before another writer added something; read that and decide again."""


class ReadOnlyError(VmstoreError):
    """A write through a handle opened for reading only."""


class CorruptError(VmstoreError):
    """Bytes that do not match their hash; names the commit or cell."""


class InternalError(VmstoreError):
    """A fault of vmstore itself; the store is as it was."""
