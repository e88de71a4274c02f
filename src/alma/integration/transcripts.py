"""Transcripts: the items of a framework's conversation, in order, as memories of a session.

An item is kept whole in `content_json` and given back as it was, except that secrets are masked. What it says is the
text of the memory, by which ALMA's own search finds it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from alma import clock
from alma.core import checked_memory
from alma.integration.signals import TaskSignals, Told
from alma.memory.sessions import created
from alma.model.common import LONGEST_TEXT, checked_name
from alma.model.fields import LONGEST_NAME, JsonObject, Refused, canonical_json
from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.query import And, Compare, In, Order, Predicate
from alma.model.scope import Scope
from alma.model.workspace import Session
from alma.redaction.redactor import OpaqueValues, Redactor, redact_json
from alma.retrieval.writing import Embedded
from alma.storage.base import Transaction

if TYPE_CHECKING:
    from alma.core import ALMA

CONVERSATION = "conversation"
# fmt: off
OPAQUE_KEYS = frozenset((
    "id", "uuid", "parentUuid", "leafUuid", "logicalParentUuid", "sessionId", "session_id", "requestId", "messageId",
    "parent_id", "item_id", "call_id", "tool_call_id", "tool_use_id", "toolUseID", "parentToolUseID", "response_id",
    "previous_response_id", "encrypted_content", "signature", "thoughtSignature", "thinkingSignature",
    "system_fingerprint",
))
# fmt: on
"""Keys of ids and signatures in the items of the frameworks, which must be given back unchanged."""

ITEM, AS_TEXT = "item", "json"
_UNTRUSTED_CHARACTERS = 2_000
_PEOPLE = ("user", "human")
_LONGEST_ID = 1_000
_EVERYWHERE = Scope.everywhere()
_OLDEST_FIRST, _LATEST_FIRST = (Order("id"),), (Order("id", "desc"),)


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a conversation: its JSON, who speaks and what is said; `external_id` makes it unique.

    What people and models say is searched by meaning, and the rest by its words only. `trusted` is False for the output
    of tools, of which `succeeded` is what the framework reports, if it does.
    """

    payload: JsonObject
    speaker: str = ""
    text: str = ""
    said: bool = True
    trusted: bool = True
    external_id: str | None = None
    succeeded: bool | None = None

    @property
    def told(self) -> Told:
        """What it tells about a task."""
        return Told(self.text if self.speaker in _PEOPLE and self.trusted else "", self.succeeded)


