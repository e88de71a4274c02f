"""The router of layers: from which layers a question is answered, chosen from its words and from where it is asked."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.memory.filters import ALIVE, visible
from alma.memory.read_counts import add_judgement
from alma.model.common import checked_names
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory, MemoryAccess, MemoryRelationship
from alma.model.query import And, Compare, In, Or, Order, Predicate, matches
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction
from alma.text.timeexpr.extract import time_window

_HERE = re.compile(
    r"\b(?:this session|(?:just|right) now|a moment ago|so far|where (?:was|were) (?:i|we)|continue|go on|"
    r"(?:we|i|you) (?:just|were|was)|current(?:ly)?|working on|next step)\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"\b(?:prefer\w*|usual(?:ly)?|in general|generally|best practices?|as a rule|my (?:style|habits?|way)|"
    r"(?:other|all|every|any|across|which) projects?|elsewhere|do i (?:like|want))\b",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\b(?:when|since when|how long ago|history|timeline|changed|used to|used? before|previously|formerly|originally|"
    r"at (?:the|that) time|recent(?:ly)?|latest|last time|evolv\w+)\b",
    re.IGNORECASE,
)
PROMOTIONS = "promotions"
"""Under this key of a memory's context stands how it rose: from which layers to which, when and why."""
_EVERYWHERE = Scope.everywhere()
_PAGE = 500
# What stands against a memory is no reason to spread it.
_AGAINST = ("contradicts", "supersedes")
# A memory of no layer is the project's already and is not moved; what is everywhere cannot rise.
COULD_RISE: Predicate = And(
    Compare("layer_global", "eq", False),
    Or(Compare("layer_session", "eq", True), Compare("layer_project", "eq", True)),
)


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """The layers to look into, most telling first, each with its reason."""

    reasons: Mapping[Layer, str]

    @property
    def layers(self) -> tuple[Layer, ...]:
        return tuple(self.reasons)

    def __str__(self) -> str:
        return "; ".join(f"{layer}: {reason}" for layer, reason in self.reasons.items())


def route_layers(
    question: str,
    *,
    user_id: str | None = None,
    project_id: str | None = None,
    session_id: str | None = None,
    now: datetime | None = None,
) -> LayerPlan:
    """The layers that a question should be answered from.

    What its words ask for comes first. Its project always takes part, since most that is worth knowing is there, and
    where the words name no place so does every layer there is from here.
    """
    reasons = _asked_for(question, session_id, user_id, now or clock.now())
    told = Layer.SESSION in reasons or Layer.GLOBAL in reasons
    if project_id is not None:
        reasons.setdefault(Layer.PROJECT, "it is asked in a project")
    if not told:
        if session_id is not None:
            reasons[Layer.SESSION] = "it is asked in a session and names no place"
        if user_id is not None:
            reasons[Layer.GLOBAL] = "it names no place, and its user carries knowledge along"
    if not reasons:
        reasons = dict.fromkeys(Layer, "nothing says where to look")
    return LayerPlan(reasons)


def _asked_for(question: str, session_id: str | None, user_id: str | None, now: datetime) -> dict[Layer, str]:
    found: dict[Layer, str] = {}
    here = _HERE.search(question)
    if here is not None and session_id is not None:
        found[Layer.SESSION] = f"{here[0]!r} speaks of what is going on"
    everywhere = _GENERAL.search(question)
    if everywhere is not None and user_id is not None:
        found[Layer.GLOBAL] = f"{everywhere[0]!r} asks for what holds everywhere"
    window = time_window(question, now)
    history = _HISTORY.search(question)
    if window is not None:
        found[Layer.TEMPORAL] = f"{window.phrase!r} names a time"
    elif history is not None:
        found[Layer.TEMPORAL] = f"{history[0]!r} asks how things went over time"
    return found


