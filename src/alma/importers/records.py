"""Parse values as other systems write them, and build records from them."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Any

from alma.errors import ValidationError
from alma.importers.base import Found, Importer, ImportOptions, Item, RowRefused
from alma.memory.relationships import relationship_id
from alma.model.fields import JsonObject
from alma.model.memory import Memory, MemoryRelationship
from alma.model.record import Record
from alma.model.relations import stored_ends
from alma.model.vector import Vector
from alma.model.workspace import Session

_MILLISECONDS_FROM = 1e11
_MICROSECONDS_FROM = 1e14
_TEXTS = ("text", "content", "message", "utterance", "transcript", "memory", "data", "value", "fact", "description")
_TIMES = ("timestamp", "created_at", "time", "ts", "date", "datetime", "at")
_SPEAKERS = ("role", "speaker", "sender", "author", "from", "source", "agent")
_IDS = ("id", "message_id", "turn_id", "entry_id", "interaction_id")
_FORMATS = ("%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%a, %d %b %Y %H:%M:%S %z")


def moment(name: str, value: Any, zone: tzinfo) -> datetime | None:
    """The time of a text or number; naive times are in the given zone."""
    if value is None or value == "":
        return None
    try:
        found = _instant(value)
        return (found if found.tzinfo is not None else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError, OSError, TypeError):
        raise RowRefused(f"{name} is not a time: {_short(value)}") from None


def _instant(value: Any) -> datetime:
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, datetime):
        return value
    if isinstance(value, int | float):
        return _since_epoch(value)
    text = str(value).strip()
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return _written(text)


def _written(text: str) -> datetime:
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form)  # noqa: DTZ007 - the caller knows the zone
        except ValueError:
            continue
    return _since_epoch(float(text))


def _since_epoch(number: float) -> datetime:
    """Seconds, milliseconds or microseconds since 1970, distinguished by their size."""
    if abs(number) >= _MICROSECONDS_FROM:
        number /= 1e6
    elif abs(number) >= _MILLISECONDS_FROM:
        number /= 1e3
    return datetime.fromtimestamp(number, UTC)


def first(data: Mapping[str, Any], names: Sequence[str]) -> Any:
    """The first of these fields with a value."""
    return next((data[name] for name in names if data.get(name) not in (None, "")), None)


def time_of(data: Mapping[str, Any], zone: tzinfo) -> datetime | None:
    """The time of a list entry, if it has one."""
    name = next((name for name in _TIMES if data.get(name) not in (None, "")), None)
    return None if name is None else moment(name, data[name], zone)


def speaker_of(data: Mapping[str, Any]) -> str:
    """The speaker of a conversation entry, if it has one."""
    said = first(data, _SPEAKERS)
    if isinstance(said, Mapping):
        said = first(said, ("name", "role", "id"))
    return "" if said is None else str(said)


def text_of(value: Any) -> str:
    """A value as text: a text, the text inside an object, or the object as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        inner = first(value, _TEXTS)
        if inner is not None:
            return text_of(inner)
    if isinstance(value, list) and value and all(isinstance(each, str | Mapping) for each in value):
        return "\n".join(text for each in value if (text := text_of(each)).strip())
    if value is None or value in ({}, [], ""):
        return ""
    if isinstance(value, Mapping):
        # Skip empty values.
        value = {name: each for name, each in value.items() if each is not None and each not in ("", [], {})}
        if all(isinstance(each, str | int | float) for each in value.values()):
            return "; ".join(f"{name}: {each}" for name, each in value.items())
    return json.dumps(value, ensure_ascii=False)


def turn_text(turn: Any) -> str:
    """The text of a conversation turn, without speaker, time and id."""
    if not isinstance(turn, Mapping) or first(turn, _TEXTS) is not None:
        return text_of(turn)
    return text_of({name: value for name, value in turn.items() if name not in (*_SPEAKERS, *_TIMES, *_IDS)})


