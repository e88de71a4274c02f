"""Operations on what agents learn: handing over, learning, recommending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, StringConstraints

from alma.confidence.engine import ConfidenceEngine
from alma.errors import NotFoundError
from alma.learning.recommendation import Assessed
from alma.model.kinds import kind_named
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.query import EVERYTHING, Cursor, Order, Predicate
from alma.model.record import Record
from alma.model.scope import Scope
from alma.model.slice import DEFAULT_PROMPT_TOKENS, Dropped, Explanation, MemorySlice
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Input, Limit, Name, Operation, Output, Prose, Text, operation
from alma.storage.base import StorageBackend

T = TypeVar("T", bound=Record)

# Ids begin with the time they were made at.
_NEWEST = (Order("id", "desc"),)


def paged(
    storage: StorageBackend, cls: type[T], scope: Scope, where: Predicate, limit: int, cursor: str | None
) -> tuple[list[T], str | None]:
    """A page of records, and the cursor that continues behind it."""
    after = None if cursor is None else Cursor((cursor,), cursor)
    found = storage.find(cls, scope, where, _NEWEST, limit + 1, after)
    page = found[:limit]
    return page, str(page[-1].key) if len(found) > limit else None


LearnedKind = Literal["heuristic", "outcome", "domain_knowledge", "anti_pattern"]
Supersedes = Annotated[
    Sequence[Name], Field(max_length=50, description="Ids of what it replaces, where the judge need not find out.")
]
TopK = Annotated[int, Field(ge=1, le=100)]


Lesson = TypeVar("Lesson", Heuristic, AntiPattern)
# Whoever reads an answer pays for each; all of them are in the record itself.
_OUTCOMES_NAMED = 20


def _briefly(lesson: Lesson) -> Lesson:
    """A lesson with the newest of its outcomes, where it names many."""
    names = ("outcomes_for", "outcomes_against")
    long = {name: ids[-_OUTCOMES_NAMED:] for name in names if len(ids := getattr(lesson, name, ())) > _OUTCOMES_NAMED}
    return lesson.replace(**long) if long else lesson


class Retrieve(InProject):
    task: Text = Field(description="The task the agent is about to do.")
    agent: Name = Field(description="The agent that asks.")
    user_id: Name | None = Field(None, description="Whose preferences apply.")
    top_k: TopK = Field(5, description="At most so many memories of each kind.")
    session_id: Name | None = Field(None, description="The session the agent is in, to see what it keeps to itself.")
    max_tokens: int = Field(DEFAULT_PROMPT_TOKENS, ge=0, le=100_000, description="How long the prompt may be.")
    weak: bool = Field(False, description="Hand over what is only weakly relevant as well, and show it in the prompt.")
    explain: bool = Field(False, description="Say for every memory which terms add up to its score.")
    why_not: Name | None = Field(None, description="The id of a memory: say at which stage it was dropped.")


class Retrieved(Output):
    prompt: str = Field(description="The memories as text for a language model, within the budget.")
    total_items: int
    heuristics: Sequence[Heuristic] = ()
    anti_patterns: Sequence[AntiPattern] = ()
    preferences: Sequence[UserPreference] = ()
    domain_knowledge: Sequence[DomainKnowledge] = ()
    outcomes: Sequence[Outcome] = ()
    memories: Sequence[Memory] = ()
    instructions: Sequence[Memory] = ()
    notes: Mapping[str, Sequence[str]] = Field(
        {}, description="By the id of a memory: that it was superseded or contradicted, when and by what."
    )
    retrieval_time_ms: float | None = None
    degraded: str = Field("", description="What was down while this was retrieved; empty when all worked.")
    explanations: Sequence[Explanation] | None = None
    why_not: Dropped | None = None

    @classmethod
    def of(cls, found: MemorySlice, asked: Retrieve) -> Retrieved:
        names = ("preferences", "domain_knowledge", "outcomes", "memories")
        return cls(
            heuristics=list(map(_briefly, found.heuristics)),
            anti_patterns=list(map(_briefly, found.anti_patterns)),
            prompt=found.to_prompt(asked.max_tokens),
            total_items=found.total_items,
            instructions=found.instructions,
            notes={key: each.notes for key, each in found.explanations.items() if each.notes},
            retrieval_time_ms=found.retrieval_time_ms,
            degraded=found.degraded,
            explanations=found.explain() if asked.explain else None,
            why_not=found.why_not(asked.why_not) if asked.why_not else None,
            **{name: getattr(found, name) for name in names},
        )


@operation("learning", Right.READ, example={"task": "Add an export button to the report page", "agent": "helena"})
def retrieve(caller: Caller, asked: Retrieve) -> Retrieved:
    """Hand over the few memories worth knowing before a task.

    The answer has the memories by kind and a prompt ready for a language model. Nothing is found for a task that
    resembles nothing stored.
    """
    found = caller.memory(asked.project_id).retrieve(
        asked.task,
        caller.agent(asked.agent),
        caller.user(asked.user_id),
        asked.top_k,
        session_id=asked.session_id,
        memories_within=caller.scope(asked.project_id),
        include_shared=caller.grant.agent is None,
        weak=asked.weak,
    )
    return Retrieved.of(found, asked)


class Learn(InProject):
    agent: Name = Field(description="The agent that did the task.")
    task: Text = Field(description="What the task was.")
    outcome: Annotated[str, StringConstraints(min_length=1, max_length=40)] | bool = Field(
        description="success or failure; the words people use for them are understood."
    )
    strategy_used: Text = Field(description="How the agent went about it.")
    task_type: Name | None = Field(None, description="The domain of the task, which the agent's scope must allow.")
    duration_ms: int | None = Field(None, ge=0, le=10**12, description="How long it took.")
    error_message: Prose | None = Field(None, description="What went wrong.")
    feedback: Prose | None = Field(None, description="What the user said about it.")


class LearnedFrom(Output):
    outcome: Outcome
    heuristic: Heuristic | None = Field(None, description="The lesson this outcome made, strengthened or weakened.")
    anti_pattern: AntiPattern | None = Field(None, description="What failed often enough to be avoided.")
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
def learn(caller: Caller, asked: Learn) -> LearnedFrom:
    """Remember how a task went, and what that teaches once it happened often enough."""
    learned = caller.memory(asked.project_id).learn(
        caller.agent(asked.agent), **asked.model_dump(exclude={"project_id", "agent"})
    )
    return LearnedFrom(
        outcome=learned.outcome,
        heuristic=learned.heuristic and _briefly(learned.heuristic),
        anti_pattern=learned.anti_pattern and _briefly(learned.anti_pattern),
        notes=learned.notes,
    )


class NotTheSame(InProject):
    heuristic_id: Name = Field(description="The rule that counted the strategy as its own.")
    strategy: Text = Field(description="The strategy, as its outcomes have it.")
    agent: Name = Field(description="The agent whose rule it is.")


class Separated(Output):
    outcome_ids: Sequence[str] = Field(description="The outcomes that are a lesson of their own now.")


@operation(
    "learning",
    Right.WRITE,
    example={
        "heuristic_id": "01a1e0a2b81e7fc49d0ec9b96de703e8",
        "strategy": "retry twice",
        "agent": "helena",
    },
)
def not_the_same(caller: Caller, asked: NotTheSame) -> Separated:
    """Take a strategy out of a rule that it was counted for, and keep it out: it is not the same."""
    memory, agent = caller.memory(asked.project_id), caller.agent(asked.agent)
    return Separated(outcome_ids=memory.not_the_same(asked.heuristic_id, asked.strategy, agent))


class Conversation(InProject):
    agent: Name
    messages: Sequence[Mapping[str, Any]] = Field(
        min_length=1, max_length=1_000, description="What was said: objects with role and content."
    )
    user_id: Name | None = Field(None, description="Whose preferences these are.")
    commit: bool = Field(True, description="Store what is found; false only shows it.")


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
def learn_from_conversation(caller: Caller, asked: Conversation) -> FactsLearned:
    """Find the facts in a conversation and remember them; no language model is needed."""
    # Its hundreds of patterns take as long to compile as all the rest to import.
    from alma.extraction.auto_learner import AutoLearner

    learner = AutoLearner(caller.memory(asked.project_id))
    report = learner.learn_from_conversation(
        asked.messages, caller.agent(asked.agent), caller.user(asked.user_id), commit=asked.commit
    )
    return FactsLearned(report=report)


class Recommend(InProject):
    task: Text
    agent: Name
    among: Sequence[Text] | None = Field(
        None, min_length=1, max_length=1_000, description="The strategies to choose from; all known ones otherwise."
    )
    explore: bool = Field(
        False,
        description="Whether to answer from tasks further away, too, and to let what was hardly tried have a turn.",
    )


class Recommended(Output):
    strategy: str | None = Field(
        None, description="What to do; absent where nothing was tried on a task like this one."
    )
    support: Literal["supported", "weak", "none"]
    reason: str
    ranked: Sequence[Assessed] = Field(description="What is known about each strategy; without one, the nearest known.")


@operation("learning", Right.READ, example={"task": "Test the sign-up form", "agent": "helena"})
def recommend(caller: Caller, asked: Recommend) -> Recommended:
    """Say which strategy to use for a task, with the evidence."""
    memory, agent = caller.memory(asked.project_id), caller.agent(asked.agent)
    found = memory.recommend(asked.task, agent, asked.among, explore=asked.explore)
    return Recommended(strategy=found.strategy, support=found.support, reason=found.reason, ranked=found.ranked)


class Assess(InProject):
    strategies: Sequence[Text] = Field(min_length=1, max_length=100)
    context: Text = Field(description="The task the strategies are meant for.")
    agent: Name


class Signal(Output):
    strategy: str
    confidence_score: float
    recommendation: str = Field(description="strong_yes, yes, neutral, caution or avoid")
    reasoning: str
    risks: Sequence[str] = ()
    opportunities: Sequence[str] = ()
    assessed: Assessed


class Signals(Output):
    signals: Sequence[Signal]


@operation(
    "learning",
    Right.READ,
    example={"strategies": ["retry three times"], "context": "Call the payment service", "agent": "victor"},
)
def assess_strategies(caller: Caller, asked: Assess) -> Signals:
    """Say how much each strategy can be trusted for a task, best first, with risks and opportunities."""
    engine = ConfidenceEngine(caller.memory(asked.project_id))
    ranked = engine.rank_strategies(asked.strategies, asked.context, caller.agent(asked.agent))
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
    category: Name = Field(description="What it is about: communication, code_style, workflow …")
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
def add_preference(caller: Caller, asked: AddPreference) -> PreferenceKept:
    """Remember how a user wants things done."""
    given = asked.model_dump(exclude={"user_id"})
    return PreferenceKept(preference=caller.store.add_user_preference(caller.required_user(asked.user_id), **given))


class OfUser(Input):
    user_id: Name | None = Field(None, description="The user; the key's own when not given.")
    category: Name | None = None


class Preferences(Output):
    preferences: Sequence[UserPreference]


@operation("learning", Right.READ, example={"user_id": "ana"})
def list_preferences(caller: Caller, asked: OfUser) -> Preferences:
    """List how a user wants things done."""
    kept = caller.store.storage.get_user_preferences(caller.required_user(asked.user_id), asked.category)
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
def add_knowledge(caller: Caller, asked: AddKnowledge) -> KnowledgeKept:
    """Remember a fact, if the agent may learn in this domain."""
    memory, agent = caller.memory(asked.project_id), caller.agent(asked.agent)
    kept = memory.add_domain_knowledge(agent, asked.domain, asked.fact, asked.source, supersedes=asked.supersedes)
    return KnowledgeKept(knowledge=kept)


class ListLearned(InProject):
    kind: LearnedKind = Field(description="heuristic, outcome, domain_knowledge or anti_pattern")
    agent: Name | None = None
    limit: Limit = 20
    cursor: Annotated[str, StringConstraints(max_length=1_000)] | None = Field(
        None, description="next_cursor of the page before."
    )


class LearnedPage(Output):
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
def list_learned(caller: Caller, asked: ListLearned) -> LearnedPage:
    """List what was learned, of one kind, page by page."""
    cls, scope = kind_named(asked.kind), caller.project_scope(asked.project_id, asked.agent)
    records, next_cursor = paged(caller.store.storage, cls, scope, EVERYTHING, asked.limit, asked.cursor)
    return LearnedPage.of(asked.kind, records, next_cursor)


class LearnedId(InProject):
    kind: LearnedKind
    id: Name


@operation("learning", Right.READ, example={"kind": "heuristic", "id": "01a1e0a2b81e7fc49d0ec9b96de703e8"})
def get_learned(caller: Caller, asked: LearnedId) -> LearnedPage:
    """Read one thing that was learned."""
    found = caller.store.storage.get(kind_named(asked.kind), asked.id, caller.project_scope(asked.project_id))
    if found is None:
        raise NotFoundError(asked.kind, asked.id)
    return LearnedPage.of(asked.kind, [found])


LEARNING: tuple[Operation[Any, Any], ...] = (
    retrieve,
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
