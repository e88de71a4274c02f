"""AutoLearner: turn a conversation into memories, with the same checks as any other write."""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from alma.core import ALMA, checked_memory
from alma.errors import ALMAError, ConfigurationError, ProviderError, StorageError, ValidationError
from alma.extraction.facts import (
    BY_AGENT,
    BY_USER,
    GENERAL,
    ExtractedFact,
    FactExtractor,
    FactType,
    Turn,
    clean_fact,
    clean_refusal,
    conversation,
    domain_of,
    source_of,
)
from alma.extraction.model import create_extractor
from alma.lazy import lazy_regex
from alma.model.common import checked_part
from alma.model.governance import Attribution
from alma.model.learning import SIGNAL, DomainKnowledge, Outcome, UserPreference
from alma.model.query import And, Compare, Predicate
from alma.model.scope import Scope
from alma.storage.base import Transaction
from alma.storage.tombstones import CONVERSATIONS, conversations_of, with_conversations

_LOG = logging.getLogger("alma.extraction")
_SOURCE = "conversation"
_DEFAULT_CONFIDENCE = 0.5
_DOUBTED = 0.05
_TRIED = (FactType.OUTCOME, FactType.HEURISTIC, FactType.ANTI_PATTERN)
_QUARANTINED = "quarantined"
# First-person reports of something just done; "X worked well" may come from memory.
_DID_IT = lazy_regex(
    r"\W*(?:(?:so|ok|okay|then|and|but|finally|now|first|also|done|yes|great|update|next|after that)[\s,:!.–-]+)*"
    r"(?:i|we)(?:['’]ve| have)?\b(?!\s+(?:already\s+|still\s+)?"
    r"(?:recall|remember|know|knew|think|believe|noted|learned|read|was told|were told))",
    re.IGNORECASE,
)
_LONG_AGO = lazy_regex(
    r"\b(?:last time|previously|in the past|historically"
    r"|(?:past|earlier|previous|other) (?:runs?|tasks?|times|sessions?))\b",
    re.IGNORECASE,
)
_ENDED = lazy_regex(r"[.!?…]\s+|\n")


@dataclass(frozen=True, slots=True)
class _Place:
    """The owner of a conversation, and its turns."""

    agent: str
    user_id: str | None
    turns: Sequence[Turn]


class _NotLearned(Exception):
    """Why a fact was not learned."""