def structured(name: str, value: Any) -> Any:
    """A value that may be JSON text, as in a database column."""
    if isinstance(value, bytes | bytearray):
        try:
            value = bytes(value).decode()
        except UnicodeDecodeError:
            raise RowRefused(f"{name} is neither text nor JSON") from None
    if not isinstance(value, str):
        return value
    text = value.strip()
    if text[:1] not in ("{", "["):
        return None if not text or text == "null" else value
    try:
        return json.loads(text)
    except ValueError as exc:
        raise RowRefused(f"{name} is malformed JSON: {exc}") from None


def json_object(name: str, value: Any) -> JsonObject | None:
    """A JSON object; other values are wrapped in one."""
    found = structured(name, value)
    if found is None:
        return None
    if isinstance(found, Mapping):
        return dict(found)
    return (
        {"text": found} if isinstance(found, str) else {"items": found} if isinstance(found, list) else {"value": found}
    )


def entries(name: str, value: Any) -> list[tuple[str | None, Any]]:
    """The entries of a list, or of an object with their keys."""
    found = structured(name, value)
    if found is None:
        return []
    if isinstance(found, Mapping):
        return [(str(key), each) for key, each in found.items()]
    if isinstance(found, list):
        return [(None, each) for each in found]
    raise RowRefused(f"{name} must be a list, not {_short(found)}")


def tags(value: Any) -> tuple[str, ...]:
    """Tags from a list, JSON or comma-separated text."""
    found = structured("tags", value)
    if found is None:
        return ()
    if isinstance(found, str):
        found = found.split(",")
    if not isinstance(found, list):
        raise RowRefused(f"tags must be a list of texts, not {_short(found)}")
    if not all(isinstance(tag, str | int | float) for tag in found):
        raise RowRefused("tags must be a list of texts")
    return tuple(dict.fromkeys(text for tag in found if (text := str(tag).strip())))


def vector(value: Any) -> Vector | None:
    """An embedding from a list, JSON, or the bytes of 32-bit floats."""
    if value is None or (isinstance(value, str | bytes) and not value):
        return None
    if isinstance(value, bytes | bytearray) and value[:1] != b"[":
        if len(value) % 4:
            raise RowRefused(f"embedding has {len(value)} bytes, which are not 32-bit floats")
        value = array("f", bytes(value)).tolist()
    found = structured("embedding", value)
    if not isinstance(found, list):
        raise RowRefused(f"embedding must be a list of numbers, not {_short(found)}")
    if any(isinstance(each, bool) for each in found):
        raise RowRefused("embedding must be a list of numbers")
    try:
        return Vector(found)
    except ValidationError as exc:
        raise RowRefused(f"embedding {exc.reason}") from None


def named(name: str, value: Any) -> str:
    """A required id."""
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise RowRefused(f"{name} is missing" if value in (None, "") else f"{name} is not an id: {_short(value)}")
    return str(value)


def maybe_named(name: str, value: Any) -> str | None:
    """An optional id."""
    return None if value is None or value == "" else named(name, value)


def mapping(value: Any) -> dict[str, Any]:
    """The row as an object, or an error."""
    if not isinstance(value, Mapping):
        raise RowRefused(f"it is not an object: {_short(value)}")
    return {str(key): each for key, each in value.items()}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


IMPORT = "import"
"""The context key of a record's origin."""

SOURCE = "import"
"""The provenance of imported memories."""


def owner_fields(options: ImportOptions, **fields: Any) -> dict[str, Any]:
    """The fields for owner and layers: visible in the project, or wherever its user is."""
    user = fields.pop("user_id", None) or options.user_id
    agent = fields.pop("source_agent", None) or options.agent
    project = fields.pop("project_id", None) or options.project_id
    return {
        **fields,
        "user_id": user,
        "project_id": project,
        "source_agent": agent,
        "layer_session": fields.get("session_id") is not None,
        "layer_project": project is not None,
        "layer_global": project is None and user is not None,
    }


