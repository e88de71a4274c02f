"""Describe a record once: annotations give the fields, the decorator gives what annotations cannot say."""

from __future__ import annotations

import dataclasses
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, StrEnum
from functools import cached_property
from operator import attrgetter
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from alma.errors import ValidationError
from alma.model.fields import CHECKS, Check, Embedding, FieldType, MaxLength, NotEmpty, Range, Refused, Tags

Choices = type[StrEnum]


@dataclass(frozen=True)
class FieldSpec:
    """One field of a record: its type, its rules and how it got them."""

    name: str
    type: FieldType
    nullable: bool
    check: Check
    rules: tuple[object, ...] = ()
    choices: Choices | None = None
    default: Any = None
    make_default: Callable[[], Any] | None = None
    derived: Derived | None = None
    follows: str | None = None

    @property
    def required(self) -> bool:
        """Whether a value must be given."""
        return self.make_default is None and self.derived is None

    @property
    def base_check(self) -> Check:
        """Checks a value's type alone, without the rules of this field."""
        return CHECKS[self.type]

    @property
    def member_check(self) -> Check:
        """Checks one member of a list or a set of tags."""
        return CHECKS[FieldType.TEXT]

    @property
    def range(self) -> Range | None:
        return next((rule for rule in self.rules if isinstance(rule, Range)), None)


@dataclass(frozen=True)
class Derived:
    """A field that is a second way to say another one: accepted and readable, never stored."""

    source: str
    from_source: Callable[[Any], Any]
    to_source: Callable[[Any], Any]


@dataclass(frozen=True)
class Index:
    """An index the documents name; `where` is a partial index's condition, `columns` may end in DESC.

    `only` names the one dialect that has it, with its method where that is another than the usual one.
    """

    name: str
    columns: tuple[str, ...]
    where: str | None = None
    only: str | None = None


@dataclass(frozen=True)
class Unique:
    """Fields that together may occur only once; `nulls_equal` lets a missing value count as a value."""

    name: str
    fields: tuple[str, ...]
    nulls_equal: bool = False


class OnDelete(Enum):
    """What happens to a record when the record it points to is deleted."""

    CASCADE = "cascade"
    CLEAR = "clear"


@dataclass(frozen=True)
class Reference:
    """A field that holds the id of another record; `must_exist` refuses an id that leads nowhere."""

    field: str
    kind: str
    on_delete: OnDelete
    must_exist: bool = False


