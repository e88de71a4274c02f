"""LangGraph: a checkpointer (`BaseCheckpointSaver`) that keeps the states of threads in ALMA."""

from __future__ import annotations

import asyncio
import base64
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from alma.core import checked_memory
from alma.errors import MissingDependencyError, ValidationError
from alma.integration.documents import readable, under
from alma.integration.transcripts import Item, Transcript, digest, session_key
from alma.model.fields import JsonObject
from alma.model.governance import Attribution
from alma.model.query import And, At, Compare, In, Or
from alma.model.scope import Scope
from alma.model.workspace import AgentState, Session
from alma.redaction.redactor import Redactor
from alma.storage.base import StorageBackend, Transaction

try:
    import ormsgpack
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import (
        WRITES_IDX_MAP,
        BaseCheckpointSaver,
        ChannelVersions,
        Checkpoint,
        CheckpointMetadata,
        CheckpointTuple,
        get_checkpoint_id,
        get_checkpoint_metadata,
        writes_sort_key,
    )
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from alma.integration.langchain_messages import item_of, messages_in
except ModuleNotFoundError as exc:
    raise MissingDependencyError("langgraph-checkpoint", "langgraph") from exc

if TYPE_CHECKING:
    from alma.core import ALMA

__all__ = ["ALMASaver"]

_FRAMEWORK = "langgraph"
_LONGEST_KEY = 100
# LangGraph's codes of values in msgpack: an array of numbers, and the snapshot of a channel.
_NUMPY, _SNAPSHOT = 6, 7
Packed = list[str]
"""A value as LangGraph serializes it: the format, and the bytes in base64."""

Rows = dict[str, list[str]]
"""The names of the states of a session, by checkpoint: its own, and those of the writes after it."""

Choice = Callable[[Transaction, str, Rows], Iterable[str]]


