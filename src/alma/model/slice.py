"""Slices: the memories retrieved for a task, each with the explanation of its score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from alma.errors import NotFoundError, ValidationError
from alma.model.fields import Items
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference, anti_pattern_id
from alma.model.memory import Memory
from alma.model.prompt import Entry, Packed, pack
from alma.model.record import Record
from alma.text.tokens import terms

if TYPE_CHECKING:
    from alma.model.injection import SessionBlocks

DEFAULT_PROMPT_TOKENS = 2000
Strength = Literal["strong", "weak"]
ESTABLISHED_CONFIDENCE, ESTABLISHED_OUTCOMES = 0.7, 3
"""A lesson with at least this confidence, from at least this number of outcomes, is established."""
REPORTED_BY = "reported by"
"""The beginning of the note on a lesson that only another agent reports."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a memory is in a slice: the terms of its score, the sources that found it, and notes.

    `notes` say that it is superseded or contradicted by another found memory, when it is valid, or that only another
    agent reports it. `similarity` is its cosine with the query and `relevance` the calibrated probability that it is
    relevant, if computed. *Weak* memories are in prompts only on request.
    """

    kind: str
    id: str
    score: float
    terms: Mapping[str, float]
    found_by: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    similarity: float | None = None
    relevance: float | None = None
    strength: Strength = "strong"

    def apart(self) -> Explanation:
        """A copy that does not share its terms."""
        return replace(self, terms=dict(self.terms))

    def __str__(self) -> str:
        sum_of = " + ".join(f"{value:.3f} {name}" for name, value in self.terms.items())
        relevance = "" if self.relevance is None else f"; {self.strength}, relevance {self.relevance:.2f}"
        found_by = f"found by {', '.join(self.found_by)}{relevance}"
        return f"{self.kind} {self.id}: {self.score:.3f} = {sum_of or 'nothing'} ({found_by})"


@dataclass(frozen=True, slots=True)
class Dropped:
    """Why a memory is not in a slice: the stage at which it was dropped, and the reason in a sentence."""

    stage: str
    reason: str

    def __str__(self) -> str:
        return f"{self.stage}: {self.reason}"


def by_id(reasons: Iterable[Explanation]) -> dict[str, Explanation]:
    """Explanations by memory id; if two kinds share an id, the second one by kind and id."""
    found: dict[str, Explanation] = {}
    for each in reasons:
        found[each.id if each.id not in found else _of_kind(each.kind, each.id)] = each
    return found


def _of_kind(kind: str, record_id: str) -> str:
    return f"{kind} {record_id}"


def _unknown(record_id: str) -> Dropped:
    return Dropped("scope", f"no memory {record_id!r} was looked at: it does not exist or lies outside the scope")


def not_here(record_id: str) -> Dropped:
    """The error of `why_not` on a copy of a slice, which has no reference to the store."""
    return Dropped("copy", f"this is a copy: ask the slice that was retrieved, or retrieve again, for {record_id!r}")


@dataclass(frozen=True, slots=True)
class MemorySlice:
    """The result of retrieval: memories by kind, best first.

    Two slices are equal if they have the same memories with the same explanations. `degraded` is empty, or says what
    was unavailable and how the memories were found instead. With `weak`, prompts include weak memories. `blocks` are
    the texts for a session, if the retrieval named one with `already_shown`; the slice then has the memories that the
    session was not shown. `retrieval_id` is what `learn` takes where the benefit of memories is measured. The `hint`
    of an empty slice names the agent that was probably meant.
    """

    heuristics: Sequence[Heuristic] = ()
    outcomes: Sequence[Outcome] = ()
    preferences: Sequence[UserPreference] = ()
    domain_knowledge: Sequence[DomainKnowledge] = ()
    anti_patterns: Sequence[AntiPattern] = ()
    memories: Sequence[Memory] = ()
    instructions: Sequence[Memory] = ()
    query: str | None = None
    agent: str | None = None
    retrieval_time_ms: float | None = field(default=None, compare=False)
    degraded: str = ""
    explanations: Mapping[str, Explanation] = field(default_factory=dict, repr=False)
    weak: bool = False
    retrieval_id: str | None = field(default=None, compare=False)
    hint: str = field(default="", compare=False)
    from_cache: bool = field(default=False, compare=False)
    blocks: SessionBlocks | None = field(default=None, compare=False)
    _why_not: Callable[[str], Dropped] = field(default=_unknown, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in (*_NAMES.values(), "instructions"):
            object.__setattr__(self, name, Items(getattr(self, name)))

    @classmethod
    def of(cls, found: Mapping[type[Record], Sequence[Record]], **facts: Any) -> MemorySlice:
        """The slice with these memories of each kind, and further fields by name."""
        by_name: dict[str, Any] = {name: tuple(found.get(kind, ())) for kind, name in _NAMES.items()}
        return cls(**by_name, **facts)

    def apart(self) -> MemorySlice:
        """A deep copy."""
        records: dict[str, Any] = {
            name: [record.apart() for record in getattr(self, name)] for name in (*_NAMES.values(), "instructions")
        }
        explanations = {key: each.apart() for key, each in self.explanations.items()}
        return replace(self, **records, explanations=explanations)

    @property
    def total_items(self) -> int:
        """The number of memories."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Record]:
        """Every memory, kind by kind."""
        for records in self._by_section():
            yield from records

    def __bool__(self) -> bool:
        """Whether anything relevant was found."""
        return self.total_items > 0

    def ranked(self) -> list[Record]:
        """All memories of all kinds, best first."""
        return sorted(self, key=lambda record: -self._score(record))

    def to_prompt(self, max_tokens: int = DEFAULT_PROMPT_TOKENS, *, weak: bool | None = None) -> str:
        """The strong memories as text for a language model, never longer than the budget.

        Weak ones are included with `weak`, or if the retrieval requested them.
        """
        return self.packed(max_tokens, weak=weak).text

    def packed(self, max_tokens: int = DEFAULT_PROMPT_TOKENS, *, weak: bool | None = None) -> Packed:
        """The text of `to_prompt`, the ids of the memories in it, and of those that did not fit."""
        with_weak = self.weak if weak is None else weak
        entries = [
            Entry(record, self._score(record), section, self._note(record))
            for section, records in enumerate(self._by_section())
            for record in records
            if self._left_out(record, with_weak=with_weak) is None
        ]
        return pack(entries, max_tokens, self.query)

    @property
    def maturity(self) -> dict[str, str]:
        """The state of each lesson that is more or less than provisional, by its id."""
        return {
            each.id: note.partition(":")[0]
            for each in self.explanations.values()
            for note in each.notes
            if note.startswith(_STATES)
        }

    def explain(self) -> list[Explanation]:
        """The terms of the score of every memory, best first."""
        return sorted(self.explanations.values(), key=lambda explanation: -explanation.score)

    def why_not(self, record_id: str) -> Dropped | None:
        """The stage at which a memory was dropped, or None if it is in the slice and in its default prompt."""
        if not isinstance(record_id, str) or not record_id:
            raise ValidationError("why_not", "record_id", record_id, "must be the id of a memory, a text")
        if record_id in {str(record.key) for record in self}:
            if record_id in self.packed().included:
                return None
            found = (record for record in self if str(record.key) == record_id)
            left_out = next(filter(None, (self._left_out(each, with_weak=self.weak) for each in found)), None)
            if left_out is not None:
                return left_out
            return Dropped("prompt", f"there was no room for it in a prompt of {DEFAULT_PROMPT_TOKENS:,} tokens")
        return self._why_not(record_id)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the callback of `why_not`, which cannot be pickled."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "_why_not"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_why_not", not_here)

    def explanation_of(self, record_id: str) -> Explanation:
        """The explanation of a memory in the slice."""
        if record_id not in self.explanations:
            raise NotFoundError("memory of this slice", record_id)
        return self.explanations[record_id]

    def strength_of(self, record: Record) -> Strength:
        """Whether a memory of the slice is strong or weak; prompts include weak ones only on request."""
        explanation = self._explanation(record)
        return "strong" if explanation is None else explanation.strength

    def _left_out(self, record: Record, *, with_weak: bool) -> Dropped | None:
        """The reason why a memory is not in prompts, or None."""
        if not with_weak and self.strength_of(record) == "weak":
            explanation = self._explanation(record)
            relevance = 0.0 if explanation is None else explanation.relevance or 0.0
            return Dropped("relevance", f"it is weak, with a relevance of {relevance:.2f}; ask with weak=True for it")
        reason = self._overruled(record) or self._shown_as_rule(record, with_weak=with_weak)
        return None if reason is None else Dropped("prompt", reason)

    def _shown_as_rule(self, record: Record, *, with_weak: bool) -> str | None:
        """The reason to leave out an outcome if the prompt has the rule or warning that counts it as evidence."""
        if not isinstance(record, Outcome):
            return None
        rules: tuple[Heuristic | AntiPattern, ...] = (*self.heuristics, *self.anti_patterns)
        for rule in rules:
            shown = with_weak or self.strength_of(rule) == "strong"
            if shown and self._overruled(rule) is None and is_evidence(record, rule):
                return f"it is evidence for {rule.id}, which the prompt holds"
        return None

    def _overruled(self, record: Record) -> str | None:
        """The reason to leave out a rule or a warning that disagrees with another lesson: a warning of the same agent
        is newer than the rule, and the own lessons of an agent win over those of others.
        """
        if isinstance(record, Heuristic):
            if anti_pattern_id(record.id) in {each.id for each in self.anti_patterns}:
                return "it fails now, and the prompt warns about it instead"
            if record.agent != self.agent and any(_disagree(record, each) for each in self.anti_patterns):
                return "it fails for another agent, and the prompt warns about it instead"
        if isinstance(record, AntiPattern):
            own = (each for each in self.heuristics if each.agent == self.agent)
            if any(_disagree(each, record) for each in own):
                return "it works for this agent itself, and the prompt says so"
        return None

    def _explanation(self, record: Record) -> Explanation | None:
        record_id = str(record.key)
        of_kind = self.explanations.get(_of_kind(record.spec.kind, record_id))
        return of_kind if of_kind is not None and of_kind.id == record_id else self.explanations.get(record_id)

    def _score(self, record: Record) -> float:
        explanation = self._explanation(record)
        return explanation.score if explanation is not None else _confidence(record)

    def _note(self, record: Record) -> str:
        """The note in the prompt on a memory that does not hold now or is contradicted."""
        explanation = self._explanation(record)
        notes = () if explanation is None else explanation.notes
        over = [_without_id(note) for note in notes if note.startswith(_OVER)]
        if over:
            return over[0]
        when = next((note for note in notes if note.startswith(("held until", "holds from"))), "")
        source = next((note for note in notes if note.startswith(REPORTED_BY)), "")
        state = next((note.partition(":")[0] for note in notes if note.startswith(_TELLING)), "")
        opposed = isinstance(record, Heuristic) and any(note.startswith("contradicts ") for note in notes)
        contradicted = "contradicted by another memory" if opposed else ""
        return "; ".join(filter(None, (when or contradicted, source, state)))

    def _by_section(self) -> tuple[Sequence[Record], ...]:
        """In the order of the prompt's sections."""
        return (
            self.heuristics,
            self.anti_patterns,
            self.preferences,
            self.instructions,
            self.domain_knowledge,
            self.outcomes,
            self.memories,
        )


