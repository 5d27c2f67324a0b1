"""A dry run of masking: counts each value once and keeps none."""

from __future__ import annotations

from hashlib import blake2b

from vmstore.redact.find import spans
from vmstore.redact.mask import is_blob, same
from vmstore.redact.span import SecretKind


class DryRunReport:
    """Secrets and personal data by kind, and the pages they stand in; values are distinguished by digests in memory."""

    def __init__(self) -> None:
        self.pages: list[int] = []
        self._seen: dict[tuple[SecretKind, bytes], None] = {}

    def look(self, page: int, content: bytes) -> None:
        """Looks at the content of a page; what cannot be read is passed over."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            return
        found = [] if is_blob(text) else spans(text)
        for span in found:
            canonical = same(text[span.start : span.end], span.kind).encode("utf-8", "surrogatepass")
            self._seen[span.kind, blake2b(canonical, digest_size=16).digest()] = None
        if found:
            self.pages.append(page)

    @property
    def counts(self) -> dict[str, int]:
        """How many values of each kind."""
        found: dict[str, int] = {}
        for kind, _ in sorted(self._seen):
            found[kind.value] = found.get(kind.value, 0) + 1
        return found
