"""Describe a field once: what its annotation and its default say becomes its type, its rules and its check."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

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


def derived(
    source: str, from_source: Callable[[Any], Any], to_source: Callable[[Any], Any], default: None = None
) -> Any:
    """A field that restates another one (see `Derived`)."""
    return dataclasses.field(default=default, metadata={"derived": Derived(source, from_source, to_source)})


def following(source: str, default_factory: Callable[[], Any]) -> Any:
    """A moment that is the same as another one where only that one is given, and its default where neither is."""
    return dataclasses.field(default_factory=default_factory, metadata={"follows": source})


def field_spec(field: dataclasses.Field[Any], hint: Any) -> FieldSpec:
    """The description of a dataclass's field with this annotation."""
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


def _field_type(base: Any, rules: tuple[object, ...]) -> tuple[FieldType, Choices | None]:
    if isinstance(base, type) and issubclass(base, StrEnum):
        return FieldType.TEXT, base
    if base in _TYPES:
        return _TYPES[base], None
    if get_origin(base) is dict:
        return FieldType.JSON, None
    if get_origin(base) is Sequence:
        return next((_SEQUENCES[type(rule)] for rule in rules if type(rule) in _SEQUENCES), FieldType.STRINGS), None
    raise TypeError(f"no field type for annotation {base!r}")


def _checker(field_type: FieldType, choices: Choices | None, rules: tuple[object, ...]) -> Check:
    check = CHECKS[field_type] if choices is None else _choice_check(choices)
    for rule in rules:
        check = _with_rule(check, rule)
    return check


def _choice_check(choices: Choices) -> Check:
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