# The text of the other memory is shown, because its id means nothing in a prompt.
_OVER = ("superseded", "contradicted")
# A provisional lesson has no note.
_STATES = ("corroborated:", "established:", "contested:", "retired:")
# In prompts the state is worth its words where it says more than the counts beside it.
_TELLING = _STATES[1:]


def _without_id(note: str) -> str:
    how, _, shown = note.partition(": ")
    return f"{how.rpartition(' by ')[0]} by: {shown}"


_NAMES: dict[type[Record], str] = {
    Heuristic: "heuristics",
    Outcome: "outcomes",
    UserPreference: "preferences",
    DomainKnowledge: "domain_knowledge",
    AntiPattern: "anti_patterns",
    Memory: "memories",
}


def _confidence(record: Any) -> float:
    """The score of a memory in a slice without explanations, such as one built by a caller."""
    return float(getattr(record, "confidence", 0.5))


def is_evidence(outcome: Outcome, rule: Heuristic | AntiPattern) -> bool:
    """Whether an outcome is evidence for a rule."""
    if isinstance(rule, AntiPattern):
        return outcome.id in rule.outcomes_for
    return outcome.lesson_id == rule.id or outcome.id in rule.outcomes_for or outcome.id in rule.outcomes_against


def _disagree(rule: Heuristic, warning: AntiPattern) -> bool:
    """Whether two agents disagree about a strategy."""
    return rule.agent != warning.agent and _says(rule.strategy) == _says(warning.pattern)


def _says(strategy: str) -> list[str]:
    return [word for word in terms(strategy) if word not in _ARTICLES]


_ARTICLES = frozenset(("the", "a", "an"))
