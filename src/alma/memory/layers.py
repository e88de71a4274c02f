"""Layers: which of them a question searches, and how memories are promoted to wider ones and demoted again."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from alma import clock
from alma.errors import NotFoundError, ValidationError
from alma.memory.filters import ALIVE, visible
from alma.memory.read_counts import add_feedback
from alma.memory.tuning import phrases
from alma.model.common import checked_names
from alma.model.governance import Attribution
from alma.model.memory import Layer, Memory, MemoryAccess, MemoryRelationship
from alma.model.query import And, Compare, In, Or, Order, Predicate, matches
from alma.model.scope import Scope
from alma.storage.base import StorageBackend, Transaction
from alma.text.timeexpr import resolve

PROMOTIONS = "promotions"
"""The key of a memory's context that holds its promotions: from which layers to which, when and why."""
_EVERYWHERE = Scope.everywhere()
_PAGE = 500
_NOT_EVIDENCE = ("contradicts", "supersedes")
# A memory without layers already belongs to the project.
PROMOTABLE: Predicate = And(
    Compare("layer_global", "eq", False),
    Or(Compare("layer_session", "eq", True), Compare("layer_project", "eq", True)),
)


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """The layers to search, most relevant first, each with its reason."""

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
    """Choose the layers to search from the words of the query and from its scope.

    The project layer is always searched in a project. A question that names neither the session nor the global layer
    searches both, as far as there is a session or a user.
    """
    reasons = _named_layers(question, session_id, user_id, now or clock.now())
    names_a_layer = Layer.SESSION in reasons or Layer.GLOBAL in reasons
    if project_id is not None:
        reasons.setdefault(Layer.PROJECT, "the query has a project")
    if not names_a_layer:
        if session_id is not None:
            reasons[Layer.SESSION] = "the query has a session and names no layer"
        if user_id is not None:
            reasons[Layer.GLOBAL] = "the query names no layer and has a user"
    return LayerPlan(reasons or dict.fromkeys(Layer, "the query names no layer and has no scope"))


def _named_layers(question: str, session_id: str | None, user_id: str | None, now: datetime) -> dict[Layer, str]:
    found: dict[Layer, str] = {}
    session = phrases("asks_for_session").search(question)
    if session is not None and session_id is not None:
        found[Layer.SESSION] = f"{session[0]!r} asks for the current session"
    everywhere = phrases("asks_for_global").search(question)
    if everywhere is not None and user_id is not None:
        found[Layer.GLOBAL] = f"{everywhere[0]!r} asks for what holds everywhere"
    if (window := resolve(question, now)) is not None:
        found[Layer.TEMPORAL] = f"{window.phrase!r} names a time"
    elif (past := phrases("asks_for_history").search(question)) is not None:
        found[Layer.TEMPORAL] = f"{past[0]!r} asks for the history"
    return found


# ---------------------------------------------------------------------- promotion


@dataclass(frozen=True, slots=True)
class PromotionRules:
    """How much evidence a promotion needs; other sessions are those that did not write the memory."""

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
    """Counts for and against a promotion: other sessions that read it, references to it, helpful and unhelpful."""

    sessions: int = 0
    references: int = 0
    helpful: int = 0
    unhelpful: int = 0


@dataclass(frozen=True, slots=True)
class Promotion:
    """A promotion of a memory: from which layers to which, by which rule and why."""

    memory_id: str
    before: tuple[Layer, ...]
    to: Layer
    rule: str
    reason: str
    evidence: Evidence

    @property
    def after(self) -> tuple[Layer, ...]:
        """The layers after the promotion."""
        return tuple(layer for layer in Layer if layer in self.before or layer is self.to)


