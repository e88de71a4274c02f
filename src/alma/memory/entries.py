"""Entries: what a caller says of a memory, checked and turned into the fields of one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from alma import clock
from alma.errors import ScopeViolationError, ValidationError
from alma.memory.filters import checked_layer
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory
from alma.text.timeexpr.extract import time_window
from alma.text.tokens import STOP_WORDS, terms, words_by_term

MOST_BYTES = 1 << 20
Content = str | Mapping[str, Any]
# What the store keeps count of, or what would make it another memory.
_FIXED = ("id", "created_at", "updated_at", "access_count", "last_accessed_at", "embedding")
MEMORY_TYPES = (
    "decision",
    "task",
    "progress",
    "insight",
    "pattern",
    "error",
    "solution",
    "note",
    "conversation",
    "context",
    "user_preference",
    "agent_state",
    "entity",
    "interaction",
)
"""The documented types; others may be used as well and are treated as notes."""
ASSIGNED = "assigned"
"""Under this key of a memory's context stands what was assigned, by which rule and why."""
CATEGORY_WORDS: Mapping[str, str] = {
    "security": "security secret password token vulnerability encryption authentication authorization login permission "
    "credential certificate csrf xss oauth rotate tls",
    "database": "database schema sql postgres postgresql sqlite mysql query index migration table transaction redis",
    "testing": "test pytest unittest fixture coverage assertion mock flaky regression ci",
    "deployment": "deploy deployment release rollout docker kubernetes container pipeline staging production helm host",
    "performance": "performance latency slow fast throughput cache memory profiling benchmark optimize timeout lag",
    "api": "api endpoint rest graphql http request response webhook client json route",
    "frontend": "ui frontend css html react svelte vue component layout button browser page form design screen menu "
    "footer",
    "architecture": "architecture module service microservice layer interface boundary pattern component dependency "
    "structure refactor monolith",
    "debugging": "error exception traceback crash bug stacktrace failure fix debug broken",
    "build": "build compile package version upgrade library install lockfile dependency makefile",
    "documentation": "documentation docs readme changelog comment tutorial guide",
    "compliance": "gdpr legal compliance privacy license contract regulation",
    "process": "meeting deadline sprint review plan milestone estimate ticket roadmap standup",
}
_CATEGORY_OF_TYPE = {
    "error": "debugging",
    "solution": "debugging",
    "user_preference": "preference",
    "conversation": "conversation",
    "interaction": "conversation",
    "agent_state": "state",
    "entity": "knowledge",
    "task": "process",
    "progress": "process",
}
_IMPORTANCE_OF_TYPE = {
    "decision": 0.7,
    "pattern": 0.7,
    "solution": 0.7,
    "user_preference": 0.7,
    "instruction": 0.8,
    "insight": 0.65,
    "error": 0.6,
    "task": 0.55,
    "entity": 0.5,
    "note": 0.5,
    "context": 0.45,
    "progress": 0.4,
    "conversation": 0.4,
    "interaction": 0.35,
    "agent_state": 0.3,
}
_WEIGHTY = "critical important must never always security breaking production deadline urgent outage incident legal"
_SLIGHT = "maybe minor trivial typo cosmetic fyi someday temporary draft perhaps"
_SHORT = 20
_READ = 4_000
_OF_THE_MOMENT = frozenset(("conversation", "context", "interaction", "agent_state", "progress"))
_OF_THE_USER = frozenset(("user_preference",))
_EVERYWHERE = re.compile(
    r"\b(?:in (?:every|all|each) (?:my )?projects?|across (?:all )?projects|in general|as a rule|"
    r"i (?:always |usually )?prefer)\b",
    re.IGNORECASE,
)
_DAY = "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_AHEAD = re.compile(
    rf"\b(?:tomorrow|tonight|next (?:week|month|quarter|year|sprint|{_DAY})|(?:by|to|until|till) {_DAY})\b",
    re.IGNORECASE,
)


