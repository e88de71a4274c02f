"""Operations on learning: retrieve before a task, learn after it, recommend a strategy, preferences and knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, StringConstraints

from alma.confidence import ConfidenceEngine
from alma.errors import NotFoundError
from alma.learning.recommendation import Assessed
from alma.model.kinds import kind_named
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.query import EVERYTHING, Cursor, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.operations.access import Caller, Right
from alma.operations.base import Hinted, InProject, Input, Limit, Name, Operation, Output, Prose, Text, operation
from alma.operations.retrieving import briefly
from alma.storage.base import StorageBackend

T = TypeVar("T", bound=Record)

# Ids start with their creation time.
_NEWEST = (Order("id", "desc"),)


def paged(
    storage: StorageBackend, cls: type[T], scope: Scope, where: Predicate, limit: int, cursor: str | None
) -> tuple[list[T], str | None]:
    """A page of records, and the cursor of the next page."""
    after = None if cursor is None else Cursor((cursor,), cursor)
    found = storage.find(cls, scope, where, _NEWEST, limit + 1, after)
    page = found[:limit]
    return page, str(page[-1].key) if len(found) > limit else None


VerifiedBy = Literal["tests", "tool", "human", "self-report"]
LearnedKind = Literal["heuristic", "outcome", "domain_knowledge", "anti_pattern"]
Supersedes = Annotated[
    Sequence[Name], Field(max_length=50, description="Ids of the facts this one supersedes, if known.")
]


class Learn(InProject):
    agent: Name = Field(description="The agent that did the task.")
    task: Text = Field(description="The task, in one or a few sentences.")
    outcome: Annotated[str, StringConstraints(min_length=1, max_length=40)] | bool = Field(
        description="success or failure; common synonyms are accepted."
    )
    strategy_used: Text = Field(description="What the agent did that mattered, in one sentence.")
    task_type: Name | None = Field(None, description="The domain of the task, which the agent's scope must allow.")
    duration_ms: int | None = Field(None, ge=0, le=10**12, description="The duration in milliseconds.")
    error_message: Prose | None = Field(None, description="What went wrong.")
    feedback: Prose | None = Field(None, description="What the user said about the result.")
    verified_by: VerifiedBy | None = Field(None, description="What verified the outcome; lessons weigh it accordingly.")
    retrieval_id: Name | None = Field(None, description="The retrieval_id of the memories that were used, if any.")


class LearnedFrom(Output):
    outcome: Outcome
    heuristic: Heuristic | None = Field(None, description="The lesson created or updated by this outcome.")
    anti_pattern: AntiPattern | None = Field(None, description="A strategy that failed often enough to be avoided.")
    notes: Sequence[str] = ()


@operation(
    "learning",
    Right.WRITE,
    example={
        "agent": "helena",
        "task": "Test the login form",
        "outcome": "success",
        "strategy_used": "wait for the network to be idle before asserting",
    },
)
def learn(caller: Caller, request: Learn) -> LearnedFrom:
    """Record the outcome of a task; repeated outcomes of a strategy become a lesson."""
    learned = caller.memory(request.project_id).learn(
        caller.agent(request.agent), **request.model_dump(exclude={"project_id", "agent"})
    )
    return LearnedFrom(
        outcome=learned.outcome,
        heuristic=learned.heuristic and briefly(learned.heuristic),
        anti_pattern=learned.anti_pattern and briefly(learned.anti_pattern),
        notes=learned.notes,
    )


class NotTheSame(InProject):
    heuristic_id: Name = Field(description="The lesson that counted the strategy as its own.")
    strategy: Text = Field(description="The strategy, exactly as in its outcomes.")
    agent: Name = Field(description="The agent of the lesson.")


class Separated(Output):
    outcome_ids: Sequence[str] = Field(description="The outcomes that now belong to a separate lesson.")


@operation(
    "learning",
    Right.WRITE,
    example={
        "heuristic_id": "01a1e0a2b81e7fc49d0ec9b96de703e8",
        "strategy": "retry twice",
        "agent": "helena",
    },
)
def not_the_same(caller: Caller, request: NotTheSame) -> Separated:
    """Separate a strategy from a lesson that counted it as the same, and keep them apart."""
    memory, agent = caller.memory(request.project_id), caller.agent(request.agent)
    return Separated(outcome_ids=memory.not_the_same(request.heuristic_id, request.strategy, agent))


class Conversation(InProject):
    agent: Name
    messages: Sequence[Mapping[str, Any]] = Field(
        min_length=1, max_length=1_000, description="The messages: objects with role and content."
    )
    user_id: Name | None = Field(None, description="The user whose preferences these are.")
    commit: bool = Field(True, description="Store the facts found; false only shows them.")


class FactsLearned(Output):
    report: Mapping[str, Any]


@operation(
    "learning",
    Right.WRITE,
    example={
        "agent": "helena",
        "user_id": "ana",
        "messages": [{"role": "user", "content": "Please always use dark mode in our screenshots."}],
    },
)
def learn_from_conversation(caller: Caller, request: Conversation) -> FactsLearned:
    """Extract facts and preferences from a conversation and store them; no language model is needed."""
    # Imported here: compiling the extraction rules takes as long as all other imports.
    from alma.extraction.auto_learner import AutoLearner

    learner = AutoLearner(caller.memory(request.project_id))
    report = learner.learn_from_conversation(
        request.messages, caller.agent(request.agent), caller.user(request.user_id), commit=request.commit
    )
    return FactsLearned(report=report)


class Recommend(InProject):
    task: Text
    agent: Name
    among: Sequence[Text] | None = Field(
        None, min_length=1, max_length=1_000, description="The strategies to choose from; default: all known ones."
    )
    explore: bool = Field(
        False,
        description="Also use evidence from less similar tasks, and sometimes recommend rarely tried strategies.",
    )


class Recommended(Hinted):
    strategy: str | None = Field(
        None, description="The recommended strategy; absent if nothing was tried on a similar task."
    )
    support: Literal["supported", "weak", "none"]
    reason: str
    ranked: Sequence[Assessed] = Field(description="The evidence for each strategy, best first.")


@operation("learning", Right.READ, example={"task": "Test the sign-up form", "agent": "helena"})
def recommend(caller: Caller, request: Recommend) -> Recommended:
    """Recommend a strategy for a task, with the evidence."""
    memory, agent = caller.memory(request.project_id), caller.agent(request.agent)
    return Recommended.from_result(memory.recommend(request.task, agent, request.among, explore=request.explore))


class Assess(InProject):
    strategies: Sequence[Text] = Field(min_length=1, max_length=100)
    context: Text = Field(description="The task for which to assess the strategies.")
    agent: Name


class Signal(Output):
    strategy: str
    confidence_score: float
    recommendation: str = Field(description="strong_yes, yes, neutral, caution or avoid")
    reasoning: str
    risks: Sequence[str] = ()
    opportunities: Sequence[str] = ()
    assessed: Assessed


class Signals(Hinted):
    signals: Sequence[Signal]


@operation(
    "learning",
    Right.READ,
    example={"strategies": ["retry three times"], "context": "Call the payment service", "agent": "victor"},
)
def assess_strategies(caller: Caller, request: Assess) -> Signals:
    """Rate how much each strategy can be trusted for a task, best first, with risks and opportunities."""
    engine = ConfidenceEngine(caller.memory(request.project_id))
    ranked = engine.rank_strategies(request.strategies, request.context, caller.agent(request.agent))
    return Signals(
        signals=[
            Signal(
                strategy=signal.strategy,
                confidence_score=signal.confidence_score,
                recommendation=str(signal.recommendation),
                reasoning=signal.reasoning,
                risks=[risk.description for risk in signal.risks],
                opportunities=[chance.description for chance in signal.opportunities],
                assessed=signal.assessed,
            )
            for signal in ranked
        ]
    )


class AddPreference(Input):
    user_id: Name
    category: Name = Field(description="The topic: communication, code_style, workflow …")
    preference: Text
    source: Name = "explicit_instruction"
    supersedes: Supersedes = ()


class PreferenceKept(Output):
    preference: UserPreference


@operation(
    "learning",
    Right.WRITE,
    example={"user_id": "ana", "category": "code_style", "preference": "No emoji in documentation"},
)
def add_preference(caller: Caller, request: AddPreference) -> PreferenceKept:
    """Store how a user wants things done."""
    given = request.model_dump(exclude={"user_id"})
    return PreferenceKept(preference=caller.store.add_user_preference(caller.required_user(request.user_id), **given))


class OfUser(Input):
    user_id: Name | None = Field(None, description="The user; default: the key's user.")
    category: Name | None = None


class Preferences(Output):
    preferences: Sequence[UserPreference]


@operation("learning", Right.READ, example={"user_id": "ana"})
def list_preferences(caller: Caller, request: OfUser) -> Preferences:
    """List a user's preferences."""
    kept = caller.store.storage.get_user_preferences(caller.required_user(request.user_id), request.category)
    return Preferences(preferences=kept)