class Promotions:
    """Proposes, applies and reverts promotions."""

    def __init__(self, storage: StorageBackend, rules: PromotionRules) -> None:
        self._storage = storage
        self._rules = rules

    def proposed(self, scope: Scope, by: Attribution) -> list[Promotion]:
        """The promotions that the rules propose for visible memories inside the scope."""
        where = And(visible(scope, by), ALIVE.predicate(clock.now()), PROMOTABLE)
        found: list[Promotion] = []
        page: list[Memory] = []
        # Newest first, the order that is indexed.
        for memory in self._storage.iterate(Memory, scope, where, (Order("created_at", "desc"),), _PAGE):
            page.append(memory)
            if len(page) == _PAGE:
                found.extend(self._proposals(page))
                page = []
        found.extend(self._proposals(page))
        return found

    def promote(
        self, scope: Scope, by: Attribution, memory_ids: Iterable[str] | None, *, dry_run: bool
    ) -> list[Promotion]:
        """Apply the proposed promotions; the new version of each memory has the reason."""
        chosen = None if memory_ids is None else set(checked_names("promote", "memory_ids", memory_ids))
        proposed = [each for each in self.proposed(scope, by) if chosen is None or each.memory_id in chosen]
        if dry_run:
            return proposed
        return [each for each in proposed if self._promoted(each, scope, by)]

    def demote(self, memory_id: str, scope: Scope, by: Attribution, reason: str | None) -> Memory:
        """Revert the last promotion."""

        def revert(tx: Transaction) -> Memory:
            for memory in tx.lock(Memory, [memory_id], scope):
                if matches(visible(scope, by), memory):
                    changed = _demoted(memory)
                    tx.save(changed)
                    # Otherwise the same evidence would promote it again.
                    add_feedback(tx, memory_id, False, by.session_id)
                    return changed
            raise NotFoundError("memory", memory_id)

        because = dataclasses.replace(by, reason=reason or by.reason or "its last promotion was reverted")
        return self._storage.write(revert, because)

    def _promoted(self, promotion: Promotion, scope: Scope, by: Attribution) -> bool:
        because = dataclasses.replace(by, reason=f"promoted to {promotion.to}: {promotion.reason}")

        def apply(tx: Transaction) -> bool:
            for memory in tx.lock(Memory, [promotion.memory_id], scope):
                # Another process may have changed its layers.
                if _layers(memory) == promotion.before and matches(visible(scope, by), memory):
                    tx.save(_promoted_memory(memory, promotion, clock.now()))
                    return True
            return False

        return self._storage.write(apply, because)

    # ------------------------------------------------------------------ the rules

    def _proposals(self, memories: Sequence[Memory]) -> Iterable[Promotion]:
        evidence = gather_evidence(self._storage, memories)
        for memory in memories:
            decision = self._decision(memory, evidence[memory.id])
            if decision is not None:
                to, rule, reason = decision
                yield Promotion(memory.id, _layers(memory), to, rule, reason, evidence[memory.id])

    def _decision(self, memory: Memory, evidence: Evidence) -> tuple[Layer, str, str] | None:
        if evidence.unhelpful > evidence.helpful:
            return None
        if not (memory.layer_project or memory.layer_global):
            return None if memory.project_id is None else self._for_project(memory, evidence)
        if memory.layer_global or memory.user_id is None:
            return None
        return self._for_global(memory, evidence)

    def _for_project(self, memory: Memory, evidence: Evidence) -> tuple[Layer, str, str] | None:
        rules = self._rules
        if evidence.sessions >= rules.project_after_sessions:
            return Layer.PROJECT, "read by others", f"{evidence.sessions} other sessions read it"
        if evidence.helpful >= rules.project_after_helpful:
            return Layer.PROJECT, "helped", f"it was marked helpful {evidence.helpful} times"
        if evidence.references >= rules.project_after_references:
            return Layer.PROJECT, "referred to", f"{evidence.references} memories refer to it"
        if memory.importance_score >= rules.project_from_importance:
            return Layer.PROJECT, "important", f"its importance is {memory.importance_score:g}"
        return None

    def _for_global(self, memory: Memory, evidence: Evidence) -> tuple[Layer, str, str] | None:
        rules = self._rules
        if evidence.helpful >= rules.global_after_helpful:
            return Layer.GLOBAL, "helped", f"it was marked helpful {evidence.helpful} times"
        if (
            evidence.sessions >= rules.global_after_sessions
            and memory.importance_score >= rules.project_from_importance
        ):
            worth = f"its importance is {memory.importance_score:g}"
            return Layer.GLOBAL, "read by many", f"{evidence.sessions} other sessions read it and {worth}"
        if (
            memory.importance_score >= rules.global_from_importance
            and evidence.sessions >= rules.project_after_sessions
        ):
            return Layer.GLOBAL, "important", f"its importance is {memory.importance_score:g} and others read it"
        return None


def gather_evidence(storage: StorageBackend, memories: Sequence[Memory]) -> dict[str, Evidence]:
    """The evidence for promoting each of these memories."""
    by_id = {memory.id: memory for memory in memories}
    if not by_id:
        return {}
    found = {key: Evidence() for key in by_id}
    for row in storage.find(MemoryAccess, _EVERYWHERE, In("memory_id", list(by_id))):
        counts = found[row.memory_id]
        other = row.session_id is not None and row.session_id != by_id[row.memory_id].session_id
        found[row.memory_id] = dataclasses.replace(
            counts,
            sessions=counts.sessions + (other and row.access_count > 0),
            helpful=counts.helpful + row.helpful_count,
            unhelpful=counts.unhelpful + row.unhelpful_count,
        )
    for edge in storage.find(MemoryRelationship, _EVERYWHERE, In("to_memory_id", list(by_id))):
        if edge.relationship_type not in _NOT_EVIDENCE:
            counts = found[edge.to_memory_id]
            found[edge.to_memory_id] = dataclasses.replace(counts, references=counts.references + 1)
    return found


def _layers(memory: Memory) -> tuple[Layer, ...]:
    return tuple(layer for layer in Layer if layer in memory.layers)


def _promoted_memory(memory: Memory, promotion: Promotion, moment: datetime) -> Memory:
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