def build_memory(
    options: ImportOptions, *, system: str, speaker: str = "", said_at: datetime | None = None, **fields: Any
) -> Memory:
    """A memory with the source's times; `said_at` makes it a conversation turn."""
    if not str(fields.get("content", "")).strip():
        raise RowRefused("it has no text")
    fields = {name: value for name, value in fields.items() if value is not None}
    created = fields.pop("created_at", None) or said_at
    if created is not None:
        fields = {"updated_at": created, "last_accessed_at": created, **fields, "created_at": created}
    known = owner_fields(options, **fields)
    known = {"source_tool": system, "provenance": SOURCE, **known}
    if options.decay_rate is not None:
        known.setdefault("decay_rate", options.decay_rate)
    if speaker or said_at is not None:
        return Memory.said(speaker, known.pop("content"), said_at, **known)
    return Memory(**known)


def time_fields(created: datetime | None, changed: datetime | None = None, *, active: bool = False) -> dict[str, Any]:
    """The fields for creation and change times, if the source has them."""
    if created is None:
        return {}
    last = changed or created
    return {"created_at": created, "updated_at": last, **({"last_active_at": last} if active else {})}


def mentioned_session(session_id: str, options: ImportOptions, system: str, created: datetime | None) -> Item:
    """A session that a row only names."""
    session = Session(
        id=session_id,
        user_id=options.user_id,
        project_id=options.project_id,
        context_json={IMPORT: {"system": system, "mentioned": True}},
        **time_fields(created, active=True),
    )
    return Item(session, mention=True)


def is_mention(record: Record) -> bool:
    """Whether a record was only mentioned by some row."""
    context = record.values().get("context_json") or record.values().get("profile_json")
    known = context.get(IMPORT) if isinstance(context, dict) else None
    return isinstance(known, dict) and bool(known.get("mentioned"))


_LONGEST = 64


def entity_memory(
    importer: Importer, name: str, options: ImportOptions, kind: str | None = None, observations: Sequence[str] = ()
) -> Item:
    """A memory of an entity with its observations; an entity that is only named gives way to one with data."""
    if not name.strip():
        raise RowRefused("the entity has no name")
    mentioned = kind is None and not observations
    content: dict[str, Any] = {"name": name, "entityType": kind, "observations": list(observations)}
    memory = build_memory(
        options,
        system=importer.name,
        id=entity_id(importer, name),
        external_id=name[:200],
        title=name,
        memory_type="entity",
        category=kind[:200] if kind else None,
        content="\n".join(text for text in observations if text.strip()) or name,
        content_json=content,
        context_json={IMPORT: {"system": importer.name, **({"mentioned": True} if mentioned else {})}},
    )
    return Item(memory, mention=mentioned)


def entity_id(importer: Importer, name: str) -> str:
    """The id of the memory of an entity."""
    return importer.derived_id("entity", name)


def relation_item(importer: Importer, source: str, relation: str, target: str) -> Item:
    """A relationship between two entities."""
    if source == target:
        raise RowRefused(f"it relates {source!r} to itself")
    names = {entity_id(importer, name): name for name in (source, target)}
    ends = stored_ends(_spelled(relation), *names)
    return Item(
        MemoryRelationship(
            id=relationship_id(ends),
            from_memory_id=ends.from_id,
            to_memory_id=ends.to_id,
            relationship_type=ends.relation,
            metadata={
                "system": importer.name,
                "from": names[ends.from_id],
                "to": names[ends.to_id],
                "relation": relation,
            },
        )
    )


def _spelled(relation: str) -> str:
    """A relation name as used in ALMA: words joined by underscores."""
    name = re.sub(r"\W+", "_", relation.lower()).strip("_")[:_LONGEST]
    if not name:
        raise RowRefused("the relation has no type")
    return name if name[0].isalpha() else f"is_{name}"[:_LONGEST]


def entity_items(
    importer: Importer, source: str, relation: str, target: str, options: ImportOptions
) -> Iterator[Found]:
    """A relation with its two entities, which have no other description."""
    yield entity_memory(importer, source, options)
    yield entity_memory(importer, target, options)
    yield relation_item(importer, source, relation, target)
