"""Conversations that people exported from chat services: a session each, and a memory for every turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from alma.errors import ValidationError
from alma.importers.base import Found, Importer, ImportOptions, Item, LeftOut, Rejected, Row, RowRefused
from alma.importers.said import IMPORT, a_memory, times
from alma.importers.values import first, mapping, moment, named
from alma.model.workspace import Session


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that was said: by whom, when, and what else belongs to it."""

    id: str
    speaker: str
    text: str
    said_at: object
    details: Mapping[str, Any]


class ConversationExport(Importer):
    """A session with the conversation's title and times, and its turns in order."""

    file_in_zip = "conversations.json"
    title_fields: tuple[str, ...]
    id_fields: tuple[str, ...]
    created_fields: tuple[str, ...]
    changed_fields: tuple[str, ...]

    @abstractmethod
    def turns(self, data: Mapping[str, Any]) -> Iterator[Turn | LeftOut]:
        """What was said, in order; what nobody said to anybody is left out."""

    def items(self, row: Row, options: ImportOptions, stage: str) -> Iterator[Found]:
        data = mapping(row.data)
        legacy_id = named(self.id_fields[0], first(data, self.id_fields))
        begun = moment(self.created_fields[0], first(data, self.created_fields), options.zone)
        changed = moment(self.changed_fields[0], first(data, self.changed_fields), options.zone)
        session = self._session(legacy_id, data, options, begun, changed)
        yield Item(session, changed_at=changed)
        said = list(self.turns(data))
        yield from (turn for turn in said if isinstance(turn, LeftOut))
        is_dated = (begun or changed) is not None
        yield from self._memories(row, session, [turn for turn in said if isinstance(turn, Turn)], options, is_dated)

    def _session(
        self,
        legacy_id: str,
        data: Mapping[str, Any],
        options: ImportOptions,
        begun: datetime | None,
        changed: datetime | None,
    ) -> Session:
        ended = changed or begun
        return Session(
            id=self.derived_id(legacy_id),
            user_id=options.user_id,
            project_id=options.project_id,
            agent=options.agent,
            name=str(first(data, self.title_fields) or ""),
            summary=data["summary"] if isinstance(data.get("summary"), str) and data["summary"] else None,
            metadata={"external_id": legacy_id},
            context_json={IMPORT: {"system": self.name}},
            ended_at=ended,
            is_active=False,
            **times(begun or changed, ended, active=True),
        )

    def _memories(
        self, row: Row, session: Session, turns: Sequence[Turn], options: ImportOptions, is_dated: bool
    ) -> Iterator[Found]:
        last = session.created_at
        for number, turn in enumerate(turns):
            try:
                said_at = moment("the time of the message", turn.said_at, options.zone)
                # Without a time of its own, a turn follows the one before it.
                last = created = said_at or last + timedelta(microseconds=1)
                # Of a conversation that tells no time at all nobody knows when it was.
                is_dated = is_dated or said_at is not None
                memory = a_memory(
                    options,
                    system=self.name,
                    speaker=turn.speaker,
                    said_at=created if is_dated else None,
                    created_at=created,
                    id=self.derived_id(session.id, turn.id),
                    external_id=turn.id[:200],
                    session_id=session.id,
                    memory_type="conversation",
                    content=turn.text,
                    context_json={"position": number, "conversation": session.name, **turn.details},
                )
                yield Item(memory)
            except (RowRefused, ValidationError) as exc:
                yield Rejected(f"{row.where}, message {number + 1}", turn.id, str(exc))