def new_memory(content: Content, fields: Mapping[str, Any], by: Attribution) -> Memory:
    """The memory that a caller describes; whose it is comes from the attribution where it is not said."""
    values = {**plain_fields({**fields, "content": content})}
    for name, known in (("user_id", by.user_id), ("session_id", by.session_id), ("source_agent", by.agent)):
        if values.get(name) is None and known is not None:
            values[name] = known
    memory = Memory(**values)
    _check_owner(memory)
    return memory


def changed_memory(memory: Memory, changes: Mapping[str, Any]) -> Memory:
    """The memory with these changes, as of now."""
    changed = memory.replace(**changes, updated_at=clock.now())
    _check_owner(changed)
    if changed.text() != memory.text() and "embedding" not in changes:
        # The vector of what it no longer says must not be found.
        changed = changed.replace(embedding=None)
    return changed


def checked_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes as fields of a memory, none of them one that the journal looks after itself."""
    if not isinstance(changes, Mapping) or not changes:
        raise ValidationError("memory", None, changes, "needs the fields to change, as a dict")
    for name in _FIXED:
        if name in changes:
            raise ValidationError("memory", name, changes[name], "cannot be changed")
    values = plain_fields(changes)
    for name, value in values.items():
        Memory.spec.field(name)
        Memory.spec.checked(name, value)
    return values


def plain_fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a memory, where layers may be named, a time to live given, and content be JSON with a text."""
    values = dict(given)
    if "content" in values:
        values.update(_content(values["content"], values.get("content_json")))
    if "layers" in values:
        values.update(_layer_flags(values.pop("layers")))
    if "ttl_seconds" in values:
        values["expires_at"] = _expiry(values.pop("ttl_seconds"), values.get("expires_at"))
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


def _expiry(ttl_seconds: Any, expires_at: datetime | None) -> datetime | None:
    if ttl_seconds is None:
        return expires_at
    if expires_at is not None:
        raise ValidationError("memory", "ttl_seconds", ttl_seconds, "cannot be given together with expires_at")
    if isinstance(ttl_seconds, bool) or not isinstance(ttl_seconds, int | float) or not ttl_seconds > 0:
        raise ValidationError("memory", "ttl_seconds", ttl_seconds, "must be a number above 0")
    try:
        return clock.now() + timedelta(seconds=ttl_seconds)
    except OverflowError:
        raise ValidationError("memory", "ttl_seconds", ttl_seconds, "is further than time goes; leave it out") from None


def _check_owner(memory: Memory) -> None:
    if memory.user_id is None and memory.project_id is None and memory.session_id is None:
        raise ScopeViolationError("memory", None, None, "must belong to a user, a project or a session; name one")
    if memory.is_private and memory.user_id is None:
        raise ValidationError("memory", "is_private", True, "needs a user_id: only that user will see it")


@dataclass(frozen=True, slots=True)
class Assigned:
    """A value that was assigned, the rule that did it and its reason in a sentence."""

    value: Any
    rule: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, "rule": self.rule, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Draft:
    """What is known of a memory before anything is assigned."""

    text: str
    memory_type: str
    tags: tuple[str, ...] = ()
    user_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None
    is_dated: bool = False
    expires: bool = False
    words: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, memory: Memory) -> Draft:
        text = memory.text()[:_READ]
        return cls(
            text=text,
            memory_type=memory.memory_type,
            tags=tuple(memory.tags),
            user_id=memory.user_id,
            project_id=memory.project_id,
            session_id=memory.session_id,
            is_dated=memory.event_time is not None,
            expires=memory.expires_at is not None,
            words=words_by_term(text),
        )


def with_assigned(memory: Memory, given: Iterable[str], *, categorize: bool = True) -> Memory:
    """The memory with what was not given assigned, and the reasons kept in its context."""
    known, draft = set(given), Draft.of(memory)
    found: dict[str, Assigned] = {}
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
    reasons = {name: each.to_json() for name, each in found.items()}
    return memory.replace(**changes, context_json={**memory.context_json, ASSIGNED: reasons})


