"""Make a memory from a caller's input: check the fields, then choose missing category, importance and layers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

from alma import clock
from alma.errors import ScopeViolationError, ValidationError
from alma.memory.filters import checked_layer
from alma.memory.tuning import ASSIGNMENT, phrases, table
from alma.memory.updates import expiry
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory
from alma.text.timeexpr import resolve
from alma.text.tokens import STOP_WORDS, terms, words_by_term

Content = str | Mapping[str, Any]

MOST_BYTES = 1 << 20
ASSIGNED = "assigned"
"""The key of a memory's context that holds what was assigned, by which rule and why."""

_READ_ONLY = ("id", "created_at", "updated_at", "access_count", "last_accessed_at", "embedding")
_MOST_CHARACTERS_READ = 4_000


def new_memory(content: Content, fields: Mapping[str, Any], by: Attribution) -> Memory:
    """The memory that a caller describes; owners that are not given come from the attribution."""
    values = plain_fields({**fields, "content": content})
    for name, known in (("user_id", by.user_id), ("session_id", by.session_id), ("source_agent", by.agent)):
        if values.get(name) is None and known is not None:
            values[name] = known
    memory = Memory(**values)
    _check_owner(memory)
    return memory


def changed_memory(memory: Memory, changes: Mapping[str, Any]) -> Memory:
    """The memory with these changes, updated now; changed text loses its embedding."""
    changed = memory.replace(**changes, updated_at=clock.now())
    _check_owner(changed)
    is_stale = changed.text() != memory.text() and "embedding" not in changes
    return changed.replace(embedding=None) if is_stale else changed


def checked_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes as fields of a memory; fields that the journal maintains are refused."""
    if not isinstance(changes, Mapping) or not changes:
        raise ValidationError("memory", None, changes, "needs the fields to change, as a dict")
    for name in _READ_ONLY:
        if name in changes:
            raise ValidationError("memory", name, changes[name], "cannot be changed")
    values = plain_fields(changes)
    for name, value in values.items():
        Memory.spec.field(name)
        Memory.spec.checked(name, value)
    return values


def plain_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory; accepts layers by name, `ttl_seconds`, and content as JSON with a `text`."""
    values = dict(given)
    if "content" in values:
        values.update(_content(values["content"], values.get("content_json")))
    if "layers" in values:
        values.update(_layer_flags(values.pop("layers")))
    if "ttl_seconds" in values:
        values["expires_at"] = expiry("memory", values.pop("ttl_seconds"), values.get("expires_at"))
    if values.get("content_json") is not None:
        _check_size("content_json", _as_json(values["content_json"]))
    return values


def _content(content: Content, content_json: Any) -> dict[str, Any]:
    if isinstance(content, Mapping):
        if content_json is not None:
            raise ValidationError("memory", "content", content, "must be text where content_json is given as well")
        text = content.get("text")
        found = text if isinstance(text, str) and text.strip() else _as_json(content)
        _check_size("content", found)
        return {"content": found, "content_json": dict(content)}
    if isinstance(content, str):
        _check_size("content", content)
    return {"content": content}


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError) as exc:
        raise ValidationError("memory", "content", value, f"must be text or JSON: {exc}") from None


