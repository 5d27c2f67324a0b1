"""LangGraph's checkpointer: every checkpoint is a commit of the store, a thread is one of its sessions."""

from __future__ import annotations

import os
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
)

from vmstore.errors import InputError, UnknownError
from vmstore.integrations.langgraph.pages import CheckpointState, TaskWrites, Typed, messages_in, spoken
from vmstore.integrations.langgraph.thread import GraphThread, Key, NewCheckpoint
from vmstore.store.store import Store, open_store

PREFIX = "langgraph/"
THREADS_MAX = 64  # at hand, each with an index and contents; another is read again when it is asked for
Keys = list[tuple[str, Key]]  # inside the class `list` is a method
Writes = list[PendingWrite]
KEEP_LATEST, DELETE = "keep_latest", "delete"


class VmstoreSaver(BaseCheckpointSaver[int]):
    """Keeps a graph's checkpoints in a store, sync and async; any thread may use it.

    A thread is the session `langgraph/THREAD`. What a graph's messages say stands there as pages of text too, so that
    it can be searched, unless `readable` is false. Deleting erases: contents are destroyed for good.
    """

    def __init__(self, store: Store, *, serde: Any = None, prefix: str = PREFIX, readable: bool = True) -> None:
        super().__init__(serde=serde)
        self._store = store
        self._prefix = prefix
        self._readable = readable
        self._threads: dict[str, GraphThread] = {}
        self._lock = RLock()

    @classmethod
    @contextmanager
    def from_path(cls, path: str | os.PathLike[str], **options: Any) -> Iterator[VmstoreSaver]:
        """A saver over the store at a path, made where there is none, and closed at the end of the block."""
        with open_store(path) as store:
            yield cls(store, **options)

    def session_of(self, thread_id: str) -> str:
        """The name of the session that holds a thread."""
        return f"{self._prefix}{thread_id}"

    # ---- reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint of a config, by default the thread's newest; None where there is none."""
        asked = config["configurable"]
        namespace = str(asked.get("checkpoint_ns", ""))
        with self._lock:
            thread = self._thread(str(asked["thread_id"]))
            id_ = get_checkpoint_id(config) or thread.newest(namespace)
            return None if id_ is None else self._tuple(thread, (namespace, str(id_)))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all, the newest first, whose metadata has what `filter` says."""
        given = 0
        for name, key in self._keys(config, before):
            if limit is not None and given >= limit:
                return
            with self._lock:
                found = self._tuple(self._thread(name), key, filter)
            if found is not None:
                given += 1
                yield found

    def _keys(self, config: RunnableConfig | None, before: RunnableConfig | None) -> Sequence[tuple[str, Key]]:
        """The checkpoints to list: their threads and keys."""
        asked: Any = {} if config is None else config["configurable"]
        names = [str(asked["thread_id"])] if "thread_id" in asked else self._names()
        only = None if config is None else get_checkpoint_id(config)
        end = None if before is None else get_checkpoint_id(before)
        keys: Keys = []
        with self._lock:
            for name in names:
                thread = self._thread(name)
                wanted = asked.get("checkpoint_ns")
                for namespace in thread.namespaces if wanted is None else [str(wanted)]:
                    ids = [id_ for id_ in thread.ids(namespace) if only in (None, id_)]
                    keys += [(name, (namespace, id_)) for id_ in ids if end is None or id_ < end]
        return sorted(keys, key=lambda item: item[1][1], reverse=True)

    def _tuple(self, thread: GraphThread, key: Key, filter: dict[str, Any] | None = None) -> CheckpointTuple | None:
        state = thread.state(key)
        if state is None:
            return None
        metadata = self.serde.loads_typed(state.metadata)
        if any(metadata.get(name) != value for name, value in (filter or {}).items()):
            return None
        checkpoint = self.serde.loads_typed(state.envelope)
        checkpoint["channel_values"] = self._values(thread, state)
        return CheckpointTuple(
            self._config(thread, key),
            checkpoint,
            metadata,
            None if state.parent is None else self._config(thread, (key[0], state.parent)),
            self._pending(thread.pending(key)),
        )

    def _values(self, thread: GraphThread, state: CheckpointState) -> dict[str, Any]:
        typed = {**state.inline, **{channel: thread.value(page) for channel, page in state.pages.items()}}
        return {channel: self.serde.loads_typed(value) for channel, value in typed.items()}

    def _pending(self, tasks: Sequence[TaskWrites]) -> Writes:
        """The writes of tasks as a graph applies them; a task's write of an index stays, but for the special ones."""
        found: dict[tuple[str, int], tuple[str, str, Typed]] = {}
        for task in tasks:
            for index, channel, value in task.writes:
                if task.replaces or (task.task, index) not in found:
                    found[task.task, index] = (task.path, channel, value)
        ordered = sorted(found.items(), key=lambda item: (item[1][0], *item[0]))
        return [(task, channel, self.serde.loads_typed(value)) for (task, _), (_, channel, value) in ordered]

    def _config(self, thread: GraphThread, key: Key) -> RunnableConfig:
        name = thread.name.removeprefix(self._prefix)
        return {"configurable": {"thread_id": name, "checkpoint_ns": key[0], "checkpoint_id": key[1]}}

    # ---- writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Writes a checkpoint as one commit, durable when this returns; the config that names it."""
        asked = config["configurable"]
        key = str(asked.get("checkpoint_ns", "")), checkpoint["id"]
        values = checkpoint["channel_values"]
        typed = {channel: self.serde.dumps_typed(value) for channel, value in values.items()}
        envelope = {name: value for name, value in checkpoint.items() if name != "channel_values"}
        full = cast(dict[str, Any], get_checkpoint_metadata(config, metadata))
        run = full.get("run_id")
        parent = asked.get("checkpoint_id")
        with self._lock:
            thread = self._thread(str(asked["thread_id"]), writes=True)
            thread.put(
                NewCheckpoint(
                    key,
                    None if parent is None else str(parent),
                    None if run is None else str(run),
                    self.serde.dumps_typed(full),
                    self.serde.dumps_typed(envelope),
                    typed,
                    frozenset(new_versions),
                    messages_in(values, thread.said) if self._readable else {},
                )
            )
            return self._config(thread, key)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Writes what a task wrote for a checkpoint, as one commit."""
        asked = config["configurable"]
        typed = [
            (WRITES_IDX_MAP.get(channel, index), channel, self.serde.dumps_typed(value))
            for index, (channel, value) in enumerate(writes)
        ]
        replaces = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        key = str(asked.get("checkpoint_ns", "")), str(asked["checkpoint_id"])
        with self._lock:
            thread = self._thread(str(asked["thread_id"]), writes=True)
            thread.put_writes(key, TaskWrites(task_id, task_path, replaces, typed))

    # ---- taking away

    def delete_thread(self, thread_id: str) -> None:
        """Erases a thread for good: contents and name; every hash of the log still holds."""
        with self._lock:
            self._thread(str(thread_id)).destroy()
            self._threads.pop(str(thread_id), None)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Erases the checkpoints that some runs made, in all threads, and what only these needed."""
        runs = frozenset(map(str, run_ids))
        if not runs:
            return
        with self._lock:
            for name in self._names():
                thread = self._thread(name)
                self._erase(thread, thread.of_runs(runs))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        """Erases the checkpoints of threads but for the newest of each namespace, or with `delete` all of them.

        What a newest one's pending state is rebuilt from is kept: its ancestors up to one that has each channel.
        """
        if strategy not in (KEEP_LATEST, DELETE):
            raise InputError(f"{strategy!r:.40} is no strategy; there are {KEEP_LATEST} and {DELETE}")
        for name in map(str, thread_ids):
            if strategy == DELETE:
                self.delete_thread(name)
                continue
            with self._lock:
                thread = self._thread(name)
                kept = {key for namespace in thread.namespaces for key in self._rebuilt_from(thread, namespace)}
                keys = [(namespace, id_) for namespace in thread.namespaces for id_ in thread.ids(namespace)]
                self._erase(thread, [key for key in keys if key not in kept])

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies all checkpoints and writes of a thread to another, which may then go its own way."""
        with self._lock:
            source = self._thread(str(source_thread_id))
            if not source.namespaces:
                raise UnknownError(f"there is no thread {source_thread_id!r:.80} to copy", code="no-session")
            self._thread(str(target_thread_id)).copy(source)

    def _rebuilt_from(self, thread: GraphThread, namespace: str) -> Iterator[Key]:
        """The newest checkpoint, and its ancestors until each channel that has a version has a value too."""
        id_ = thread.newest(namespace)
        missing: set[str] | None = None
        while id_ is not None:
            state = thread.state((namespace, id_))
            if state is None:
                return
            yield namespace, id_
            has = state.inline.keys() | state.pages.keys()
            if missing is None:
                missing = self._delta_channels(state) - has
            missing -= has
            if not missing:
                return
            id_ = state.parent

    def _delta_channels(self, state: CheckpointState) -> set[str]:
        """The channels whose values are rebuilt from what was written since an ancestor's."""
        metadata = self.serde.loads_typed(state.metadata)
        return set(metadata.get("counters_since_delta_snapshot") or ())

    def _erase(self, thread: GraphThread, keys: Sequence[Key]) -> None:
        if keys:
            thread.erase(keys, lambda state: self._texts(thread, state))

    def _texts(self, thread: GraphThread, state: CheckpointState) -> dict[str, bytes]:
        """The texts of a checkpoint's messages, by their ids."""
        return {id_: spoken(message) for id_, message in messages_in(self._values(thread, state)).items()}

    # ---- threads

    def _thread(self, name: str, *, writes: bool = False) -> GraphThread:
        """A thread as it stands now; one that is written to looks for itself, as it writes."""
        thread = self._threads.pop(name, None)
        is_new = thread is None
        if thread is None:
            thread = GraphThread(self._store, self.session_of(name))
        self._threads[name] = thread  # the last of them: the first is the one not asked for longest
        if len(self._threads) > THREADS_MAX:
            del self._threads[next(iter(self._threads))]
        if is_new or not writes:
            thread.refresh()
        return thread

    def _names(self) -> Sequence[str]:
        """The threads of the store."""
        names = [info.session for info in self._store.sessions(agent="langgraph")]
        return [name.removeprefix(self._prefix) for name in names if name.startswith(self._prefix)]

    # ---- the same, awaited

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See `get_tuple`."""
        return await to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (item := await to_thread(next, found, None)) is not None:
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See `put`."""
        return await to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See `put_writes`."""
        await to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See `delete_thread`."""
        await to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """See `delete_for_runs`."""
        await to_thread(self.delete_for_runs, run_ids)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = KEEP_LATEST) -> None:
        """See `prune`."""
        await to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `copy_thread`."""
        await to_thread(self.copy_thread, source_thread_id, target_thread_id)
