"""Records are declared once: annotations define the fields, and the `record` decorator everything else."""

from __future__ import annotations

import dataclasses
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import (
    Any,
    ClassVar,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    get_type_hints,
)

from alma.errors import ValidationError
from alma.model.fields import Check, FieldSpec, FieldType, Refused, derived, field_spec, following


@dataclass(frozen=True)
class Index:
    """A database index; `where` is the condition of a partial index, `columns` may end in DESC. `only` names the one
    dialect that has it, with a method other than the default.
    """

    name: str
    columns: tuple[str, ...]
    where: str | None = None
    only: str | None = None


@dataclass(frozen=True)
class Unique:
    """A unique constraint on fields; with `nulls_equal` a missing value counts as a value."""

    name: str
    fields: tuple[str, ...]
    nulls_equal: bool = False


class OnDelete(Enum):
    """What happens to a record when the record that it references is deleted."""

    CASCADE = "cascade"
    CLEAR = "clear"


@dataclass(frozen=True)
class Reference:
    """A foreign key: a field with the id of another record; `must_exist` rejects an unknown id."""

    field: str
    kind: str
    on_delete: OnDelete
    must_exist: bool = False


@dataclass(frozen=True, eq=False)
class RecordSpec:
    """The specification of a record kind: everything that stores need to know about it."""

    kind: str
    table: str
    postgres_table: str
    fields: tuple[FieldSpec, ...]
    text: tuple[str, ...] = ()
    embeds: bool = False
    embedded: tuple[str, ...] | None = None
    versioned: bool = False
    audited: bool = True
    append_only: bool = False
    indexes: tuple[Index, ...] = ()
    unique: tuple[Unique, ...] = ()
    distinct: tuple[tuple[str, str], ...] = ()
    references: tuple[Reference, ...] = ()
    key: str = "id"
    cls: Any = None

    @cached_property
    def by_name(self) -> Mapping[str, FieldSpec]:
        return types.MappingProxyType({field.name: field for field in self.fields})

    @cached_property
    def derived(self) -> tuple[FieldSpec, ...]:
        """The fields that are computed from others."""
        return tuple(field for field in self.fields if field.derived is not None)

    @cached_property
    def following(self) -> tuple[tuple[str, str], ...]:
        """The time fields that default to another time field, with the name of that field."""
        return tuple((field.name, field.follows) for field in self.fields if field.follows is not None)

    @cached_property
    def primary(self) -> tuple[FieldSpec, ...]:
        """The fields of the record, without derived ones."""
        return tuple(field for field in self.fields if field.derived is None)

    @cached_property
    def stored(self) -> tuple[FieldSpec, ...]:
        """The fields that are columns of the record's own table."""
        apart = (FieldType.VECTOR, FieldType.TAGS)
        return tuple(field for field in self.primary if field.type not in apart)

    @cached_property
    def stored_names(self) -> frozenset[str]:
        return frozenset(field.name for field in self.stored)

    @cached_property
    def key_of(self) -> Callable[[Any], Any]:
        """A fast getter of a record's key."""
        return attrgetter(self.key)

    @cached_property
    def values_of(self) -> Callable[[Any], tuple[Any, ...]]:
        """A fast getter of the primary fields of a record, in order."""
        return reading(self.primary_names)

    @cached_property
    def mutable_fields(self) -> tuple[str, ...]:
        """The fields with mutable values."""
        return tuple(field.name for field in self.fields if field.type is FieldType.JSON)

    @cached_property
    def texts_of(self) -> Callable[[Any], tuple[Any, ...]]:
        """A fast getter of the searchable texts of a record, in order."""
        return reading(self.text)

    @cached_property
    def embedded_texts_of(self) -> Callable[[Any], tuple[Any, ...]]:
        """A fast getter of the texts that are embedded: all of them, unless the kind names fewer."""
        return self.texts_of if self.embedded is None else reading(self.embedded)

    @cached_property
    def primary_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.primary)

    @cached_property
    def setters(self) -> tuple[tuple[str, Callable[[Any, Any], None]], ...]:
        """The slot setters of the primary fields, for new records, which are otherwise immutable."""
        return tuple((field.name, getattr(self.cls, field.name).__set__) for field in self.primary)

    def trusted_batch(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[Record]:
        """`trusted` for several records: the values of each field in all of them, by field name."""
        make, count = self.cls.__new__, len(columns[0])
        made: list[Record] = [make(self.cls) for _ in range(count)]
        put_into = dict(self.setters)
        for name, values in zip(names, columns, strict=True):
            # Consumes both iterators in C, without a Python loop.
            deque(map(put_into[name], made, values), maxlen=0)
        for field in self.derived:
            for record in made:
                object.__setattr__(record, field.name, _derived_value(record, field))
        return made

    @cached_property
    def fillers(self) -> tuple[tuple[str, Callable[[Any, Any], None], bool, Check, Callable[[], Any] | None], ...]:
        """For each primary field its name, its slot setter, and its specification."""
        fields = zip(self.primary, self.setters, strict=True)
        return tuple((field.name, put, field.nullable, field.check, field.make_default) for field, (_, put) in fields)

    @cached_property
    def tags_field(self) -> str | None:
        return next((field.name for field in self.fields if field.type is FieldType.TAGS), None)

    @cached_property
    def vector_field(self) -> str | None:
        return next((field.name for field in self.fields if field.type is FieldType.VECTOR), None)

    @cached_property
    def numbered(self) -> bool:
        """Whether the store assigns ascending numbers as ids."""
        return self.by_name[self.key].type is FieldType.INTEGER

    @cached_property
    def field_names(self) -> frozenset[str]:
        return frozenset(self.by_name)

    def field(self, name: str) -> FieldSpec:
        """The named field, or an error that lists the fields."""
        try:
            return self.by_name[name]
        except KeyError:
            raise ValidationError(
                self.kind, None, name, f"has no such field; it has {', '.join(self.by_name)}"
            ) from None

    def checked(self, name: str, value: Any) -> Any:
        """The validated and normalized value, or an error that names field, value and reason."""
        field = self.field(name)
        if value is None and field.nullable:
            return None
        try:
            return field.check(value)
        except (Refused, ValidationError) as exc:
            reason = exc.reason if isinstance(exc, ValidationError) else str(exc)
            raise ValidationError(self.kind, name, value, reason) from None


class Record:
    """Base class of all records: immutable, validated values."""

    __slots__ = ()
    spec: ClassVar[RecordSpec]

    def __init__(self, **values: Any) -> None:
        spec = self.spec
        if not values.keys() <= spec.field_names:
            spec.field(next(name for name in values if name not in spec.field_names))
        for field in spec.derived:
            if values.get(field.name) is not None:
                _restate_source(spec, field, values)
        for name, source in spec.following:
            if name not in values and values.get(source) is not None:
                values[name] = values[source]
        _fill(self, spec, values)
        for field in spec.derived:
            object.__setattr__(self, field.name, _derived_value(self, field))
        for left, right in spec.distinct:
            if getattr(self, left) == getattr(self, right):
                raise ValidationError(spec.kind, left, getattr(self, left), f"must differ from {right}")

    @classmethod
    def trusted(cls, values: Mapping[str, Any]) -> Self:
        """The record with these values, without validation, because they come from the store."""
        instance = cls.__new__(cls)
        for name, put in cls.spec.setters:
            put(instance, values[name])
        for field in cls.spec.derived:
            object.__setattr__(instance, field.name, _derived_value(instance, field))
        return instance

    @property
    def key(self) -> Any:
        """The value of the key field: text, or a number for kinds with ids assigned by the store."""
        return getattr(self, self.spec.key)

    def values(self) -> dict[str, Any]:
        """The primary fields by name."""
        return dict(zip(self.spec.primary_names, self.spec.values_of(self), strict=True))

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed, validated again."""
        values = self.values()
        for name in changes:
            derived = self.spec.field(name).derived
            if derived is not None:
                values.pop(derived.source, None)
        return type(self)(**{**values, **changes})

    def apart(self, changes: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """A deep copy with these fields changed."""
        held = ((name, getattr(self, name)) for name in self.spec.mutable_fields)
        inside = {name: _copied(value) for name, value in held if value is not None}
        return self.trusted({**self.values(), **inside, **changes}) if inside or changes else self

    def text(self) -> str:
        """The searchable text of the record."""
        return _joined(self.spec.texts_of(self))

    def embedded_text(self) -> str:
        """The text that is embedded."""
        return _joined(self.spec.embedded_texts_of(self))

    def without_vector(self) -> Self:
        """The record without its vector, for display."""
        name = self.spec.vector_field
        if name is None or getattr(self, name) is None:
            return self
        return self.trusted({**self.values(), name: None})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """The pydantic schema for JSON output: a record without its vector."""
        bare = {"type": "no-info", "function": cls.without_vector}
        return {"type": "function-after", "function": bare, "schema": handler(source)}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        schema.get("properties", {}).pop(cls.spec.vector_field, None)
        return reference


def reading(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A getter of these fields as a tuple; for a single name, `attrgetter` alone would not return a tuple."""
    return attrgetter(*names) if len(names) > 1 else lambda record: tuple(getattr(record, name) for name in names)


def _copied(value: Any) -> Any:
    """A deep copy of a JSON value, ten times as fast as copy.deepcopy."""
    if type(value) is dict:
        return {key: _copied(held) for key, held in value.items()}
    return [_copied(held) for held in value] if type(value) is list else value


def _joined(texts: Iterable[str | None]) -> str:
    return "\n".join(filter(None, texts))


def spec_of(cls: Any) -> RecordSpec:
    """The specification of a record class, or an error for other values."""
    if not (isinstance(cls, type) and issubclass(cls, Record) and cls is not Record):
        raise ValidationError("kind", None, cls, "must be a record class, for example Heuristic")
    return cls.spec


def _fill(instance: Record, spec: RecordSpec, values: Mapping[str, Any]) -> None:
    """Set each primary field to its validated value or its default."""
    for name, put, nullable, check, make_default in spec.fillers:
        if name not in values:
            if make_default is None:
                raise ValidationError(spec.kind, name, None, "is required")
            put(instance, make_default())
        elif (value := values[name]) is None and nullable:
            put(instance, None)
        else:
            try:
                put(instance, check(value))
            except (Refused, ValidationError):
                # Validate again for the error that names field and value.
                put(instance, spec.checked(name, value))


def _restate_source(spec: RecordSpec, field: FieldSpec, values: dict[str, Any]) -> None:
    """Set the source of a derived field, or raise an error if the given source disagrees."""
    assert field.derived is not None
    given = spec.checked(field.name, values[field.name])
    source = field.derived.source
    if values.get(source) is None:
        values[source] = field.derived.to_source(given)
    elif field.derived.from_source(spec.checked(source, values[source])) != given:
        raise ValidationError(spec.kind, field.name, given, f"contradicts {source}")


def _derived_value(instance: Record, field: FieldSpec) -> Any:
    assert field.derived is not None
    return field.derived.from_source(getattr(instance, field.derived.source))


R = TypeVar("R", bound=type[Record])


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field, derived, following)
)
def record(kind: str, *, table: str, **options: Any) -> Callable[[R], R]:
    """Turn an annotated class into a kind of record; `options` are RecordSpec's."""

    def describe(cls: R) -> R:
        hints = get_type_hints(cls, include_extras=True)
        plain: Any = dataclass(init=False, frozen=True, kw_only=True, slots=True)(cls)
        fields = tuple(field_spec(f, hints[f.name]) for f in dataclasses.fields(plain))
        options.setdefault("postgres_table", table)
        plain.spec = RecordSpec(kind=kind, table=table, fields=fields, cls=plain, **options)
        if "key" not in plain.spec.by_name:
            # Read very often, so the key is the slot of the field itself.
            plain.key = getattr(plain, plain.spec.key)
        plain.__hash__ = _identity_hash
        return cast(R, plain)

    return describe


def _identity_hash(self: Record) -> int:
    return hash((self.spec.kind, self.key))
