"""Operations that read many memories at once: summaries, and context for an activity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from alma.memory.filters import MemoryFilter
from alma.memory.summary import Sentence
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Name, Operation, Output, Prose, operation


class Summarize(InProject):
    where: MemoryFilter | None = Field(None, description="Which memories to summarize, for example a time range.")
    max_tokens: int = Field(300, ge=1, le=10_000)
    user_id: Name | None = None
    session_id: Name | None = None


class Summarized(Output):
    text: str
    method: str
    sentences: Sequence[Sentence] = ()
    memory_ids: Sequence[str] = ()
    degraded: str = ""


@operation("memories", Right.READ, example={"where": {"types": ["decision"]}, "max_tokens": 200})
def summarize(caller: Caller, request: Summarize) -> Summarized:
    """Summarize a session or a time range with sentences of the memories themselves."""
    session = caller.session(request.session_id, request.project_id)
    made = caller.store.journal.summarize(
        caller.scope(request.project_id, session_id=session),
        by=caller.by(user_id=request.user_id, session_id=session),
        where=request.where,
        max_tokens=request.max_tokens,
    )
    return Summarized.from_result(made)


class GetContext(InProject):
    activity: Prose = Field("", description="What the agent is about to do, in a few words.")
    files: Sequence[Annotated[str, StringConstraints(min_length=1, max_length=500)]] = Field((), max_length=50)
    git_branch: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = None
    max_tokens: int = Field(2_000, ge=0, le=100_000)
    user_id: Name | None = None
    session_id: Name | None = None
    agent: Name | None = None


class ContextPart(Output):
    kind: str
    id: str
    section: str
    reason: str
    text: str


class Context(Output):
    prompt: str
    items: Sequence[ContextPart]
    left_out: int = Field(description="The number of items that did not fit into max_tokens.")
    layers: Mapping[str, str] = Field(description="The layers that were searched, each with the reason.")
    degraded: str = ""


@operation(
    "memories",
    Right.READ,
    example={"activity": "fix the login timeout", "files": ["src/login.py"], "git_branch": "main"},
)
def get_context(caller: Caller, request: GetContext) -> Context:
    """Collect the memories that matter for an activity, a set of files and a branch, within a token budget."""
    session = caller.session(request.session_id, request.project_id)
    found = caller.store.journal.get_context(
        caller.scope(request.project_id),
        activity=request.activity,
        files=request.files,
        git_branch=request.git_branch,
        by=caller.by(user_id=request.user_id, agent=request.agent, session_id=session),
        max_tokens=request.max_tokens,
    )
    items = [
        ContextPart(kind=item.record.spec.kind, id=item.id, section=item.section, reason=item.reason, text=item.text)
        for item in found.items
    ]
    return Context(
        prompt=found.to_prompt(),
        items=items,
        left_out=len(found.left_out),
        layers={str(layer): reason for layer, reason in found.plan.reasons.items()},
        degraded=found.degraded,
    )


CONTEXT: tuple[Operation[Any, Any], ...] = (summarize, get_context)