class AddKnowledge(InProject):
    agent: Name
    domain: Name
    fact: Text
    source: Name = "user_stated"
    supersedes: Supersedes = ()


class KnowledgeKept(Output):
    knowledge: DomainKnowledge


@operation(
    "learning",
    Right.WRITE,
    example={"agent": "helena", "domain": "authentication", "fact": "The login form uses JWT with a day of validity"},
)
def add_knowledge(caller: Caller, request: AddKnowledge) -> KnowledgeKept:
    """Store a fact, if the agent may learn in this domain."""
    memory, agent = caller.memory(request.project_id), caller.agent(request.agent)
    kept = memory.add_domain_knowledge(
        agent, request.domain, request.fact, request.source, supersedes=request.supersedes
    )
    return KnowledgeKept(knowledge=kept)


class ListLearned(InProject):
    kind: LearnedKind = Field(description="heuristic, outcome, domain_knowledge or anti_pattern")
    agent: Name | None = None
    limit: Limit = 20
    cursor: Annotated[str, StringConstraints(max_length=1_000)] | None = Field(
        None, description="next_cursor of the previous page."
    )


class LearnedPage(Hinted):
    heuristics: Sequence[Heuristic] | None = None
    outcomes: Sequence[Outcome] | None = None
    domain_knowledge: Sequence[DomainKnowledge] | None = None
    anti_patterns: Sequence[AntiPattern] | None = None
    next_cursor: str | None = None

    @classmethod
    def of(cls, kind: str, records: Sequence[Record], next_cursor: str | None = None) -> LearnedPage:
        name = kind if kind == "domain_knowledge" else f"{kind}s"
        return cls.model_validate({name: records, "next_cursor": next_cursor})