def category_of(draft: Draft) -> Assigned:
    """The category whose words a memory has most of; a tag that names one decides."""
    for tag in draft.tags:
        if tag.casefold() in CATEGORY_WORDS:
            return Assigned(tag.casefold(), "tag", f"it is tagged {tag!r}")
    said: dict[str, list[str]] = {
        category: [draft.words[term] for term in draft.words if term in known]
        for category, known in ((name, _terms_of(words)) for name, words in CATEGORY_WORDS.items())
    }
    order = {word: place for place, word in enumerate(draft.words.values())}
    # Of those it has as many words of, the one that it begins with.
    best = max(
        said, key=lambda category: (len(said[category]), -min(map(order.__getitem__, said[category]), default=0))
    )
    if said[best]:
        return Assigned(best, "words", f"it speaks of {_listed(said[best])}")
    by_type = _CATEGORY_OF_TYPE.get(draft.memory_type)
    if by_type is not None:
        return Assigned(by_type, "type", f"that is where a memory of type {draft.memory_type} belongs")
    return Assigned("general", "default", "no word of it belongs to a category")


def importance_for(draft: Draft) -> Assigned:
    """What its type is usually worth, more for weighty words, less for slight ones and for a mere remark."""
    score = _IMPORTANCE_OF_TYPE.get(draft.memory_type, 0.5)
    reasons = [f"a memory of type {draft.memory_type} starts at {score:g}"]
    weighty = _of_these(draft, _WEIGHTY)
    slight = _of_these(draft, _SLIGHT)
    if weighty:
        score += min(0.2, 0.1 * len(weighty))
        reasons.append(f"more for {_listed(weighty)}")
    if slight:
        score -= min(0.2, 0.1 * len(slight))
        reasons.append(f"less for {_listed(slight)}")
    if len(draft.text) < _SHORT:
        score -= 0.1
        reasons.append("less because it is short")
    return Assigned(round(min(1.0, max(0.0, score)), 2), "type and words", "; ".join(reasons))


def layers_of(draft: Draft) -> Assigned:
    """Where a memory belongs by its type, among the places it has; and to time, where it speaks of one."""
    home, reason = _home(draft)
    layers, reasons = [home], [reason]
    if home is not Layer.GLOBAL and draft.user_id is not None and _EVERYWHERE.search(draft.text):
        layers.append(Layer.GLOBAL)
        reasons.append("it says that it holds everywhere")
    in_time = _in_time(draft)
    if in_time:
        layers.append(Layer.TEMPORAL)
        reasons.append(in_time)
    return Assigned([str(layer) for layer in layers], "type and place", "; ".join(reasons))


def _home(draft: Draft) -> tuple[Layer, str]:
    kind = draft.memory_type
    if kind in _OF_THE_USER and draft.user_id is not None:
        return Layer.GLOBAL, f"a {kind} goes with its user from project to project"
    if kind in _OF_THE_MOMENT and draft.session_id is not None:
        return Layer.SESSION, f"a memory of type {kind} belongs to its session"
    if draft.project_id is not None:
        return Layer.PROJECT, f"a memory of type {kind} belongs to its project"
    if draft.session_id is not None:
        return Layer.SESSION, "it has a session and no project"
    return Layer.GLOBAL, "it has neither a session nor a project"


def _in_time(draft: Draft) -> str:
    if draft.is_dated:
        return "it says when it happened"
    if draft.expires:
        return "it expires"
    window = time_window(draft.text, clock.now())
    # An event that memory would have to date first is no time yet.
    is_past = window is not None and window.anchor is None
    return "it speaks of a time" if is_past or _AHEAD.search(draft.text) else ""


def _of_these(draft: Draft, words: str) -> list[str]:
    """Which of these words a memory has; some, as must, tell nothing in a search."""
    plain = [word for word in words.split() if word in STOP_WORDS and re.search(rf"\b{word}\b", draft.text, re.I)]
    return [*plain, *(word for term, word in draft.words.items() if term in _terms_of(words))]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(repr(word) for word in list(words)[:5])


@cache
def _terms_of(words: str) -> frozenset[str]:
    # Not on import: cutting words loads a library.
    return frozenset(terms(words))