def _check_size(name: str, text: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    if size > MOST_BYTES:
        raise ValidationError("memory", name, text, f"must have at most {MOST_BYTES:,} bytes (1 MB), has {size:,}")


def _layer_flags(layers: Iterable[Layer | str] | None) -> dict[str, bool]:
    if isinstance(layers, str) or not isinstance(layers, Iterable):
        raise ValidationError("memory", "layers", layers, f"must be a list out of {', '.join(Layer)}")
    chosen = {checked_layer(layer) for layer in layers}
    return {f"layer_{layer}": layer in chosen for layer in Layer}


def _check_owner(memory: Memory) -> None:
    if memory.user_id is None and memory.project_id is None and memory.session_id is None:
        raise ScopeViolationError("memory", None, None, "must belong to a user, a project or a session; name one")
    if memory.is_private and memory.user_id is None:
        raise ValidationError("memory", "is_private", True, "needs a user_id: only that user will see it")


# ---------------------------------------------------------------------- assignment


@dataclass(frozen=True, slots=True)
class Assignment:
    """An assigned value, the rule that assigned it and the reason in a sentence."""

    value: Any
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A memory before assignment, with its words by their stems."""

    memory: Memory
    text: str
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, memory: Memory) -> Draft:
        text = memory.text()[:_MOST_CHARACTERS_READ]
        return cls(memory, text, words_by_term(text))


def with_assigned(memory: Memory, given: Iterable[str], *, categorize: bool = True) -> Memory:
    """Assign what was not given and keep the reasons in the memory's context."""
    known, draft = set(given), Draft.of(memory)
    found: dict[str, Assignment] = {}
    changes: dict[str, Any] = {}
    if "category" not in known and categorize:
        found["category"] = category_of(draft)
        changes["category"] = found["category"].value
    if not known & {"importance_score", "priority"}:
        found["importance_score"] = importance_for(draft)
        changes["importance_score"] = found["importance_score"].value
    if not known & {"layers", *(f"layer_{layer}" for layer in Layer)}:
        found["layers"] = layers_of(draft)
        changes.update({f"layer_{layer}": layer in found["layers"].value for layer in Layer})
    if not found:
        return memory
    reasons = {name: asdict(each) for name, each in found.items()}
    return memory.replace(**changes, context_json={**memory.context_json, ASSIGNED: reasons})


def category_of(draft: Draft) -> Assignment:
    """A category named by a tag, else the one with most words in the text, else that of the memory's type."""
    rules = table("assignment")
    for tag in draft.memory.tags:
        if tag.casefold() in rules["categories"]:
            return Assignment(tag.casefold(), "tag", f"it is tagged {tag!r}")
    mentioned = {name: _words_in(draft, _terms("categories", name)) for name in rules["categories"]}
    position = {word: number for number, word in enumerate(draft.words.values())}
    # On a tie, the category that is mentioned first wins.
    best = max(mentioned, key=lambda name: (len(mentioned[name]), -_first(mentioned[name], position)))
    if mentioned[best]:
        return Assignment(best, "words", f"it mentions {_listed(mentioned[best])}")
    kind = draft.memory.memory_type
    if kind in rules["category_of_type"]:
        return Assignment(rules["category_of_type"][kind], "type", f"the category of memories of type {kind}")
    return Assignment("general", "default", "none of its words belongs to a category")


def _first(words: Iterable[str], position: Mapping[str, int]) -> int:
    return min((position[word] for word in words), default=0)


def importance_for(draft: Draft) -> Assignment:
    """The usual importance of the memory's type, adjusted for important and unimportant words and for short text."""
    kind = draft.memory.memory_type
    score = table("assignment")["importance_of_type"].get(kind, 0.5)
    reasons = [f"a memory of type {kind} starts at {score:g}"]
    for name, sign, label in (("important", 1, "more"), ("unimportant", -1, "less")):
        if words := _words_in(draft, _terms(name)) + _stop_words_in(draft, name):
            score += sign * min(ASSIGNMENT.max_word_weight, ASSIGNMENT.word_weight * len(words))
            reasons.append(f"{label} for {_listed(words)}")
    if len(draft.text) < ASSIGNMENT.short_text:
        score -= ASSIGNMENT.word_weight
        reasons.append("less because it is short")
    return Assignment(round(min(1.0, max(0.0, score)), 2), "type and words", "; ".join(reasons))


def layers_of(draft: Draft) -> Assignment:
    """The layer of the memory's type among its owners, and the temporal layer where the memory is bound to a time."""
    home, reason = _home(draft.memory)
    layers, reasons = [home], [reason]
    general = phrases("holds_everywhere").search(draft.text)
    if home is not Layer.GLOBAL and draft.memory.user_id is not None and general:
        layers.append(Layer.GLOBAL)
        reasons.append(f"{general[0]!r} says that it holds everywhere")
    if time_bound := _time_bound(draft):
        layers.append(Layer.TEMPORAL)
        reasons.append(time_bound)
    return Assignment([str(layer) for layer in layers], "type and owner", "; ".join(reasons))


def _home(memory: Memory) -> tuple[Layer, str]:
    kind, rules = memory.memory_type, table("assignment")
    if kind in rules["user_types"] and memory.user_id is not None:
        return Layer.GLOBAL, f"a memory of type {kind} belongs to its user in every project"
    if kind in rules["session_types"] and memory.session_id is not None:
        return Layer.SESSION, f"a memory of type {kind} belongs to its session"
    if memory.project_id is not None:
        return Layer.PROJECT, f"a memory of type {kind} belongs to its project"
    if memory.session_id is not None:
        return Layer.SESSION, "it has a session and no project"
    return Layer.GLOBAL, "it has neither a session nor a project"


def _time_bound(draft: Draft) -> str:
    if draft.memory.event_time is not None:
        return "it has an event time"
    if draft.memory.expires_at is not None:
        return "it expires"
    window = resolve(draft.text, clock.now())
    # A time relative to an event ("before the release") has no date yet.
    is_dated = window is not None and window.anchor is None
    return "it mentions a time" if is_dated or phrases("future").search(draft.text) else ""


def _words_in(draft: Draft, wanted: frozenset[str]) -> list[str]:
    return [word for term, word in draft.words.items() if term in wanted]


def _stop_words_in(draft: Draft, name: str) -> list[str]:
    """Words of a list that the index ignores, such as "must"."""
    listed = (word for word in table("assignment")[name] if word in STOP_WORDS)
    return [word for word in listed if re.search(rf"\b{word}\b", draft.text, re.I)]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(repr(word) for word in list(words)[:5])


@cache
def _terms(*path: str) -> frozenset[str]:
    """The stems of a word list; not computed on import, because stemming loads a library."""
    words: Any = table("assignment")
    for name in path:
        words = words[name]
    return frozenset(terms(" ".join(words)))
