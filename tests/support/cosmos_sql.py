"""The part of Cosmos DB's query language that tests use: a parser, its evaluation, and the plan of a query."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = Any
Scope = Mapping[str, Any]
Expression = Callable[[Scope], Any]


class Undefined:
    """The value of a path that leads nowhere."""


UNDEFINED = Undefined()
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<string>\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')"
    r"|(?P<name>@?[A-Za-z_]\w*)|(?P<sign><=|>=|!=|<>|\|\||[-=<>().,\[\]{}:*]))"
)
_COMPARISONS = {"=": 0, "!=": 0, "<>": 0, "<": 0, "<=": 0, ">": 0, ">=": 0}
_KEYWORDS = frozenset(
    (
        *("SELECT", "FROM", "WHERE", "ORDER", "BY", "GROUP", "TOP", "VALUE", "AS"),
        *("IN", "NOT", "AND", "OR", "BETWEEN", "LIKE", "EXISTS", "ARRAY", "JOIN"),
        *("OFFSET", "LIMIT", "ASC", "DESC", "DISTINCT", "ESCAPE", "NULL", "TRUE", "FALSE"),
        *("UNDEFINED"),
    )
)
AGGREGATES = {"COUNT": "Count", "SUM": "Sum", "MIN": "Min", "MAX": "Max"}


class Refused(Exception):
    """A query that the service does not understand."""


@dataclass
class Query:
    """A parsed query, with the texts from which a plan is made."""

    top: int | None = None
    distinct: bool = False
    is_value: bool = False
    everything: bool = False
    items: list[tuple[str, Expression]] = field(default_factory=list)
    aggregate: str | None = None
    aggregated: Expression | None = None
    where: Expression | None = None
    order: list[tuple[Expression, bool]] = field(default_factory=list)
    offset: int | None = None
    limit: int | None = None
    order_texts: list[str] = field(default_factory=list)
    payload: str = "c"
    where_text: str = "true"

    @property
    def is_by_distance(self) -> bool:
        return any(text.upper().startswith("VECTORDISTANCE") for text in self.order_texts)

    @property
    def needs_plan(self) -> bool:
        """Whether the client must join the answers of several partitions."""
        return bool(self.order or self.aggregate or self.distinct) or self.top is not None or self.limit is not None


def plan(text: str, ranges: Sequence[Mapping[str, Any]]) -> Json:
    """What the service answers when it is asked how to run a query over several partitions."""
    query = parsed(text)
    directions = ["Descending" if is_descending else "Ascending" for _, is_descending in query.order]
    rewritten = ""
    if query.aggregate:
        rewritten = f'SELECT VALUE [{{"item": {query.payload}}}] FROM c WHERE {query.where_text}'
    elif query.order:
        if query.is_by_distance:
            directions = ["Descending"]
        keys = ", ".join(f'{{"item": {each}}}' for each in query.order_texts)
        signs = ", ".join(f"{each} {way[:-6].upper()}" for each, way in zip(query.order_texts, directions, strict=True))
        most = "" if query.top is None else f"TOP {query.top} "
        behind = (
            query.order_texts[0] if query.is_by_distance else signs.replace("ASCEND", "ASC").replace("DESCEND", "DESC")
        )
        rewritten = (
            f"SELECT {most}c._rid, [{keys}] AS orderByItems, {query.payload} AS payload FROM c "
            f"WHERE ({query.where_text}) AND {{documentdb-formattableorderbyquery-filter}} ORDER BY {behind}"
        )
    info: dict[str, Any] = {
        "distinctType": "Unordered" if query.distinct else "None",
        "top": query.top,
        "offset": query.offset,
        "limit": query.limit,
        "orderBy": directions,
        "orderByExpressions": query.order_texts,
        "groupByExpressions": [],
        "groupByAliases": [],
        "aggregates": [query.aggregate] if query.aggregate else [],
        "groupByAliasToAggregateType": {},
        "rewrittenQuery": rewritten,
        "hasSelectValue": query.is_value,
        "hasNonStreamingOrderBy": query.is_by_distance,
    }
    everywhere = {"min": "", "max": "FF", "isMinInclusive": True, "isMaxInclusive": False}
    return {"partitionedQueryExecutionInfoVersion": 2, "queryInfo": info, "queryRanges": [everywhere]}


def run(query: Query, documents: Sequence[Json], parameters: Mapping[str, Any]) -> list[Json]:
    """The answers of one partition."""
    scopes = [{**parameters, "c": document, "root": document} for document in documents]
    found = [scope for scope in scopes if query.where is None or query.where(scope) is True]
    if query.aggregate is not None:
        return _aggregate(query, found)
    for expression, is_descending in reversed(query.order):
        found.sort(key=lambda scope: _sortable(expression(scope)), reverse=is_descending)
    answers = [answer for scope in found if (answer := _projected(query, scope)) is not UNDEFINED]
    if query.distinct:
        answers = list({json.dumps(answer, sort_keys=True): answer for answer in answers}.values())
    start = query.offset or 0
    stop = min((start + most for most in (query.top, query.limit) if most is not None), default=None)
    return answers[start:stop]


def _aggregate(query: Query, found: Sequence[Scope]) -> list[Json]:
    assert query.aggregated is not None
    values = [value for scope in found if (value := query.aggregated(scope)) is not UNDEFINED]
    result: Any
    match query.aggregate:
        case "Count":
            result = len(values)
        case "Sum":
            result = sum(values) if values else UNDEFINED
        case "Min":
            result = min(values, default=UNDEFINED)
        case _:
            result = max(values, default=UNDEFINED)
    if query.payload.startswith("[{"):
        return [[{} if result is UNDEFINED else {"item": result}]]
    return [] if result is UNDEFINED else [result]


def _projected(query: Query, scope: Scope) -> Any:
    if query.everything:
        return scope["c"]
    if query.is_value:
        return query.items[0][1](scope)
    made = ((name, expression(scope)) for name, expression in query.items)
    return {name: value for name, value in made if value is not UNDEFINED}


def _sortable(value: Any) -> tuple[int, Any]:
    """Undefined, null, booleans, numbers, texts, in this order."""
    if value is UNDEFINED or isinstance(value, list | dict):
        return 0, 0
    if value is None:
        return 1, 0
    if isinstance(value, bool):
        return 2, value
    return (3, value) if isinstance(value, int | float) else (4, value)


def parsed(text: str) -> Query:
    """The query of this text."""
    return _Parser(text).query()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int, int]] = []
        position = 0
        text = text.rstrip()
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                raise Refused(f"Syntax error near {text[position : position + 20]!r}")
            kind = str(found.lastgroup)
            self._tokens.append((kind, found[kind], found.start(kind), found.end(kind)))
            position = found.end()
        self._at = 0
        self._query = Query()

    # ------------------------------------------------------------------ tokens

    def _peek(self, *words: str, ahead: int = 0) -> bool:
        place = self._at + ahead
        return place < len(self._tokens) and self._tokens[place][1].upper() in words

    def _accept(self, *words: str) -> bool:
        if self._peek(*words) and self._tokens[self._at][0] != "string":
            self._at += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            near = self._tokens[self._at][1] if self._at < len(self._tokens) else "the end"
            raise Refused(f"Syntax error: {word} expected near {near!r}")

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise Refused("Syntax error: unexpected end")
        kind, text, _, _ = self._tokens[self._at]
        self._at += 1
        return kind, text

    def _source(self, since: int) -> str:
        return self._text[self._tokens[since][2] : self._tokens[self._at - 1][3]]

    # ------------------------------------------------------------------ clauses

    def query(self) -> Query:
        query = self._query
        self._expect("SELECT")
        query.distinct = self._accept("DISTINCT")
        if self._accept("TOP"):
            query.top = int(self._next()[1])
        self._selection()
        self._expect("FROM")
        self._next()
        if self._accept("WHERE"):
            since = self._at
            query.where = self._or()
            query.where_text = self._source(since)
        if self._accept("ORDER"):
            self._expect("BY")
            self._orders()
        if self._accept("OFFSET"):
            query.offset = int(self._next()[1])
            self._expect("LIMIT")
            query.limit = int(self._next()[1])
        if self._at < len(self._tokens):
            raise Refused(f"Syntax error near {self._tokens[self._at][1]!r}")
        if query.is_by_distance and query.top is None and query.limit is None:
            raise Refused("A vector search needs TOP or OFFSET LIMIT")
        return query

    def _selection(self) -> None:
        query = self._query
        if self._accept("*"):
            query.everything = True
            return
        query.is_value = self._accept("VALUE")
        since = self._at
        if query.is_value:
            query.items = [("", self._or())]
            query.payload = self._source(since)
            return
        texts: list[str] = []
        while True:
            start = self._at
            expression = self._or()
            source = self._source(start)
            name = self._next()[1] if self._accept("AS") else source.rpartition(".")[2]
            query.items.append((name, expression))
            texts.append(f"{json.dumps(name)}: {source}")
            if not self._accept(","):
                break
        query.payload = "{" + ", ".join(texts) + "}"

    def _orders(self) -> None:
        while True:
            since = self._at
            expression = self._or()
            text = self._source(since)
            is_descending = self._accept("DESC") or (not self._accept("ASC") and text.upper().startswith("VECTOR"))
            self._query.order.append((expression, is_descending))
            self._query.order_texts.append(text)
            if not self._accept(","):
                return

    # ------------------------------------------------------------------ expressions

    def _or(self) -> Expression:
        parts = [self._and()]
        while self._accept("OR"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else lambda scope: _either([part(scope) for part in parts])

    def _and(self) -> Expression:
        parts = [self._not()]
        while self._accept("AND"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda scope: _both([part(scope) for part in parts])

    def _not(self) -> Expression:
        if self._accept("NOT"):
            inner = self._not()
            return lambda scope: not value if isinstance(value := inner(scope), bool) else UNDEFINED
        return self._comparison()

    def _comparison(self) -> Expression:
        left = self._primary()
        for sign in _COMPARISONS:
            if self._peek(sign) and self._accept(sign):
                right = self._primary()
                return lambda scope: _compared(sign, left(scope), right(scope))
        if self._accept("IN"):
            self._expect("(")
            members = self._list(")")
            return lambda scope: _either([_compared("=", left(scope), member(scope)) for member in members])
        return left

    def _list(self, end: str) -> list[Expression]:
        found: list[Expression] = []
        while not self._accept(end):
            found.append(self._or())
            if not self._accept(","):
                self._expect(end)
                break
        return found

    def _primary(self) -> Expression:
        if self._accept("("):
            inner = self._or()
            self._expect(")")
            return inner
        if self._accept("["):
            members = self._list("]")
            return lambda scope: [value for each in members if (value := each(scope)) is not UNDEFINED]
        if self._accept("{"):
            return self._object()
        if self._accept("-"):
            number = self._primary()
            return lambda scope: -number(scope)
        kind, text = self._next()
        if kind == "number":
            constant: Any = json.loads(text)
            return lambda _: constant
        if kind == "string":
            literal = json.loads(text if text[0] == '"' else json.dumps(text[1:-1]))
            return lambda _: literal
        if kind != "name":
            raise Refused(f"Syntax error near {text!r}")
        return self._named(text)

    def _object(self) -> Expression:
        members: list[tuple[str, Expression]] = []
        while not self._accept("}"):
            _, name = self._next()
            self._expect(":")
            members.append((name.strip("\"'"), self._or()))
            self._accept(",")
        return lambda scope: {name: value for name, each in members if (value := each(scope)) is not UNDEFINED}

    def _named(self, name: str) -> Expression:
        constants = {"TRUE": True, "FALSE": False, "NULL": None, "UNDEFINED": UNDEFINED}
        if name.upper() in constants:
            value = constants[name.upper()]
            return lambda _: value
        if self._accept("("):
            return self._call(name.upper(), self._list(")"))
        return self._path(name)

    def _path(self, name: str) -> Expression:
        steps: list[Any] = []
        while True:
            if self._accept("."):
                step = self._next()[1]
                if step.upper() in _KEYWORDS:
                    raise Refused(f"Syntax error: {step!r} is a keyword, and must be in brackets")
                steps.append(step)
            elif self._accept("["):
                kind, text = self._next()
                steps.append(json.loads(text) if kind in ("string", "number") else text)
                self._expect("]")
            else:
                return lambda scope: _reached(scope.get(name, UNDEFINED), steps)

    def _call(self, name: str, arguments: list[Expression]) -> Expression:
        if name in AGGREGATES:
            self._query.aggregate = AGGREGATES[name]
            self._query.aggregated = arguments[0]
            return lambda _: UNDEFINED
        function = _FUNCTIONS.get(name)
        if function is None:
            raise Refused(f"'{name}' is not a recognized built-in function name.")
        return lambda scope: function(*(each(scope) for each in arguments))


def _reached(value: Any, steps: Sequence[Any]) -> Any:
    for step in steps:
        if (isinstance(value, dict) and step in value) or (
            isinstance(value, list) and isinstance(step, int) and step < len(value)
        ):
            value = value[step]
        else:
            return UNDEFINED
    return value


def _both(values: list[Any]) -> Any:
    if any(value is False for value in values):
        return False
    return True if all(value is True for value in values) else UNDEFINED


def _either(values: list[Any]) -> Any:
    if any(value is True for value in values):
        return True
    return False if all(value is False for value in values) else UNDEFINED


def _kind(value: Any) -> int:
    return 5 if isinstance(value, list | dict) else _sortable(value)[0]


def _compared(sign: str, left: Any, right: Any) -> Any:
    if left is UNDEFINED or right is UNDEFINED or _kind(left) != _kind(right):
        return UNDEFINED
    if sign in ("=", "!=", "<>"):
        return (left == right) == (sign == "=")
    if _kind(left) in (1, 5):
        return UNDEFINED
    signs = {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}
    return signs[sign]


def _contains(values: Any, wanted: Any, partly: Any = False) -> Any:
    if not isinstance(values, list):
        return UNDEFINED
    return any(_kind(value) == _kind(wanted) and value == wanted for value in values)


def _distance(one: Any, other: Any, brute_force: Any = False, options: Any = None) -> Any:
    if not isinstance(one, list) or not isinstance(other, list) or len(one) != len(other):
        return UNDEFINED
    length = math.sqrt(sum(each * each for each in one)) * math.sqrt(sum(each * each for each in other))
    return sum(a * b for a, b in zip(one, other, strict=True)) / length if length else 0.0


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "IS_DEFINED": lambda value: value is not UNDEFINED,
    "IS_NULL": lambda value: UNDEFINED if value is UNDEFINED else value is None,
    "IS_ARRAY": lambda value: isinstance(value, list),
    "IS_OBJECT": lambda value: isinstance(value, dict),
    "ARRAY_CONTAINS": _contains,
    "ARRAY_LENGTH": lambda value: len(value) if isinstance(value, list) else UNDEFINED,
    "CONTAINS": lambda value, part, fold=False: (
        (part.lower() in value.lower() if fold else part in value) if isinstance(value, str) else UNDEFINED
    ),
    "STARTSWITH": lambda value, part: value.startswith(part) if isinstance(value, str) else UNDEFINED,
    "LOWER": lambda value: value.lower() if isinstance(value, str) else UNDEFINED,
    "VECTORDISTANCE": _distance,
}