@dataclass(frozen=True, eq=False)
class RecordSpec:
    """Everything a store needs to know about one kind of record; there is one of each."""

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
        """The fields that restate others."""
        return tuple(field for field in self.fields if field.derived is not None)

    @cached_property
    def following(self) -> tuple[tuple[str, str], ...]:
        """The moments that are, unless they are given, another one that is: each with the name of that one."""
        return tuple((field.name, field.follows) for field in self.fields if field.follows is not None)

    @cached_property
    def primary(self) -> tuple[FieldSpec, ...]:
        """The fields that make up the record."""
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
        """What reads a record's key, without the detour over the property."""
        return attrgetter(self.key)

    @cached_property
    def values_of(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads the primary fields of a record, in their order."""
        return reading(self.primary_names)

    @cached_property
    def texts_of(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads the searchable texts of a record, in their order."""
        return reading(self.text)

    @cached_property
    def embedded_texts_of(self) -> Callable[[Any], tuple[Any, ...]]:
        """What reads the texts that a record's vector is made from: all of them, unless its kind names less."""
        return self.texts_of if self.embedded is None else reading(self.embedded)

    @cached_property
    def primary_names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.primary)

    @cached_property
    def setters(self) -> tuple[tuple[str, Callable[[Any, Any], None]], ...]:
        """What puts a value into each primary field of a new, otherwise immutable record."""
        return tuple((field.name, getattr(self.cls, field.name).__set__) for field in self.primary)

    def trusted_together(self, names: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[Record]:
        """`trusted` for several records at once: the values of each field in all of them, under its name."""
        make, count = self.cls.__new__, len(columns[0])
        made: list[Record] = [make(self.cls) for _ in range(count)]
        put_into = dict(self.setters)
        for name, values in zip(names, columns, strict=True):
            # Runs through both without a step of the interpreter for each.
            deque(map(put_into[name], made, values), maxlen=0)
        for field in self.derived:
            for record in made:
                object.__setattr__(record, field.name, _derived_value(record, field))
        return made

    @cached_property
    def fillers(self) -> tuple[tuple[str, Callable[[Any, Any], None], bool, Check, Callable[[], Any] | None], ...]:
        """What is needed to fill each primary field: its name, what puts a value there, and where that comes from."""
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
        """Whether the store gives the ids, as ascending numbers."""
        return self.by_name[self.key].type is FieldType.INTEGER

    @cached_property
    def field_names(self) -> frozenset[str]:
        return frozenset(self.by_name)

    def field(self, name: str) -> FieldSpec:
        """The named field, or an error that lists the names there are."""
        try:
            return self.by_name[name]
        except KeyError:
            raise ValidationError(
                self.kind, None, name, f"has no such field; it has {', '.join(self.by_name)}"
            ) from None

    def checked(self, name: str, value: Any) -> Any:
        """The value as the field keeps it, or an error that names field, value and reason."""
        field = self.field(name)
        if value is None and field.nullable:
            return None
        try:
            return field.check(value)
        except (Refused, ValidationError) as exc:
            reason = exc.reason if isinstance(exc, ValidationError) else str(exc)
            raise ValidationError(self.kind, name, value, reason) from None


class Record:
    """A described, immutable, valid value; every kind of thing ALMA remembers is one."""

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
        """The record with these values, all of which were checked before they were stored."""
        instance = cls.__new__(cls)
        for name, put in cls.spec.setters:
            put(instance, values[name])
        for field in cls.spec.derived:
            object.__setattr__(instance, field.name, _derived_value(instance, field))
        return instance

    @property
    def key(self) -> Any:
        """The value that identifies this record among its kind: text, or a number for what the store itself writes."""
        return getattr(self, self.spec.key)

    def values(self) -> dict[str, Any]:
        """The fields that make up this record, by name."""
        return dict(zip(self.spec.primary_names, self.spec.values_of(self), strict=True))

    def replace(self, **changes: Any) -> Self:
        """A copy with these fields changed and everything checked again."""
        values = self.values()
        for name in changes:
            derived = self.spec.field(name).derived
            if derived is not None:
                values.pop(derived.source, None)
        return type(self)(**{**values, **changes})

    def text(self) -> str:
        """What the record says, in words: the text that is searched."""
        return _joined(self.spec.texts_of(self))

    def embedded_text(self) -> str:
        """What its vector is made from."""
        return _joined(self.spec.embedded_texts_of(self))

    def without_vector(self) -> Self:
        """The record as it is shown: what its vector is concerns nobody but an index."""
        name = self.spec.vector_field
        if name is None or getattr(self, name) is None:
            return self
        return self.trusted({**self.values(), name: None})

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Callable[[Any], Any]) -> Any:
        """On the wire a record has no vector; pydantic asks for this, and nothing of it is needed to answer."""
        bare = {"type": "no-info", "function": cls.without_vector}
        return {"type": "function-after", "function": bare, "schema": handler(source)}

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> Any:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        schema.get("properties", {}).pop(cls.spec.vector_field, None)
        return reference