class ALMASaver(BaseCheckpointSaver[str]):
    """A checkpointer of LangGraph: `graph.compile(checkpointer=ALMASaver(memory))`.

    Each thread is a session of the project. What nodes write to channels is searched like other memories, messages by
    meaning; secrets are masked, in the states as well. Deleting a thread deletes its states; what was said in it can be
    restored until a purge.
    """

    def __init__(
        self,
        alma: ALMA,
        *,
        serde: SerializerProtocol | None = None,
        user_id: str | None = None,
        agent: str | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._alma = checked_memory("checkpointer", alma)
        self._storage = alma.storage
        self._user_id, self._agent = user_id, agent
        self._by = Attribution(user_id=user_id, agent=agent)

    # ------------------------------------------------------------------ reading

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that the configuration names, or the latest one of its thread."""
        session = self._transcript(*_names(config)).session_id
        with self._storage.snapshot() as tx:
            rows = _rows(tx, session)
            wanted = get_checkpoint_id(config) or max(rows, default="")
            return self._tuple(tx, session, wanted, rows.get(wanted, []))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """The checkpoints of a thread, or of all threads, latest first."""
        wanted = get_checkpoint_id(config) if config else None
        until = get_checkpoint_id(before) if before else None
        with self._storage.snapshot() as tx:
            known = {each.id: _rows(tx, each.id) for each in self._sessions(tx, _asked(config))}
        places = [(checkpoint, session) for session, rows in known.items() for checkpoint in rows]
        left = len(places) if limit is None else limit
        for checkpoint, session in sorted(places, reverse=True):
            if (wanted and checkpoint != wanted) or (until and checkpoint >= until):
                continue
            if left <= 0:
                return
            found = self._tuple(self._storage, session, checkpoint, known[session][checkpoint])
            if found is not None and all(under(found.metadata, key) == value for key, value in (filter or {}).items()):
                left -= 1
                yield found

    # ------------------------------------------------------------------ writing

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; returns the configuration that names it."""
        thread, space = _names(config)
        transcript = self._transcript(thread, space)
        about, parent = get_checkpoint_metadata(config, metadata), get_checkpoint_id(config)
        given, redactor = checkpoint["channel_values"], transcript.redactor
        # LangGraph changes some of the objects while they are stored, so only what is new in them is read.
        values = {name: self._packed(given[name], redactor, name) for name in new_versions if name in given}
        values = self._unchanged(transcript.session_id, parent, checkpoint) | values
        values |= {name: self._packed(given[name], redactor, name) for name in given if name not in values}
        data: JsonObject = {
            "thread_id": thread,
            "checkpoint_ns": space,
            "parent": parent,
            "run_id": about.get("run_id"),
            "checkpoint": self._packed({**checkpoint, "channel_values": {}}),
            "values": values,
            "metadata": self._packed(about, transcript.redactor),
        }
        row = _state(transcript.session_id, _key(checkpoint["id"]), data)
        transcript.add([], also=lambda tx: tx.save(row))
        return _config(thread, space, checkpoint["id"])

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task wrote after a checkpoint; what it wrote there before stays."""
        transcript = self._transcript(*_names(config))
        key = _key(config["configurable"]["checkpoint_id"], task_id)
        packed: Sequence[Any] = [
            [WRITES_IDX_MAP.get(channel, place), channel, self._packed(value, transcript.redactor)]
            for place, (channel, value) in enumerate(writes)
        ]

        def put(tx: Transaction) -> None:
            data = {"task_id": task_id, "task_path": task_path, "writes": packed}
            row = _state(transcript.session_id, key, data)
            for known in tx.lock(AgentState, [row.id], Scope(session_id=row.session_id)):
                kept = {write[0]: write for write in known.state_data["writes"]}
                merged = kept | {write[0]: write for write in packed if write[0] < 0 or write[0] not in kept}
                row = row.replace(state_data={**data, "writes": [*merged.values()]})
            tx.save(row)

        said = [item for place, write in enumerate(writes) for item in _items(*write, f"{key}/{place}")]
        transcript.add(said, also=put)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints and writes of a thread, and hide what was said in it."""
        thread = {"thread_id": str(thread_id)}
        self._delete(thread, lambda _, __, rows: rows)
        for session in self._sessions(self._storage, thread):
            self._transcript(session.metadata["thread_id"], session.metadata["checkpoint_ns"] or "").clear()

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints of these runs, with the writes after them."""
        of_runs = Or(*(At("state_data", "run_id", run) for run in run_ids))

        def chosen(tx: Transaction, session: str, _: Rows) -> Iterable[str]:
            found = tx.values(AgentState, ("agent_id",), Scope(session_id=session), of_runs)
            return [_checkpoint_in(name) for (name,) in found]

        if run_ids:
            self._delete({}, chosen)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy the checkpoints and writes of a thread to another one; what was said stays with the first."""
        for session in self._sessions(self._storage, {"thread_id": str(source_thread_id)}):
            target = self._transcript(str(target_thread_id), session.metadata["checkpoint_ns"] or "")
            states = self._storage.find(AgentState, Scope(session_id=session.id))
            moved = {"thread_id": str(target_thread_id)}
            rows = [
                _state(
                    target.session_id, each.agent_id, each.state_data | (moved if "values" in each.state_data else {})
                )
                for each in states
            ]
            target.add([], also=lambda tx, rows=rows: tx.save(*rows))  # type: ignore[misc]

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of these threads but the latest ones, or with the strategy "delete" all.

        Older ones that the latest one needs to rebuild a `DeltaChannel` stay.
        """
        if strategy not in ("keep_latest", "delete"):
            raise ValidationError("checkpointer", "strategy", strategy, 'must be "keep_latest" or "delete"')

        def superseded(tx: Transaction, session: str, rows: Rows) -> Iterable[str]:
            needed = {each.checkpoint["id"] for each in self._needed(tx, session, rows)}
            return [checkpoint for checkpoint in rows if checkpoint not in needed]

        for thread_id in thread_ids:
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                self._delete({"thread_id": str(thread_id)}, superseded)

    def get_next_version(self, current: str | None, channel: None) -> str:
        """The next version of a channel, which is greater than the last one."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:032}.{random.random():016}"

    # ------------------------------------------------------------------ the same without blocking the event loop

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        for each in await asyncio.to_thread(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(lambda: self.prune(thread_ids, strategy=strategy))

    # ------------------------------------------------------------------ internals

    def _transcript(self, thread: str, space: str) -> Transcript:
        names = {"thread_id": thread, "checkpoint_ns": space or None}
        above = session_key(_FRAMEWORK, self._alma.project_id, (thread,)) if space else None
        return Transcript(self._alma, _FRAMEWORK, names, user_id=self._user_id, agent=self._agent, parent=above)

    def _sessions(self, source: StorageBackend | Transaction, names: Mapping[str, str | None]) -> Sequence[Session]:
        named = (At("metadata", name, value) for name, value in names.items())
        return source.find(Session, self._alma.scope(), And(Compare("session_type", "eq", _FRAMEWORK), *named))

    def _tuple(
        self, source: StorageBackend | Transaction, session: str, checkpoint: str, names: Sequence[str]
    ) -> CheckpointTuple | None:
        found = source.find(AgentState, Scope(session_id=session), In("agent_id", names)) if names else []
        states = {each.agent_id: each.state_data for each in found}
        data = states.pop(_key(checkpoint), None)
        if data is None:
            return None
        thread, space, parent = data["thread_id"], data["checkpoint_ns"], data["parent"]
        stored: Checkpoint = self._unpacked(data["checkpoint"])
        stored["channel_values"] = {name: self._unpacked(value) for name, value in data["values"].items()}
        return CheckpointTuple(
            config=_config(thread, space, checkpoint),
            checkpoint=stored,
            metadata=self._unpacked(data["metadata"]),
            parent_config=_config(thread, space, parent) if parent else None,
            pending_writes=[
                (task, channel, self._unpacked(value)) for task, channel, value in _in_order(states.values())
            ],
        )

    def _unchanged(self, session: str, parent: str | None, checkpoint: Checkpoint) -> dict[str, Packed]:
        """The values of the parent, as they were stored, whose channels have the same versions in a checkpoint."""
        found = parent and self._storage.get(AgentState, _state_id(session, _key(parent)), Scope(session_id=session))
        if not found:
            return {}
        before = self._unpacked(found.state_data["checkpoint"])["channel_versions"]
        same = {name for name, version in checkpoint["channel_versions"].items() if before.get(name) == version}
        values = found.state_data["values"].items()
        return {name: value for name, value in values if name in same and name in checkpoint["channel_values"]}

    def _needed(self, tx: Transaction, session: str, rows: Rows) -> Iterator[CheckpointTuple]:
        """The latest checkpoint, and the older ones down to those with a value of each channel that has none in it."""
        left = {**rows}
        checkpoint: str | None = max(rows, default=None)
        sought: set[str] | None = None
        while checkpoint in left and sought != set():
            found = self._tuple(tx, session, checkpoint, left.pop(checkpoint))
            if found is None:
                return
            yield found
            if sought is None:
                sought = {*found.metadata.get("counters_since_delta_snapshot", {})}
            sought -= {*found.checkpoint["channel_values"]}
            checkpoint = get_checkpoint_id(found.parent_config) if found.parent_config else None

    def _delete(self, names: Mapping[str, str | None], choice: Choice) -> None:
        """Delete checkpoints of sessions with the writes after them."""
        for session in self._sessions(self._storage, names):

            def delete(tx: Transaction, session: str = session.id) -> None:
                tx.hold(session)
                rows = _rows(tx, session)
                gone = [name for checkpoint in {*choice(tx, session, rows)} for name in rows.get(checkpoint, ())]
                tx.delete(AgentState, [_state_id(session, name) for name in gone], Scope(session_id=session))

            self._storage.write(delete, self._by)

    def _packed(self, value: Any, redactor: Redactor | None = None, name: str = "") -> Packed:
        kind, data = self.serde.dumps_typed(value)
        if redactor is not None and kind == "msgpack":
            data = _pack(_masked(_unpack(data, redactor), redactor, name))
        return [kind, base64.b64encode(data).decode()]

    def _unpacked(self, packed: Packed) -> Any:
        kind, data = packed
        return self.serde.loads_typed((kind, base64.b64decode(data)))


# ---------------------------------------------------------------------- names


def _names(config: RunnableConfig) -> tuple[str, str]:
    named = config.get("configurable") or {}
    if named.get("thread_id") is None:
        raise ValidationError("checkpointer", "config", config, 'needs {"configurable": {"thread_id": "…"}}')
    return str(named["thread_id"]), named.get("checkpoint_ns") or ""


def _asked(config: RunnableConfig | None) -> dict[str, str | None]:
    """The metadata of the sessions that a configuration asks for."""
    if config is None:
        return {}
    thread, space = _names(config)
    of_space = {"checkpoint_ns": space or None} if config["configurable"].get("checkpoint_ns") is not None else {}
    return {"thread_id": thread, **of_space}


def _config(thread: str, space: str, checkpoint: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": space, "checkpoint_id": checkpoint}}


def _key(checkpoint: str, task: str | None = None) -> str:
    """The name of the state of a checkpoint, or of the writes of a task after it."""
    parts = (checkpoint,) if task is None else (checkpoint, task if len(task) <= _LONGEST_KEY else digest(task))
    return "/".join(quote(part, safe=" @:") for part in parts)


def _checkpoint_in(name: str) -> str:
    return unquote(name.partition("/")[0])


def _state_id(session: str, name: str) -> str:
    return digest(f"{session}\n{name}")


def _state(session: str, name: str, data: JsonObject) -> AgentState:
    return AgentState(id=_state_id(session, name), agent_id=name, session_id=session, state_data=data)


def _rows(source: StorageBackend | Transaction, session: str) -> Rows:
    rows: defaultdict[str, list[str]] = defaultdict(list)
    for (name,) in source.values(AgentState, ("agent_id",), Scope(session_id=session)):
        rows[_checkpoint_in(name)].append(name)
    return rows


def _in_order(tasks: Iterable[JsonObject]) -> Iterator[tuple[str, str, Packed]]:
    """The writes after a checkpoint in the order in which LangGraph applies them: task, channel and value."""
    writes = [
        (writes_sort_key(each["task_path"], each["task_id"], place), channel, value)
        for each in tasks
        for place, channel, value in each["writes"]
    ]
    for (_, task, _), channel, value in sorted(writes, key=lambda write: write[0]):
        yield task, channel, value


# ---------------------------------------------------------------------- secrets in msgpack


def _pack(value: Any) -> bytes:
    return ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)


def _unpack(data: bytes, redactor: Redactor) -> Any:
    """The value, with the objects in it as they were packed, but without secrets."""

    def masked_object(code: int, inner: bytes) -> ormsgpack.Ext:
        if code == _NUMPY:
            return ormsgpack.Ext(code, inner)
        value = _unpack(inner, redactor)
        if code == _SNAPSHOT:
            value = _masked(value, redactor)
        elif isinstance(value, list) and len(value) > 2 and isinstance(value[2], dict | list):
            # Module, class and what the object is made of; a bare text there is an id, a number or a time.
            value[2] = _masked(value[2], redactor)
        return ormsgpack.Ext(code, _pack(value))

    return ormsgpack.unpackb(data, ext_hook=masked_object, option=ormsgpack.OPT_NON_STR_KEYS)


def _masked(value: Any, redactor: Redactor, name: str = "") -> Any:
    if isinstance(value, str):
        return redactor.redact(value, name).text
    if isinstance(value, dict):
        return {key: _masked(each, redactor, key if isinstance(key, str) else name) for key, each in value.items()}
    if isinstance(value, list):
        return [_masked(each, redactor, name) for each in value]
    return value


# ---------------------------------------------------------------------- what was said


def _items(channel: str, value: Any, key: str) -> Iterator[Item]:
    """The text of a write: its messages, and other values under the name of their channel."""
    if channel.startswith("__") or ":" in channel:
        return
    messages = [*messages_in(value)]
    for place, message in enumerate(messages):
        yield item_of(message, digest(f"{key}/{place}"))
    text = "" if messages or not isinstance(value, str | dict | list | tuple) else readable(value)
    if text:
        yield Item({channel: text}, channel, text, said=False, external_id=digest(key))