@dataclass(frozen=True, slots=True)
class PromotionRules:
    """From which evidence on a memory is promoted; other sessions are those that did not write it."""

    project_after_sessions: int = 2
    project_after_references: int = 2
    project_after_helpful: int = 1
    project_from_importance: float = 0.8
    global_after_sessions: int = 5
    global_after_helpful: int = 3
    global_from_importance: float = 0.95

    def __post_init__(self) -> None:
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise ValidationError("promotion_rules", each.name, value, "must be a number above 0")


DEFAULT_RULES = PromotionRules()


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a memory: who else read it, what refers to it, whom it helped."""

    sessions: int = 0
    references: int = 0
    helpful: int = 0
    unhelpful: int = 0


@dataclass(frozen=True, slots=True)
class Promotion:
    """A memory that rises, from which layers to which, by which rule and why."""

    memory_id: str
    before: tuple[Layer, ...]
    to: Layer
    rule: str
    reason: str
    evidence: Evidence

    @property
    def after(self) -> tuple[Layer, ...]:
        """The layers it is in afterwards: those it was in, and the one it rises to."""
        return tuple(layer for layer in Layer if layer in self.before or layer is self.to)


class Promotions:
    """Proposes, makes and takes back promotions."""

    def __init__(self, storage: StorageBackend, rules: PromotionRules) -> None:
        self._storage = storage
        self._rules = rules

    def proposed(self, scope: Scope, by: Attribution) -> list[Promotion]:
        """What the rules would promote inside the scope, as far as the caller may see it."""
        where = And(visible(scope, by), ALIVE.predicate(clock.now()), COULD_RISE)
        found: list[Promotion] = []
        page: list[Memory] = []
        # Newest first, which is the order that pages through a scope are indexed in.
        for memory in self._storage.iterate(Memory, scope, where, (Order("created_at", "desc"),), _PAGE):
            page.append(memory)
            if len(page) == _PAGE:
                found.extend(self._judged(page))
                page = []
        found.extend(self._judged(page))
        return found

    def promote(
        self, scope: Scope, by: Attribution, memory_ids: Iterable[str] | None, *, dry_run: bool
    ) -> list[Promotion]:
        """Make the proposed promotions, each with a version that says why."""
        chosen = None if memory_ids is None else set(checked_names("promote", "memory_ids", memory_ids))
        proposed = [each for each in self.proposed(scope, by) if chosen is None or each.memory_id in chosen]
        if dry_run:
            return proposed
        return [each for each in proposed if self._promoted(each, scope, by)]

    def demote(self, memory_id: str, scope: Scope, by: Attribution, reason: str | None) -> Memory:
        """Take the last promotion back."""

        def take_back(tx: Transaction) -> Memory:
            for memory in tx.lock(Memory, [memory_id], scope):
                if matches(visible(scope, by), memory):
                    changed = _demoted(memory)
                    tx.save(changed)
                    # Or the same evidence would let it rise again.
                    add_judgement(tx, memory_id, False, by.session_id)
                    return changed
            raise NotFoundError("memory", memory_id)

        because = dataclasses.replace(by, reason=reason or by.reason or "its last promotion was taken back")
        return self._storage.write(take_back, because)

    def _promoted(self, promotion: Promotion, scope: Scope, by: Attribution) -> bool:
        because = dataclasses.replace(by, reason=f"promoted to {promotion.to}: {promotion.reason}")

        def rise(tx: Transaction) -> bool:
            for memory in tx.lock(Memory, [promotion.memory_id], scope):
                # Another process may have moved it meanwhile.
                if _layers(memory) == promotion.before and matches(visible(scope, by), memory):
                    tx.save(_risen(memory, promotion, clock.now()))
                    return True
            return False

        return self._storage.write(rise, because)

    # ------------------------------------------------------------------ the rules

    def _judged(self, memories: Sequence[Memory]) -> Iterable[Promotion]:
        evidence = gather_evidence(self._storage, memories)
        for memory in memories:
            verdict = self._verdict(memory, evidence[memory.id])
            if verdict is not None:
                to, rule, reason = verdict
                yield Promotion(memory.id, _layers(memory), to, rule, reason, evidence[memory.id])

    def _verdict(self, memory: Memory, seen: Evidence) -> tuple[Layer, str, str] | None:
        if seen.unhelpful > seen.helpful:
            return None
        if not (memory.layer_project or memory.layer_global):
            return None if memory.project_id is None else self._for_project(memory, seen)
        if memory.layer_global or memory.user_id is None:
            return None
        return self._for_everywhere(memory, seen)

    def _for_project(self, memory: Memory, seen: Evidence) -> tuple[Layer, str, str] | None:
        rules = self._rules
        if seen.sessions >= rules.project_after_sessions:
            return Layer.PROJECT, "read by others", f"{seen.sessions} other sessions read it"
        if seen.helpful >= rules.project_after_helpful:
            return Layer.PROJECT, "helped", f"it was said to help {seen.helpful} times"
        if seen.references >= rules.project_after_references:
            return Layer.PROJECT, "referred to", f"{seen.references} memories refer to it"
        if memory.importance_score >= rules.project_from_importance:
            return Layer.PROJECT, "important", f"its importance is {memory.importance_score:g}"
        return None

    def _for_everywhere(self, memory: Memory, seen: Evidence) -> tuple[Layer, str, str] | None:
        rules = self._rules
        if seen.helpful >= rules.global_after_helpful:
            return Layer.GLOBAL, "helped", f"it was said to help {seen.helpful} times"
        if seen.sessions >= rules.global_after_sessions and memory.importance_score >= rules.project_from_importance:
            worth = f"its importance is {memory.importance_score:g}"
            return Layer.GLOBAL, "read by many", f"{seen.sessions} other sessions read it and {worth}"
        if memory.importance_score >= rules.global_from_importance and seen.sessions >= rules.project_after_sessions:
            return Layer.GLOBAL, "important", f"its importance is {memory.importance_score:g} and others read it"
        return None


def gather_evidence(storage: StorageBackend, memories: Sequence[Memory]) -> dict[str, Evidence]:
    """What speaks for each of these memories."""
    by_id = {memory.id: memory for memory in memories}
    if not by_id:
        return {}
    found = {key: Evidence() for key in by_id}
    for row in storage.find(MemoryAccess, _EVERYWHERE, In("memory_id", list(by_id))):
        seen = found[row.memory_id]
        other = row.session_id is not None and row.session_id != by_id[row.memory_id].session_id
        found[row.memory_id] = dataclasses.replace(
            seen,
            sessions=seen.sessions + (other and row.access_count > 0),
            helpful=seen.helpful + row.helpful_count,
            unhelpful=seen.unhelpful + row.unhelpful_count,
        )
    for edge in storage.find(MemoryRelationship, _EVERYWHERE, In("to_memory_id", list(by_id))):
        if edge.relationship_type not in _AGAINST:
            seen = found[edge.to_memory_id]
            found[edge.to_memory_id] = dataclasses.replace(seen, references=seen.references + 1)
    return found


def _layers(memory: Memory) -> tuple[Layer, ...]:
    return tuple(layer for layer in Layer if layer in memory.layers)


def _risen(memory: Memory, promotion: Promotion, moment: datetime) -> Memory:
    step = {
        "from": [str(layer) for layer in promotion.before],
        "to": str(promotion.to),
        "rule": promotion.rule,
        "reason": promotion.reason,
        "at": moment.isoformat(),
    }
    steps = [*_steps(memory), step]
    return memory.in_layers(promotion.after).replace(context_json={**memory.context_json, PROMOTIONS: steps})


def _demoted(memory: Memory) -> Memory:
    steps = _steps(memory)
    if not steps:
        raise ValidationError("memory", "layers", memory.id, "cannot be demoted, it was never promoted")
    context = {key: value for key, value in memory.context_json.items() if key != PROMOTIONS}
    if steps[:-1]:
        context[PROMOTIONS] = steps[:-1]
    return memory.in_layers(steps[-1]["from"]).replace(context_json=context)


def _steps(memory: Memory) -> list[dict[str, Any]]:
    steps = memory.context_json.get(PROMOTIONS)
    return list(steps) if isinstance(steps, list) else []
