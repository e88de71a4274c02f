"""Operations before a task: the memories worth knowing, how each was scored, and what was left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AwareDatetime, Field

from alma.errors import ValidationError
from alma.model.injection import Block
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.record import Record
from alma.model.slice import DEFAULT_PROMPT_TOKENS, Dropped, Explanation, MemorySlice
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Name, Operation, Output, Text, operation
from alma.operations.places import places
from alma.operations.rows import Row, row_of
from alma.tokens import count_tokens

TopK = Annotated[int, Field(ge=1, le=100)]

Lesson = TypeVar("Lesson", Heuristic, AntiPattern)
# Results are limited to this many outcome ids; get_learned returns all of them.
_OUTCOMES_NAMED = 20
_MOST_DROPPED = 6


def briefly(lesson: Lesson) -> Lesson:
    """A lesson with only its newest outcome ids."""
    names = ("outcomes_for", "outcomes_against")
    long = {name: ids[-_OUTCOMES_NAMED:] for name in names if len(ids := getattr(lesson, name, ())) > _OUTCOMES_NAMED}
    return lesson.replace(**long) if long else lesson


class Retrieve(InProject):
    task: Text = Field(description="The task the agent is about to do, in one or a few sentences.")
    agent: Name = Field(description="The agent that does the task.")
    user_id: Name | None = Field(None, description="Whose preferences apply.")
    top_k: TopK = Field(5, description="The maximum number of memories of each kind.")
    session_id: Name | None = Field(None, description="The agent's session, to include memories visible only in it.")
    max_tokens: int = Field(DEFAULT_PROMPT_TOKENS, ge=0, le=100_000, description="The token budget of the prompt.")
    weak: bool = Field(False, description="Include weakly relevant memories, and show them in the prompt.")
    explain: bool = Field(False, description="Return the terms of every memory's score, and what was dropped and why.")
    why_not: Name | None = Field(None, description="The id of a memory: explain at which stage it was dropped.")
    already_shown: Name | None = Field(
        None,
        description="A session: leave out what a retrieve with this name showed, unless it changed, and return a "
        "stable block for the session and a block for the task.",
    )
    as_of: AwareDatetime | None = Field(
        None, description="Search what was recorded at this time, by words and meaning, without the relevance filter."
    )


class DroppedCandidate(Output):
    row: Row
    stage: str
    reason: str


class TextBlock(Output):
    text: str
    tokens: int
    ids: Sequence[str] = Field((), description="The memories in it.")

    @classmethod
    def of(cls, block: Block) -> TextBlock:
        return cls(text=block.text, tokens=block.tokens, ids=list(block.shown))


class Retrieved(Output):
    prompt: str = Field(description="The memories as text for a language model, within the token budget.")
    prompt_tokens: int = Field(0, description="The length of the prompt in tokens.")
    total_items: int
    heuristics: Sequence[Heuristic] = ()
    anti_patterns: Sequence[AntiPattern] = ()
    preferences: Sequence[UserPreference] = ()
    domain_knowledge: Sequence[DomainKnowledge] = ()
    outcomes: Sequence[Outcome] = ()
    memories: Sequence[Memory] = ()
    instructions: Sequence[Memory] = ()
    notes: Mapping[str, Sequence[str]] = Field(
        {}, description="By memory id: by what it was superseded or contradicted, and when."
    )
    maturity: Mapping[str, str] = Field(
        {}, description="By lesson id: corroborated, established, contested or retired; others are provisional."
    )
    stable_block: TextBlock | None = Field(
        default=None,
        description="With already_shown: the same text in every answer of the session, to begin prompts with.",
    )
    task_block: TextBlock | None = Field(
        default=None, description="With already_shown: what the session was not shown yet."
    )
    retrieval_id: str | None = Field(None, description="For learn, where the benefit of memories is measured.")
    retrieval_time_ms: float | None = None
    degraded: str = Field("", description="What was unavailable during retrieval; empty if everything worked.")
    hint: str = Field("", description="For an agent without memories: the known agent that was probably meant.")
    explanations: Sequence[Explanation] | None = None
    dropped: Sequence[DroppedCandidate] | None = Field(
        None, description="What shares words with the task and was left out, with the stage and the reason."
    )
    why_not: Dropped | None = None

    @classmethod
    def of(cls, found: MemorySlice, request: Retrieve) -> Retrieved:
        names = ("preferences", "domain_knowledge", "outcomes", "memories")
        blocks = found.blocks
        prompt = found.to_prompt(request.max_tokens) if blocks is None else blocks.fresh
        return cls(
            heuristics=list(map(briefly, found.heuristics)),
            anti_patterns=list(map(briefly, found.anti_patterns)),
            prompt=prompt,
            prompt_tokens=count_tokens(prompt) if request.explain or blocks is not None else 0,
            stable_block=None if blocks is None else TextBlock.of(blocks.stable),
            task_block=None if blocks is None else TextBlock.of(blocks.task),
            maturity=found.maturity,
            total_items=found.total_items,
            instructions=found.instructions,
            notes={key: each.notes for key, each in found.explanations.items() if each.notes},
            retrieval_id=found.retrieval_id,
            retrieval_time_ms=found.retrieval_time_ms,
            degraded=found.degraded,
            hint=found.hint,
            explanations=found.explain() if request.explain else None,
            why_not=found.why_not(request.why_not) if request.why_not else None,
            **{name: getattr(found, name) for name in names},
        )


@operation("learning", Right.READ, example={"task": "Add an export button to the report page", "agent": "helena"})
def retrieve(caller: Caller, request: Retrieve) -> Retrieved:
    """Retrieve the few memories worth knowing before a task.

    The result has the memories by kind and a prompt for a language model. It is empty for a task that resembles nothing
    stored.
    """
    if request.as_of is not None:
        if request.already_shown is not None:
            reason = "cannot be given with as_of: the past is not shown in a session"
            raise ValidationError("retrieve", "already_shown", request.already_shown, reason)
        return Retrieved.of(_as_of(caller, request, request.as_of), request)
    found = caller.memory(request.project_id).retrieve(
        request.task,
        caller.agent(request.agent),
        caller.user(request.user_id),
        request.top_k,
        session_id=request.session_id,
        memories_within=caller.scope(request.project_id),
        include_shared=caller.grant.agent is None,
        weak=request.weak,
        already_shown=request.already_shown,
        max_tokens=request.max_tokens,
    )
    retrieved = Retrieved.of(found, request)
    return retrieved.model_copy(update={"dropped": _dropped(caller, found, request)}) if request.explain else retrieved


def _dropped(caller: Caller, found: MemorySlice, request: Retrieve) -> list[DroppedCandidate]:
    """What shares words with the task and is not in the prompt."""
    dropped: list[DroppedCandidate] = []
    for place in places(caller, request.project_id, user_id=request.user_id):
        hits = caller.store.storage.search_text(place.cls, request.task, place.scope, place.where, _MOST_DROPPED)
        for hit in hits:
            why = found.why_not(str(hit.record.key))
            if why is not None:
                row = row_of(hit.record)
                is_foreign = why.stage == "scope" and place.cls is not Memory and row.agent not in (None, request.agent)
                reason = f"it belongs to the agent {row.agent}" if is_foreign else why.reason
                dropped.append(DroppedCandidate(row=row, stage=why.stage, reason=reason))
    return dropped


def _as_of(caller: Caller, request: Retrieve, moment: datetime) -> MemorySlice:
    """The slice of a past state of the store: the best of each kind by words and meaning."""
    agent, least = caller.agent(request.agent), caller.store.settings.threshold(None)
    found: dict[type[Record], list[Record]] = {}
    explanations = {}
    for place in places(caller, request.project_id, user_id=request.user_id):
        if place.cls is UserPreference and request.user_id is None:
            continue
        where = place.within(place.of_agent(agent)) if place.cls not in (Memory, UserPreference) else place.where
        hits = caller.store.history.search(
            place.cls,
            request.task,
            place.scope,
            where,
            request.top_k,
            mode="hybrid",
            known_at=moment,
            min_similarity=least,
        )
        found[place.cls] = [hit.record for hit in hits]
        for hit in hits:
            key = str(hit.record.key)
            explanations[key] = Explanation(place.kind, key, hit.score, {"words and meaning": hit.score}, ("history",))
    return MemorySlice.of(found, query=request.task, agent=agent, explanations=explanations)


RETRIEVING: tuple[Operation[Any, Any], ...] = (retrieve,)