class Transcript:
    """The items of one conversation, in the order in which they were added.

    `names` identify the conversation inside of the framework and the project, in every process; they are the metadata
    of its session, whose parent is the session `parent` where that exists. The output of a tool is searched by its
    first 2,000 characters, and not at all where it looks like a prompt injection.
    """

    def __init__(
        self,
        alma: ALMA,
        framework: str,
        names: Mapping[str, str | None],
        *,
        user_id: str | None = None,
        agent: str | None = None,
        parent: str | None = None,
    ) -> None:
        self._alma = checked_memory(framework, alma)
        self._storage = alma.storage
        self.redactor = None if alma.redactor is None else OpaqueValues(alma.redactor, {*OPAQUE_KEYS, AS_TEXT})
        self._ingest = alma.ingest.keeping_each(self.redactor)
        self._framework = framework
        given = {name: value for name, value in names.items() if value is not None}
        self._names = {name: checked_name(framework, name, value, _LONGEST_ID) for name, value in given.items()}
        self._metadata = dict(names)
        self._parent = parent
        self._by = Attribution(user_id=user_id, agent=agent)
        self._signals = TaskSignals(alma, agent)
        self.session_id = session_key(framework, alma.project_id, self._names.values())
        self._scope = Scope(project_id=alma.project_id, session_id=self.session_id)

    # ------------------------------------------------------------------ reading

    def items(self, limit: int | None = None) -> list[JsonObject]:
        """The items in order, or the last ones."""
        order = _OLDEST_FIRST if limit is None else _LATEST_FIRST
        found = self._storage.find(Memory, self._scope, self._kept(), order, limit)
        return [_payload(memory) for memory in (found if limit is None else reversed(found))]

    # ------------------------------------------------------------------ writing

    def add(
        self,
        items: Sequence[Item],
        changed: Callable[[Session], Session] | None = None,
        also: Callable[[Transaction], None] | None = None,
    ) -> None:
        """Add items at the end; those whose `external_id` is in the conversation are passed over.

        `changed` changes the session in the same transaction, and `also` writes what else belongs to it. Where the
        benefit of memories is measured for the agent, what tools and users say about its tasks are signals.
        """
        ready = self._ingest.ready([self._memory(item) for item in items], embed=_is_conversation)

        def add(tx: Transaction) -> list[Item]:
            self._enter(tx, changed)
            known = self._known(tx, [memory for memory, _ in ready])
            place, added = self._last_place(tx), []
            for item, (memory, passages) in zip(items, ready, strict=True):
                if memory.external_id is None or memory.external_id not in known:
                    place += 1
                    known.add(memory.external_id)
                    Embedded(memory.replace(id=self._id(place)), passages).save(tx)
                    added.append(item)
            if also is not None:
                also(tx)
            return added

        if items or also is not None:
            task = self._last_prompt() if self._signals.are_used else ""
            added = self._storage.write(add, self._by)
            self._signals.observe([each.told for each in added], task)

    def pop(self) -> JsonObject | None:
        """Take the last item out of the conversation; it can be restored until it is purged."""

        def pop(tx: Transaction) -> JsonObject | None:
            self._hold(tx)
            last = tx.find(Memory, self._scope, self._kept(), _LATEST_FIRST, 1)
            self._remove(tx, last)
            return _payload(last[0]) if last else None

        return self._storage.write(pop, self._by)

    def clear(self) -> None:
        """Take all items out of the conversation and archive its session; both can be restored until a purge."""

        def clear(tx: Transaction) -> None:
            self._hold(tx)
            self._remove(tx, tx.find(Memory, self._scope, self._kept()))
            ended = {"is_active": False, "is_archived": True, "ended_at": clock.now()}
            tx.update(Session, self.session_id, ended, self._own)

        self._storage.write(clear, self._by)

    # ------------------------------------------------------------------ internals

    def _last_prompt(self) -> str:
        where = And(self._kept(), In("title", _PEOPLE), Compare("memory_type", "eq", CONVERSATION))
        last = self._storage.find(Memory, self._scope, where, _LATEST_FIRST, 1)
        return last[0].content if last else ""

    @property
    def _own(self) -> Scope:
        return Scope(project_id=self._alma.project_id)

    def _kept(self) -> Predicate:
        return And(Compare("is_active", "eq", True), Compare("source_tool", "eq", self._framework))

    def _id(self, place: int) -> str:
        return f"{digest(self.session_id)}-{place:09d}"

    def _hold(self, tx: Transaction) -> None:
        """Lock the conversation, so that two writers do not take the same place."""
        tx.hold(self.session_id)

    def _enter(self, tx: Transaction, changed: Callable[[Session], Session] | None) -> None:
        """Lock the conversation, and record activity in its session, which is created or opened again."""
        self._hold(tx)
        held = tx.lock(Session, [self.session_id], self._own)
        session = held[0] if held else created(tx, self._session(tx))
        if changed is not None:
            session = self._ingest.clean(changed(session))[0]
        moment = clock.now()
        opened = session.replace(
            is_active=True, is_archived=False, ended_at=None, last_active_at=moment, updated_at=moment
        )
        tx.save(opened)

    def _session(self, tx: Transaction) -> Session:
        known = self._parent is not None and tx.get(Session, self._parent, self._own) is not None
        return Session(
            id=self.session_id,
            user_id=self._by.user_id,
            project_id=self._alma.project_id,
            agent=self._by.agent,
            name=[*self._names.values()][-1],
            session_type=self._framework,
            parent_session_id=self._parent if known else None,
            metadata=self._metadata,
        )

    def _last_place(self, tx: Transaction) -> int:
        last = tx.values(Memory, ("id",), self._scope, Compare("source_tool", "eq", self._framework), _LATEST_FIRST, 1)
        return int(last[0][0].rpartition("-")[2]) if last else 0

    def _known(self, tx: Transaction, records: Iterable[Memory]) -> set[str | None]:
        wanted = [record.external_id for record in records if record.external_id is not None]
        where = And(self._kept(), In("external_id", wanted))
        return {each for (each,) in tx.values(Memory, ("external_id",), self._scope, where)} if wanted else set()

    def _remove(self, tx: Transaction, memories: Sequence[Memory]) -> None:
        moment = clock.now()
        with tx.audited_as("delete"):
            tx.save(*(memory.replace(is_active=False, updated_at=moment) for memory in memories))

    def _memory(self, item: Item) -> Memory:
        text = self._searched(item)
        return Memory(
            user_id=self._by.user_id,
            project_id=self._alma.project_id,
            session_id=self.session_id,
            source_agent=self._by.agent,
            source_tool=self._framework,
            provenance=_provenance(item),
            external_id=item.external_id,
            memory_type=CONVERSATION if item.said and text else "interaction",
            title=item.speaker[:LONGEST_NAME],
            content=text or f"({item.speaker or self._framework})",
            content_json=stored(item.payload, self.redactor),
            layer_project=True,
        )

    def _searched(self, item: Item) -> str:
        """The searched text of an item."""
        text = plain(item.text)
        if item.trusted or not text:
            return text
        text = text[:_UNTRUSTED_CHARACTERS]
        doubt = Memory(project_id=self._alma.project_id, content=text)
        return "" if self._ingest.injection_reason(doubt, "tool") else text