def reading(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these fields as a tuple; of one name alone `attrgetter` would make a plain value."""
    return attrgetter(*names) if len(names) > 1 else lambda record: tuple(getattr(record, name) for name in names)


def _joined(texts: Iterable[str | None]) -> str:
    return "\n".join(filter(None, texts))


def spec_of(cls: Any) -> RecordSpec:
    """The description of a record class, or an error for what is none."""
    if not (isinstance(cls, type) and issubclass(cls, Record) and cls is not Record):
        raise ValidationError("kind", None, cls, "must be a record class, for example Heuristic")
    return cls.spec


def _fill(instance: Record, spec: RecordSpec, values: Mapping[str, Any]) -> None:
    """Put each primary field's value in its place, checked, or its default."""
    for name, put, nullable, check, make_default in spec.fillers:
        if name in values:
            value = values[name]
            if value is not None or not nullable:
                try:
                    value = check(value)
                except (Refused, ValidationError):
                    value = spec.checked(name, value)
        elif make_default is not None:
            value = make_default()
        else:
            raise ValidationError(spec.kind, name, None, "is required")
        put(instance, value)


def _restate_source(spec: RecordSpec, field: FieldSpec, values: dict[str, Any]) -> None:
    """Put what a derived field says into the field it stands for, unless that one was given and disagrees."""
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


def derived(
    source: str, from_source: Callable[[Any], Any], to_source: Callable[[Any], Any], default: None = None
) -> Any:
    """A field that restates another one (see `Derived`)."""
    return dataclasses.field(default=default, metadata={"derived": Derived(source, from_source, to_source)})


def following(source: str, default_factory: Callable[[], Any]) -> Any:
    """A moment that is the same as another one where only that one is given, and its default where neither is."""
    return dataclasses.field(default_factory=default_factory, metadata={"follows": source})


R = TypeVar("R", bound=type[Record])


@dataclass_transform(
    kw_only_default=True, frozen_default=True, field_specifiers=(dataclasses.field, derived, following)
)
def record(kind: str, *, table: str, **options: Any) -> Callable[[R], R]:
    """Turn an annotated class into a kind of record; `options` are RecordSpec's."""

    def describe(cls: R) -> R:
        hints = get_type_hints(cls, include_extras=True)
        plain: Any = dataclass(init=False, frozen=True, kw_only=True, slots=True)(cls)
        fields = tuple(_field_spec(f, hints[f.name]) for f in dataclasses.fields(plain))
        options.setdefault("postgres_table", table)
        plain.spec = RecordSpec(kind=kind, table=table, fields=fields, cls=plain, **options)
        if "key" not in plain.spec.by_name:
            # Asked for again and again, so it is read as the field itself.
            plain.key = getattr(plain, plain.spec.key)
        plain.__hash__ = _identity_hash
        return cast(R, plain)

    return describe


def _identity_hash(self: Record) -> int:
    return hash((self.spec.kind, self.key))


def _field_spec(field: dataclasses.Field[Any], hint: Any) -> FieldSpec:
    base, rules, nullable = _unwrapped(hint)
    field_type, choices = _field_type(base, rules)
    return FieldSpec(
        name=field.name,
        type=field_type,
        nullable=nullable,
        check=_checker(field_type, choices, rules),
        rules=rules,
        choices=choices,
        default=_constant_default(field),
        make_default=_default_maker(field),
        derived=field.metadata.get("derived"),
        follows=field.metadata.get("follows"),
    )


def _has_default(field: dataclasses.Field[Any]) -> bool:
    # A field named like a property of Record has that property as its default, as far as dataclasses can tell.
    return field.default is not dataclasses.MISSING and not isinstance(field.default, property)


def _constant_default(field: dataclasses.Field[Any]) -> Any:
    return field.default if _has_default(field) else None


def _default_maker(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return (lambda: field.default) if _has_default(field) else None


def _unwrapped(hint: Any) -> tuple[Any, tuple[object, ...], bool]:
    """The bare type, the rules annotated on it and whether None is allowed."""
    rules: tuple[object, ...] = ()
    nullable = False
    while True:
        if get_origin(hint) is Annotated:
            hint, *more = get_args(hint)
            rules += tuple(more)
        elif get_origin(hint) in (Union, types.UnionType):
            (hint,) = (arg for arg in get_args(hint) if arg is not type(None))
            nullable = True
        else:
            return hint, rules, nullable


_TYPES: dict[Any, FieldType] = {
    str: FieldType.TEXT,
    int: FieldType.INTEGER,
    float: FieldType.FLOAT,
    bool: FieldType.BOOLEAN,
    datetime: FieldType.TIMESTAMP,
}


_SEQUENCES: dict[type, FieldType] = {Embedding: FieldType.VECTOR, Tags: FieldType.TAGS}


def _field_type(base: Any, rules: tuple[object, ...]) -> tuple[FieldType, type[StrEnum] | None]:
    if isinstance(base, type) and issubclass(base, StrEnum):
        return FieldType.TEXT, base
    if base in _TYPES:
        return _TYPES[base], None
    if get_origin(base) is dict:
        return FieldType.JSON, None
    if get_origin(base) is Sequence:
        return next((_SEQUENCES[type(rule)] for rule in rules if type(rule) in _SEQUENCES), FieldType.STRINGS), None
    raise TypeError(f"no field type for annotation {base!r}")


def _checker(field_type: FieldType, choices: type[StrEnum] | None, rules: tuple[object, ...]) -> Check:
    check = CHECKS[field_type] if choices is None else _choice_check(choices)
    for rule in rules:
        check = _with_rule(check, rule)
    return check


def _choice_check(choices: type[StrEnum]) -> Check:
    allowed = {choice.value: choice for choice in choices}

    def check(value: Any) -> StrEnum:
        if not isinstance(value, str) or value not in allowed:
            raise Refused(f"must be one of {', '.join(allowed)}")
        return allowed[value]

    return check


def _with_rule(check: Check, rule: object) -> Check:
    match rule:
        case NotEmpty():
            return _not_empty(check)
        case MaxLength(characters):
            return _not_longer(check, characters)
        case Range(low, high):
            return _within(check, low, high)
        case _:
            return check


def _not_empty(check: Check) -> Check:
    def checked(value: Any) -> str:
        text: str = check(value)
        if not text or text.isspace():
            raise Refused("must not be empty")
        return text

    return checked


def _not_longer(check: Check, characters: int) -> Check:
    def checked(value: Any) -> str:
        text: str = check(value)
        if len(text) > characters:
            raise Refused(f"must have at most {characters:,} characters, has {len(text):,}")
        return text

    return checked


def _within(check: Check, low: float, high: float) -> Check:
    limits = f"must be at least {low:g}" if high == float("inf") else f"must be between {low:g} and {high:g}"

    def checked(value: Any) -> float:
        number: float = check(value)
        if not low <= number <= high:
            raise Refused(limits)
        return number

    return checked