class AutoLearner:
    """Learns from conversations what worked, what failed, what the user prefers, and facts.

    Without an `extractor`, the language model of the configuration proposes, or the rules where there is none.

    A fact is learned if its confidence reaches `min_confidence`, the agent's scope allows it and it is not known yet.
    The same conversation, or a longer one that begins with it, teaches nothing twice. Without `auto_commit`, nothing
    is stored unless a call says so.
    """

    def __init__(
        self,
        alma: ALMA,
        extractor: FactExtractor | None = None,
        auto_commit: bool = True,
        min_confidence: float = _DEFAULT_CONFIDENCE,
    ) -> None:
        if (
            isinstance(min_confidence, bool)
            or not isinstance(min_confidence, int | float)
            or not 0 <= min_confidence <= 1
        ):
            raise ValidationError("auto_learner", "min_confidence", min_confidence, "must be a number from 0 to 1")
        self._alma = checked_memory("auto_learner", alma)
        chosen = create_extractor(llm=alma.llm, judge=alma.judge) if extractor is None else extractor
        if not callable(getattr(chosen, "extract", None)):
            raise ValidationError(
                "auto_learner", "extractor", extractor, "must be a FactExtractor, or None for that of the configuration"
            )
        self._extractor = chosen.shown_without_secrets(alma.redactor) if isinstance(chosen, FactExtractor) else chosen
        self._auto_commit = checked_part("auto_learner", "auto_commit", auto_commit, bool, "True or False")
        self._min_confidence = min_confidence

    def learn_from_conversation(
        self,
        messages: Iterable[Mapping[str, Any] | Turn],
        agent: str,
        user_id: str | None = None,
        commit: bool | None = None,
    ) -> dict[str, Any]:
        """Extract facts and store those that pass.

        The answer counts them (`extracted_count`, `valid_count`, `committed_count`, `rejected_count`) and lists them:
        `facts`, `committed` with the ids of the memories, `rejected`, of which each has its `content` and the `reason`.
        `degraded` is None, or says why the rules were used instead of the model. Secrets are masked everywhere;
        `masked` of a fact names the field and the kind of each, `masked` of the result those the model did not see.
        """
        turns = conversation(messages)
        storing = self._auto_commit if commit is None else commit
        found = self._extractor.extract(turns)
        place = _Place(self._agent(agent), user_id, turns)
        facts = [clean_fact(fact, self._alma.redactor) for fact in found.facts]
        refused = [clean_refusal(each, self._alma.redactor) for each in found.refused]
        valid: list[ExtractedFact] = []
        committed: list[dict[str, Any]] = []
        rejected = [{"content": refusal.proposal, "reason": refusal.reason} for refusal in refused]
        for fact, said in zip(facts, found.facts, strict=True):
            try:
                # The source is decided on the unmasked fact.
                memory_id = self._learn(fact, source_of(said, turns), place, storing)
            except _NotLearned as exc:
                rejected.append({**_described(fact), "reason": str(exc)})
                continue
            valid.append(fact)
            if memory_id is not None:
                committed.append({**_described(fact), "id": memory_id})
        counts = {"facts": len(facts), "committed": len(committed), "rejected": len(rejected)}
        _LOG.info("learned from a conversation", extra={"agent": place.agent, **counts})
        return {
            "extracted_count": len(facts) + len(refused),
            "valid_count": len(valid),
            "committed_count": len(committed),
            "rejected_count": len(rejected),
            "facts": [_described(fact) for fact in facts],
            "committed": committed,
            "rejected": rejected,
            "extractor": found.extractor,
            "degraded": found.degraded,
            "masked": list(found.masked),
        }

    # ------------------------------------------------------------------ checks

    def _learn(self, fact: ExtractedFact, source: str, place: _Place, storing: bool) -> str | None:
        """The id of the new memory; None without storing."""
        if fact.confidence < self._min_confidence:
            raise _NotLearned(f"its confidence {fact.confidence:g} is below {self._min_confidence:g}")
        if fact.fact_type is FactType.PREFERENCE and place.user_id is None:
            raise _NotLearned("a preference needs the user_id of the one who has it")
        if self._is_known(fact, place, storing):
            raise _NotLearned("it is known already")
        if fact.fact_type in _TRIED and (gone := self._alma.ingest.deleted([self._tried(fact, place)])):
            raise _NotLearned(f"this outcome {next(iter(gone.values()))}")
        try:
            if storing:
                return self._store(fact, source, place)
            self._require_storable(fact, source, place)
        except (StorageError, ConfigurationError, ProviderError):
            raise
        except ALMAError as exc:
            raise _NotLearned(str(exc)) from exc
        return None

    def _require_storable(self, fact: ExtractedFact, source: str, place: _Place) -> None:
        self._require_scope(fact, place)
        reason = self._injection_reason(self._tried(fact, place), source)
        if reason is not None:
            raise _quarantined(reason)

    def _require_scope(self, fact: ExtractedFact, place: _Place) -> None:
        if fact.fact_type is not FactType.PREFERENCE:
            text = f"{fact.task or ''} {fact.strategy or fact.content}"
            self._alma.learning.validator.require(place.agent, self._domain(fact, place.agent), text)

    def _injection_reason(self, tried: Outcome, source: str) -> str | None:
        return None if source in (BY_USER, BY_AGENT) else self._alma.ingest.injection_reason(tried, source)

    def _store(self, fact: ExtractedFact, source: str, place: _Place) -> str:
        made: Any
        heard = {CONVERSATIONS: [_conversation(fact, place)]}
        # The assistant may repeat a memory, and a tool may inject instructions; ingest checks both.
        match fact.fact_type:
            case FactType.PREFERENCE:
                assert place.user_id is not None
                made = self._alma.add_user_preference(
                    place.user_id, fact.category or GENERAL, fact.content, source, metadata=heard
                )
            case FactType.DOMAIN_KNOWLEDGE:
                domain = self._domain(fact, place.agent) or GENERAL
                made = self._alma.add_domain_knowledge(place.agent, domain, fact.content, source, metadata=heard)
            case FactType.OUTCOME | FactType.HEURISTIC | FactType.ANTI_PATTERN:
                return self._learned(fact, place, source)
        if (reason := made.metadata.get(_QUARANTINED)) is not None:
            raise _quarantined(reason)
        self._doubt(fact.supersedes, place.agent)
        return str(made.id)

    def _learned(self, fact: ExtractedFact, place: _Place, source: str) -> str:
        tried = self._tried(fact, place)
        if source != BY_USER and not _is_report(fact, place) and self._was_served(tried):
            raise _NotLearned("it only repeats what the agent was served a moment ago")
        reason = self._injection_reason(tried, source)
        if reason is not None:
            self._require_scope(fact, place)
            self._alma.ingest.save(tried, Attribution(agent=place.agent), source)
            raise _quarantined(reason)
        made = self._alma.learn(
            agent=place.agent,
            task=tried.task_description,
            outcome=tried.success,
            strategy_used=tried.strategy_used or fact.content,
            task_type=tried.task_type,
            error_message=tried.error_message,
            metadata=tried.metadata,
        )
        return str(made.id)

    def _was_served(self, tried: Outcome) -> bool:
        # "use X" says no more than X.
        named = (tried.strategy_used or "").removeprefix("use ")
        return self._alma.ingest.echoes([named], tried.agent, tried.project_id)

    def _tried(self, fact: ExtractedFact, place: _Place) -> Outcome:
        """The outcome that a fact describes."""
        return Outcome(
            agent=place.agent,
            project_id=self._alma.project_id,
            task_type=self._domain(fact, place.agent),
            task_description=fact.task or fact.content,
            success=bool(fact.success),
            strategy_used=fact.strategy or fact.content,
            error_message=None if fact.success else fact.reason,
            metadata=_origin(fact, place),
        )

    def _doubt(self, statement: str | None, agent: str) -> None:
        """Lower the confidence of a corrected fact, which is then forgotten in time."""
        if statement is None:
            return
        scope = self._alma.scope(agent)
        by = Attribution(agent=agent, reason="corrected in a conversation")
        for wrong in self._alma.storage.find(DomainKnowledge, scope, Compare("fact", "eq", statement)):
            self._alma.storage.update(DomainKnowledge, wrong.id, {"confidence": _DOUBTED}, scope, by)

    def _domain(self, fact: ExtractedFact, agent: str) -> str | None:
        """The domain for the scope check; for outcomes, only one that the scope names."""
        scope = self._alma.scopes.get(agent)
        named = domain_of(" ".join(filter(None, (fact.task, fact.strategy, fact.content))), scope)
        if fact.fact_type is FactType.DOMAIN_KNOWLEDGE:
            return named
        return named if scope is not None and named in (*scope.can_learn, *scope.cannot_learn) else None

    def _is_known(self, fact: ExtractedFact, place: _Place, storing: bool) -> bool:
        storage = self._alma.storage
        match fact.fact_type:
            case FactType.PREFERENCE:
                same = Compare("preference", "eq", fact.content)
                return self._is_stored(UserPreference, Scope(user_id=place.user_id), same, fact, place, storing)
            case FactType.DOMAIN_KNOWLEDGE:
                same = Compare("fact", "eq", fact.content)
                return self._is_stored(DomainKnowledge, self._alma.scope(place.agent), same, fact, place, storing)
            case _:
                tried = And(Compare("strategy_used", "eq", fact.strategy), Compare("success", "eq", bool(fact.success)))
                rows = storage.values(Outcome, ["metadata"], self._alma.scope(place.agent), tried)
                mark = _mark(fact, place)
                return any(metadata.get("conversation") == mark for (metadata,) in rows)

    def _is_stored(
        self,
        cls: type[DomainKnowledge] | type[UserPreference],
        scope: Scope,
        same: Predicate,
        fact: ExtractedFact,
        place: _Place,
        storing: bool,
    ) -> bool:
        """Whether a fact is stored in these words; it is noted that this conversation has it, too."""
        mark = _conversation(fact, place)
        known = self._alma.storage.find(cls, scope, same)
        ids = [each.id for each in known if mark not in conversations_of(each)] if storing else []

        def note(tx: Transaction) -> None:
            for each in tx.lock(cls, ids, scope):
                tx.update(cls, each.id, {"metadata": with_conversations(each.metadata, [mark])}, scope)

        if ids:
            self._alma.storage.write(note, Attribution(agent=place.agent, reason="said again in a conversation"))
        return bool(known)

    def _agent(self, name: str) -> str:
        """The agent as the configuration spells it."""
        known = {each.casefold(): each for each in self._alma.scopes}
        return known.get(name.casefold(), name) if isinstance(name, str) else name


