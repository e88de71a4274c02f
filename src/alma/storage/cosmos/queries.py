"""Predicates as conditions of Cosmos DB's query language."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from alma.model.query import And, At, Compare, Cursor, Has, In, Missing, Or, Order, Predicate
from alma.model.record import RecordSpec
from alma.storage.cosmos.documents import DELETED, OURS, is_exact
from alma.storage.document import timestamp_text

KEY = f"c.{OURS}.key"
_OPERATORS = {"eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_LENIENT = {"lt": "<=", "gt": ">="}


@dataclass(frozen=True)
class Condition:
    """A condition with its parameters.

    One that is not `exact` may hold for further documents, which the client filters out. With `stubs` it also finds
    the stubs of deleted documents.
    """

    text: str = "true"
    parameters: dict[str, Any] = field(default_factory=dict)
    exact: bool = True
    stubs: bool = False

    def also(self, text: str, **parameters: Any) -> Condition:
        """The same with one more condition."""
        named = {f"@{name}": value for name, value in parameters.items()}
        return replace(self, text=f"{self.text} AND {text}", parameters={**self.parameters, **named})

    def outside(self, keys: Sequence[Any]) -> Condition:
        """The same, without the documents of these keys."""
        if not keys:
            return self
        named = {f"@x{number}": key for number, key in enumerate(keys)}
        text = f"{self.text} AND NOT ({KEY} IN ({', '.join(named)}))"
        return replace(self, text=text, parameters={**self.parameters, **named})

    def query(self, select: str, order: str = "", top: int | None = None) -> tuple[str, list[dict[str, Any]]]:
        """The statement and its parameters. Stubs of deleted documents are only found on request."""
        most = "" if top is None else f"TOP {top} "
        behind = f" ORDER BY {order}" if order else ""
        living = "" if self.stubs else f" AND NOT IS_DEFINED(c.{OURS}.{DELETED})"
        text = f"SELECT {most}{select} FROM c WHERE {self.text}{living}{behind}"
        return text, [{"name": name, "value": value} for name, value in self.parameters.items()]


def column(spec: RecordSpec, name: str) -> str:
    """The path of a field in a document."""
    return KEY if name == spec.key else f"c[{json.dumps(name)}]"


def present(spec: RecordSpec, name: str) -> str:
    """The condition that a field has a value."""
    path = column(spec, name)
    return f"(IS_DEFINED({path}) AND NOT IS_NULL({path}))"


def encoded_value(value: Any) -> Any:
    """A value as documents hold it."""
    return timestamp_text(value) if hasattr(value, "isoformat") else value


def condition(spec: RecordSpec, predicate: Predicate) -> Condition:
    """The condition of a predicate."""
    translator = _Translator(spec)
    text = translator.spelled(predicate)
    return Condition(text, translator.parameters, translator.exact)


class _Translator:
    def __init__(self, spec: RecordSpec) -> None:
        self._spec = spec
        self.parameters: dict[str, Any] = {}
        self.exact = True

    def spelled(self, predicate: Predicate) -> str:
        match predicate:
            case Compare(name, op, value):
                return self._comparison(name, op, value)
            case In(name, values):
                return self._membership(name, values)
            case Missing(name):
                return f"(NOT {present(self._spec, name)})"
            case Has(name, value):
                return f"ARRAY_CONTAINS({column(self._spec, name)}, {self._put(value)})"
            case At(name, path, value):
                return self._location(name, path, value)
            case And(parts):
                return self._joined(" AND ", parts, "true")
            case Or(parts):
                return self._joined(" OR ", parts, "false")
        assert_never(predicate)

    def _joined(self, word: str, parts: Sequence[Predicate], empty: str) -> str:
        return f"({word.join(map(self.spelled, parts))})" if parts else empty

    def _put(self, value: Any) -> str:
        name = f"@p{len(self.parameters)}"
        self.parameters[name] = encoded_value(value)
        return name

    def _comparison(self, name: str, op: str, value: Any) -> str:
        path = column(self._spec, name)
        if is_exact(value):
            compared = f"{path} {_OPERATORS[op]} {self._put(value)}"
            # A comparison of a value with null or with nothing is neither true nor false.
            return f"({present(self._spec, name)} AND {compared})" if op == "ne" else compared
        self.exact = False
        if op == "ne":
            return present(self._spec, name)
        return f"{path} {_LENIENT.get(op, _OPERATORS[op])} {self._put(value)}"

    def _membership(self, name: str, values: Sequence[Any]) -> str:
        if not values:
            return "false"
        self.exact = self.exact and all(map(is_exact, values))
        known = [self._put(value) for value in values if value is not None]
        return f"{column(self._spec, name)} IN ({', '.join(known)})" if known else "false"

    def _location(self, name: str, path: Sequence[str], value: Any) -> str:
        place = "".join([column(self._spec, name), *(f"[{json.dumps(key)}]" for key in path)])
        if isinstance(value, dict) or not is_exact(value):
            # What an object contains is decided by the client.
            self.exact = False
            return f"IS_DEFINED({place})"
        if value is None:
            return f"(IS_NULL({place}) OR ARRAY_CONTAINS({place}, null))"
        bound = self._put(value)
        return f"({place} = {bound} OR ARRAY_CONTAINS({place}, {bound}))"


def behind(spec: RecordSpec, cursor: Cursor, order: Sequence[Order]) -> Predicate:
    """The predicate of the records after a cursor: equal in the first terms, later in the next."""
    alternatives: list[Predicate] = []
    equal: list[Predicate] = []
    for term, value in zip(order, cursor.values, strict=True):
        if value is None:
            equal.append(Missing(term.field))
            continue
        later: Predicate = Compare(term.field, "gt" if term.direction == "asc" else "lt", value)
        if spec.by_name[term.field].nullable:
            later = Or(later, Missing(term.field))
        alternatives.append(And(*equal, later))
        equal.append(Compare(term.field, "eq", value))
    return Or(*alternatives, And(*equal, Compare(spec.key, "gt", cursor.key)))


def keys_in(spec: RecordSpec, predicate: Predicate) -> tuple[Any, ...] | None:
    """The keys that a predicate lists; None if it lists none."""
    match predicate:
        case Compare(name, "eq", value) if name == spec.key:
            return (value,)
        case In(name, values) if name == spec.key:
            return values
        case And(parts):
            return next((found for part in parts if (found := keys_in(spec, part)) is not None), None)
    return None
