"""Pages outside the working set: in a store of artifacts of the caller's, or in memory."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, Field, PrivateAttr, ValidationError

from vmstore.errors import CorruptError, InputError
from vmstore.integrations.chuk.models.enums import MEMORY_PAGE_MIME_TYPE, VM_CHECKPOINT_MIME_TYPE, StorageTier
from vmstore.integrations.chuk.models.page import MemoryPage, now
from vmstore.integrations.chuk.models.stats import StorageStats

try:  # the package of artifact stores, for those who have it
    from chuk_artifacts import ArtifactStore
    from chuk_artifacts.models import StorageScope
except ImportError:
    ArtifactStore = StorageScope = None

ARTIFACTS_AVAILABLE = StorageScope is not None
Model = TypeVar("Model", bound=BaseModel)
THEIRS = "chuk_ai_session_manager.exceptions"


class StorageError(InputError):
    """A bridge that was asked before it was configured."""


def storage_error(act: str) -> StorageError:
    """The error of an act of a bridge; where the replaced package is loaded, one that is its StorageError too."""
    theirs = getattr(sys.modules.get(THEIRS), "StorageError", None)
    kind: Any = StorageError if theirs is None else type("StorageError", (StorageError, theirs), {})
    error: StorageError = kind.__new__(kind)
    Exception.__init__(error, f"Storage error in {act}: the bridge has no storage yet; await configure() first")
    return error


class StorageBackend(Protocol):
    """The interface of what keeps pages."""

    async def store(self, page: MemoryPage, tier: StorageTier) -> str:
        """Keeps a page; the id it is had by."""
        ...

    async def load(self, artifact_id: str) -> MemoryPage | None:
        """A page; None where there is none."""
        ...

    async def delete(self, artifact_id: str) -> bool:
        """Lets a page go; False where there was none."""
        ...


class PageMetadata(BaseModel):
    """The statement of an artifact about the page it holds."""

    page_id: str
    modality: str
    compression_level: int
    tier: str
    session_id: str | None = None


class CheckpointMetadata(BaseModel):
    """The statement of an artifact about the checkpoint it holds."""

    checkpoint_name: str
    page_count: int
    session_id: str | None = None


class CheckpointEntry(BaseModel):
    """A page of a checkpoint."""

    page_id: str
    artifact_id: str
    modality: str


class CheckpointManifest(BaseModel):
    """The pages of a checkpoint."""

    name: str
    created_at: datetime
    page_count: int
    pages: list[CheckpointEntry] = Field(default_factory=list)


class InMemoryBackend(BaseModel):
    """Keeps pages as JSON in memory."""

    pages: dict[str, bytes] = Field(default_factory=dict)
    counter: int = 0

    async def store(self, page: MemoryPage, tier: StorageTier) -> str:
        """Keeps a page; the id it is had by."""
        self.counter += 1
        artifact_id = f"mem_{tier.value}_{self.counter}"
        self.pages[artifact_id] = page.model_dump_json().encode()
        return artifact_id

    async def load(self, artifact_id: str) -> MemoryPage | None:
        """A page; None where there is none."""
        content = self.pages.get(artifact_id)
        return None if content is None else MemoryPage.model_validate_json(content)

    async def delete(self, artifact_id: str) -> bool:
        """Lets a page go; False where there was none."""
        return self.pages.pop(artifact_id, None) is not None

    def clear(self) -> None:
        """Lets all pages go."""
        self.pages.clear()
        self.counter = 0


class ArtifactsBridge(BaseModel):
    """Keeps pages and checkpoints of them, in an artifact store where one was configured."""

    session_id: str | None = None
    _artifact_store: Any = PrivateAttr(default=None)
    _backend: InMemoryBackend | None = PrivateAttr(default=None)
    _using_artifacts: bool = PrivateAttr(default=False)
    _checkpoints: dict[str, bytes] = PrivateAttr(default_factory=dict)

    async def configure(self, artifact_store: Any | None = None, session_id: str | None = None) -> None:
        """Has pages kept in an artifact store; in memory where none is given."""
        self.session_id = session_id
        self._using_artifacts = artifact_store is not None and ARTIFACTS_AVAILABLE
        self._artifact_store = artifact_store if self._using_artifacts else None
        self._backend = None if self._using_artifacts else InMemoryBackend()

    @property
    def is_persistent(self) -> bool:
        """Whether pages are in an artifact store."""
        return self._using_artifacts

    async def store_page(self, page: MemoryPage, tier: StorageTier = StorageTier.L3) -> str:
        """Keeps a page; the id it is had by."""
        if self._backend is not None:
            return await self._backend.store(page, tier)
        self._configured("store_page")
        stated = PageMetadata(
            page_id=page.page_id,
            modality=page.modality.value,
            compression_level=page.compression_level,
            tier=tier.value,
            session_id=self.session_id,
        )
        content, about = page.model_dump_json().encode(), f"page {page.page_id} at {tier.value}"
        return await self._keep(content, MEMORY_PAGE_MIME_TYPE, about, stated, lasts=tier is StorageTier.L4)

    async def load_page(self, artifact_id: str) -> MemoryPage | None:
        """A page; None where there is none, CorruptError where what is there is no page."""
        if self._backend is not None:
            return await self._backend.load(artifact_id)
        content = await self._fetch("load_page", artifact_id)
        return None if content is None else _read(MemoryPage, artifact_id, content)

    async def delete_page(self, artifact_id: str) -> bool:
        """Lets a page go; False where there was none."""
        if self._backend is not None:
            return await self._backend.delete(artifact_id)
        self._configured("delete_page")
        try:
            return bool(await self._artifact_store.delete(artifact_id))
        except (KeyError, FileNotFoundError):
            return False

    async def store_checkpoint(self, pages: list[MemoryPage], checkpoint_name: str) -> str:
        """Keeps pages under a name; the id of the checkpoint."""
        self._configured("store_checkpoint")
        entries = [
            CheckpointEntry(page_id=page.page_id, artifact_id=await self.store_page(page), modality=page.modality.value)
            for page in pages
        ]
        made = CheckpointManifest(name=checkpoint_name, created_at=now(), page_count=len(pages), pages=entries)
        content = made.model_dump_json().encode()
        if self._backend is not None:
            checkpoint_id = f"checkpoint_{checkpoint_name}_{len(self._checkpoints) + 1}"
            self._checkpoints[checkpoint_id] = content
            return checkpoint_id
        stated = CheckpointMetadata(checkpoint_name=checkpoint_name, page_count=len(pages), session_id=self.session_id)
        return await self._keep(content, VM_CHECKPOINT_MIME_TYPE, f"checkpoint {checkpoint_name}", stated, lasts=True)

    async def load_checkpoint(self, checkpoint_id: str) -> list[MemoryPage]:
        """The pages of a checkpoint; none where there is no such checkpoint."""
        if self._backend is not None:
            content: Any = self._checkpoints.get(checkpoint_id)
        else:
            content = await self._fetch("load_checkpoint", checkpoint_id)
        if content is None:
            return []
        manifest = _read(CheckpointManifest, checkpoint_id, content)
        loaded = [await self.load_page(entry.artifact_id) for entry in manifest.pages]
        return [page for page in loaded if page is not None]

    def get_stats(self) -> StorageStats:
        """The place where pages are kept, and how many are in memory."""
        if self._using_artifacts:
            return StorageStats(backend="chuk-artifacts", persistent=True, session_id=self.session_id)
        if self._backend is None:
            return StorageStats(backend="unconfigured", session_id=self.session_id)
        count = len(self._backend.pages)
        return StorageStats(backend="in-memory", session_id=self.session_id, pages_stored=count)

    def _configured(self, act: str) -> None:
        if self._backend is None and not self._using_artifacts:
            raise storage_error(act)

    async def _keep(self, content: bytes, mime: str, about: str, stated: BaseModel, *, lasts: bool) -> str:
        """Keeps bytes as an artifact: of the session, or beyond it where they last."""
        names = ("SANDBOX", "sandbox") if lasts else ("SESSION", "session")
        scope = getattr(StorageScope, names[0], names[1])
        return str(
            await self._artifact_store.store(
                data=content, mime=mime, scope=scope, summary=about, metadata=stated.model_dump(mode="json")
            )
        )

    async def _fetch(self, act: str, artifact_id: str) -> Any:
        self._configured(act)
        try:
            return await self._artifact_store.retrieve(artifact_id)
        except (KeyError, FileNotFoundError):
            return None


def _read(kind: type[Model], artifact_id: str, content: Any) -> Model:
    """The model that an artifact holds; CorruptError where it holds something else."""
    try:
        return kind.model_validate_json(content)
    except (ValidationError, TypeError) as error:
        raise CorruptError(
            f"artifact {artifact_id!r:.80} holds no {kind.__name__}; the store that keeps it gave something else",
            code="content-missing",
        ) from error