def _is_report(fact: ExtractedFact, place: _Place) -> bool:
    """Whether the sentence reports what its speaker just did."""
    turn, where = place.turns[fact.evidence.message].content, fact.evidence.start
    begun = max((match.end() for match in _ENDED.finditer(turn, 0, where)), default=0)
    sentence = turn[begun : fact.evidence.end]
    return _DID_IT.match(sentence) is not None and _LONG_AGO.search(sentence) is None


def _quarantined(reason: str) -> _NotLearned:
    return _NotLearned(f"it is quarantined: {reason}")


def _origin(fact: ExtractedFact, place: _Place) -> dict[str, Any]:
    """The provenance of an outcome, without its text."""
    said = {"said_by": fact.evidence.role, "message": fact.evidence.message, "confidence": fact.confidence}
    heard = {"conversation": _mark(fact, place), CONVERSATIONS: [_conversation(fact, place)]}
    return {"source": _SOURCE, SIGNAL: _SOURCE, **heard, **said}


def _conversation(fact: ExtractedFact, place: _Place) -> str:
    """A digest of the conversation up to the message with this fact."""
    return _digest([], place.turns[: fact.evidence.message + 1])


def _mark(fact: ExtractedFact, place: _Place) -> str:
    """A digest of the conversation up to this fact."""
    return _digest([str(fact.evidence.start)], place.turns[: fact.evidence.message + 1])


def _digest(first: Sequence[str], turns: Sequence[Turn]) -> str:
    parts = [*first, *(f"{turn.role}\x1e{turn.content}" for turn in turns)]
    return hashlib.sha256("\x1f".join(parts).encode(errors="surrogatepass")).hexdigest()[:32]


def _described(fact: ExtractedFact) -> dict[str, Any]:
    """A fact as a plain dictionary."""
    described: dict[str, Any] = {
        "type": fact.fact_type.value,
        "content": fact.content,
        "confidence": fact.confidence,
        "evidence": fact.evidence.text,
        "said_by": fact.evidence.role,
        "message": fact.evidence.message,
        "start": fact.evidence.start,
        "end": fact.evidence.end,
    }
    more = ("task", "strategy", "success", "alternative", "category", "corrects", "supersedes")
    # "reason" is why a fact was rejected.
    described |= {} if fact.reason is None else {"why": fact.reason}
    described |= {"masked": list(fact.masked)} if fact.masked else {}
    return {**described, **{name: value for name in more if (value := getattr(fact, name)) is not None}}