@operation("learning", Right.READ, example={"kind": "heuristic", "agent": "helena"})
def list_learned(caller: Caller, request: ListLearned) -> LearnedPage:
    """List heuristics, outcomes, facts or anti-patterns, with pagination."""
    cls, scope = kind_named(request.kind), caller.project_scope(request.project_id, request.agent)
    records, next_cursor = paged(caller.store.storage, cls, scope, EVERYTHING, request.limit, request.cursor)
    return LearnedPage.of(request.kind, records, next_cursor)


class LearnedId(InProject):
    kind: LearnedKind
    id: Name


@operation("learning", Right.READ, example={"kind": "heuristic", "id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def get_learned(caller: Caller, request: LearnedId) -> LearnedPage:
    """Read one heuristic, outcome, fact or anti-pattern."""
    found = caller.store.storage.get(kind_named(request.kind), request.id, caller.project_scope(request.project_id))
    if found is None:
        raise NotFoundError(request.kind, request.id)
    return LearnedPage.of(request.kind, [found])


LEARNING: tuple[Operation[Any, Any], ...] = (
    learn,
    not_the_same,
    learn_from_conversation,
    recommend,
    assess_strategies,
    add_preference,
    list_preferences,
    add_knowledge,
    list_learned,
    get_learned,
)
