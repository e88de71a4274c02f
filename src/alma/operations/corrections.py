"""Operations on one memory of any kind: correct it, or forget it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import Field

from alma.errors import NotFoundError, ValidationError
from alma.model.governance import ArchiveCause
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Name, Operation, Output, Prose, Text, operation
from alma.operations.facts import OfFact, find_fact

_ID = "01a1e0a2b81e7fc49d0ec9b96de703e8"
_CORRECTED = "user_correction"
_GENERAL = "general"
_LEARNED: tuple[type[Record], ...] = (Heuristic, AntiPattern, Outcome)


class Correct(InProject):
    id: Name = Field(description="The id of the memory, fact or preference that is wrong, as a search returned it.")
    correction: Text = Field(description="What is right, as a complete statement that replaces the old one.")
    user_id: Name | None = Field(None, description="The user who corrects, or whose preference it is.")
    reason: Prose | None = Field(None, description="Why; kept in the history.")


class Corrected(Output):
    id: str = Field(description="The id of the correct memory.")
    kind: str
    superseded: str | None = Field(default=None, description="The id of the fact or preference that no longer holds.")
    quarantined: str | None = Field(default=None, description="Why the correction was quarantined and changed nothing.")


@operation(
    "memories",
    Right.WRITE,
    idempotent=True,
    example={"id": _ID, "correction": "The staging database is called heron.", "reason": "it was renamed"},
)
def correct(caller: Caller, request: Correct) -> Corrected:
    """Replace what a memory, fact or preference says.

    A general memory keeps its id and its history; a fact or a preference is superseded by a new one. Lessons change
    with the outcomes of tasks: use learn, or forget_one.
    """
    try:
        _, wrong = find_fact(caller, OfFact(memory_id=request.id, **_place(request)), request.id)
    except NotFoundError:
        _refuse_lesson(caller, request)
        raise
    if isinstance(wrong, Memory):
        return _updated(caller, request, wrong)
    made: UserPreference | DomainKnowledge
    if isinstance(wrong, UserPreference):
        owner = caller.required_user(wrong.user_id)
        made = caller.store.add_user_preference(
            owner, wrong.category or _GENERAL, request.correction, _CORRECTED, supersedes=[wrong.id]
        )
    else:
        assert isinstance(wrong, DomainKnowledge)
        memory = caller.memory(request.project_id)
        made = memory.add_domain_knowledge(
            caller.agent(wrong.agent), wrong.domain or _GENERAL, request.correction, _CORRECTED, supersedes=[wrong.id]
        )
    quarantined = made.metadata.get("quarantined")
    if quarantined is not None:
        return Corrected(id=wrong.id, kind=wrong.spec.kind, quarantined=str(quarantined))
    return Corrected(id=made.id, kind=made.spec.kind, superseded=wrong.id if made.id != wrong.id else None)


def _updated(caller: Caller, request: Correct, wrong: Memory) -> Corrected:
    caller.store.journal.update(
        wrong.id,
        {"content": request.correction},
        caller.scope(request.project_id),
        by=caller.by(user_id=request.user_id),
        reason=request.reason or "corrected",
    )
    return Corrected(id=wrong.id, kind=wrong.spec.kind)


def _refuse_lesson(caller: Caller, request: Correct) -> None:
    for cls, _ in _lessons(caller, request.project_id, request.id):
        raise ValidationError(
            "correct",
            "id",
            request.id,
            f"is a lesson ({cls.spec.kind}), which changes with outcomes: record what happened with learn, or remove "
            "the lesson with forget_one",
        )


class ForgetOne(InProject):
    id: Name = Field(description="The id of the memory, fact, preference or lesson.")
    user_id: Name | None = Field(None, description="The user who asks, or whose preference it is.")
    reason: Prose | None = Field(None, description="Why; kept with it.")


class OneForgotten(Output):
    id: str
    kind: str


@operation("memories", Right.DELETE, destructive=True, idempotent=True, example={"id": _ID, "reason": "no longer true"})
def forget_one(caller: Caller, request: ForgetOne) -> OneForgotten:
    """Forget one memory, fact, preference or lesson by its id; it can be restored until it is purged."""
    by, reason = caller.by(user_id=request.user_id), request.reason or None
    try:
        place, record = find_fact(caller, OfFact(memory_id=request.id, **_place(request)), request.id)
        cls, scope = place.cls, place.scope
    except NotFoundError:
        found = next(_lessons(caller, request.project_id, request.id), None)
        if found is None:
            raise
        cls, record = found
        scope = caller.project_scope(request.project_id)
    if cls is Memory:
        caller.store.journal.delete(request.id, scope, by=by, reason=reason)
    else:
        caller.store.archive.put(cls, request.id, scope, ArchiveCause.FORGOTTEN, reason, by, deleted=True)
    return OneForgotten(id=request.id, kind=record.spec.kind)


def _place(request: Correct | ForgetOne) -> dict[str, str | None]:
    return {"project_id": request.project_id, "user_id": request.user_id}


def _lessons(caller: Caller, project_id: str | None, record_id: str) -> Iterator[tuple[type[Record], Record]]:
    """The lesson or outcome with this id."""
    scope = caller.project_scope(project_id)
    for cls in _LEARNED:
        if (found := caller.store.storage.get(cls, record_id, scope)) is not None:
            yield cls, found


CORRECTIONS: tuple[Operation[Any, Any], ...] = (correct, forget_one)