def _provenance(item: Item) -> str:
    if not item.trusted:
        return "tool"
    return "user" if item.speaker in _PEOPLE else "agent"


def session_key(framework: str, project_id: str, names: Iterable[str]) -> str:
    """The id of a conversation's session, the same in every process, and another one for other names."""
    key = "/".join((framework, *(quote(name, safe=" @:") for name in (project_id, *names))))
    return key if len(key) <= LONGEST_NAME else f"{framework}/{digest(key)}"


def said_in(value: Any) -> str:
    """The readable text in a part of a message, whatever framework made it."""
    return "\n".join(_texts(value))


_SAYING = ("message", "data", "content", "text", "refusal", "summary", "output", "result")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key in _SAYING:
            if key in value:
                yield from _texts(value[key])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


def plain(text: str) -> str:
    """A text that every store keeps."""
    return text.replace("\x00", " ").encode("utf-8", "replace").decode()[:LONGEST_TEXT].strip()


def stored(payload: JsonObject, redactor: Redactor | None) -> JsonObject:
    """JSON that every store keeps, as text where needed (NUL characters); ingest masks values that are not text."""
    try:
        return {ITEM: canonical_json(payload, 1)}
    except Refused:
        return {AS_TEXT: json.dumps(payload if redactor is None else redact_json(payload, redactor))}


def restored(kept: JsonObject) -> JsonObject:
    """The JSON that `stored` was given."""
    found: JsonObject = json.loads(kept[AS_TEXT]) if AS_TEXT in kept else kept[ITEM]
    return found


def _payload(memory: Memory) -> JsonObject:
    return restored(memory.content_json or {})


def _is_conversation(memory: Memory) -> bool:
    return memory.memory_type == CONVERSATION


def digest(text: str) -> str:
    """A short id for a text, the same in every process."""
    return blake2b(text.encode(), digest_size=12).hexdigest()
