"""Facts by rules: no model, no network; what is asked, supposed, denied or said in passing gives nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from alma.extraction import patterns
from alma.extraction import wording as say
from alma.extraction.facts import USERS, ExtractedFact, ExtractionResult, FactExtractor, FactType, Turn, conversation
from alma.extraction.patterns import Reading
from alma.extraction.retractions import denied_claims, failure_of, number_meant, second_thought
from alma.extraction.statements import Statement, as_wish, statements
from alma.extraction.topics import category_of
from alma.model.text import terms

_REQUEST = re.compile(
    r"^(?:please |can you |could you |would you |let'?s |i (?:need|want) you to |i'd like you to |help me "
    r"(?:to )?|now )*"
    r"(?P<task>(?:test|fix|write|add|create|build|implement|debug|refactor|review|deploy|check|update|make|"
    r"find|run|set up|"
    r"investigate|migrate|improve|remove|explain|optimi[sz]e|design|verify|install|configure|generate|"
    r"analy[sz]e|summari[sz]e|"
    r"research|look into|handle|solve|validate|document|draft|plan|prepare|upgrade|clean up|convert|change)\b.+)",
    re.IGNORECASE | re.DOTALL,
)
_HOW = re.compile(
    r"^(?:how (?:do|can|should|could|would) (?:i|we|you)|(?:can|could|would|will) you(?: please)?)\s+", re.IGNORECASE
)
_TRIED = re.compile(
    r"^(?:i|we|i've|we've|i have|we have)(?: just| now| also)? (?:used|tried|applied|went with|switched "
    r"to)\s+(?P<strategy>.+)",
    re.IGNORECASE,
)
# What somebody says they did, as opposed to looked at.
_DID = re.compile(
    rf"^(?:i|we|i've|we've|i have|we have)(?: just| now| also| then)*\s+(?P<strategy>(?={say.DID})"
    r"(?!ran (?:all |the |our |my )*(?:\w+ )?(?:tests?|suite|build|checks?|linter)\b).+)",
    re.IGNORECASE | re.DOTALL,
)
# What an assistant tells the user to do.
_ADVISED = re.compile(
    r"^(?:(?:you (?:can|could|should)(?: try(?: to)?)?|try(?: to)?|"
    r"let'?s|please|i(?:'d)? (?:suggest|recommend)|i'll|i will|i would)\s+"
    r"|(?=(?:use|run|open|click|restart|reboot|clear|delete|uninstall|reinstall|disable|"
    r"enable|turn|"
    r"switch|add|set|increase|decrease|raise|lower|change|remove|replace|install|upgrade|downgrade|unplug|press|hold|"
    r"reset|update|move|sand|clean|wait|go to|put|pin|rename|rebuild|revert|roll back|log out|sign "
    r"out)\b))(?P<strategy>.+)",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_STRATEGY = 200
# What was said longer ago is not taken back.
_MOST_REMEMBERED = 1_000
_SOON = 3
_SURER_WHEN_TOLD = 0.05
_LESS_SURE_WHEN_EXPLAINED = 0.15
_LESS_SURE_WHEN_HEDGED = 0.35


@dataclass
class _Heard:
    """What the conversation was about so far."""

    task: str | None = None
    strategy: str | None = None
    # In which message that was said; a user speaks of their own doing in one breath.
    strategy_at: int = -1
    by_user: bool = False
    said: list[Statement] | None = None

    def note(self, strategy: str | None, statement: Statement) -> None:
        """Remember what somebody says they did, or advises."""
        if strategy is not None:
            self.strategy, self.strategy_at, self.by_user = strategy, statement.evidence.message, statement.by_user

    def lately(self, message: int) -> str | None:
        """What "it" is: what was told right before."""
        since = message - self.strategy_at
        return self.strategy if since <= (0 if self.by_user else _SOON) else None


class RuleBasedExtractor(FactExtractor):
    """Reads sentences that say what worked or not, what a user wants, how things are, and corrections of that."""

    def extract(self, messages: Iterable[Mapping[str, Any] | Turn]) -> ExtractionResult:
        facts: list[ExtractedFact] = []
        heard = _Heard(said=[])
        for statement in statements(conversation(messages)):
            self._read(statement, heard, facts)
            assert heard.said is not None
            heard.said.append(statement)
            del heard.said[:-_MOST_REMEMBERED]
        return ExtractionResult(tuple(_once(facts)))

    def _read(self, statement: Statement, heard: _Heard, facts: list[ExtractedFact]) -> None:
        correction = _correction(statement, heard.said or ())
        if correction is not None:
            facts[:] = [fact for fact in facts if not _is_corrected(fact, correction)]
            facts.append(correction)
            return
        meant, taken_back = second_thought(statement, heard.said or ())
        if taken_back is not None:
            facts[:] = [fact for fact in facts if fact.evidence != taken_back.evidence]
        known = len(facts)
        if meant is not None:
            self._read_meant(as_wish(meant), heard, facts)
        if taken_back is not None and len(facts) > known and facts[-1].fact_type is FactType.DOMAIN_KNOWLEDGE:
            facts[-1] = replace(facts[-1], supersedes=taken_back.plain.strip(" .…"))

    def _read_meant(self, statement: Statement, heard: _Heard, facts: list[ExtractedFact]) -> None:
        denied = denied_claims(statement, heard.said or (), facts)
        if denied:
            facts[:] = [fact for fact in facts if fact not in denied]
        readable = not statement.asked and (not statement.unreal or _states_a_wish(statement))
        reading = _reading(statement) if readable else None
        fact = None if reading is None else _fact(reading, statement, heard)
        fact = fact or (_denial(denied[-1], statement) if denied else None)
        if fact is not None and say.CORRECTION.match(statement.plain):
            facts[:] = [each for each in facts if not _is_overruled(each, fact)]
        if fact is not None and not (reading is not None and _confirms(reading, fact, facts)):
            facts.append(fact)
        _remember(statement, heard, told=fact is not None)
        if fact is not None and fact.success and fact.strategy and not statement.by_user:
            # What the next one calls "that".
            heard.note(fact.strategy, statement)


def _reading(statement: Statement) -> Reading | None:
    """What a statement says; behind a "no", as if it stood alone."""
    found = patterns.read(statement.plain, statement.by_user)
    opened = say.CORRECTION.match(statement.plain) if statement.by_user and found is None else None
    if opened is None:
        return found
    said = opened["said"][:1].upper() + opened["said"][1:]
    return patterns.stated(said, by_user=True)


def _states_a_wish(statement: Statement) -> bool:
    """Whether it is one of those that suppose something and are wishes all the same: I would prefer …"""
    return (
        statement.by_user
        and re.match(r"i(?:'d| would) (?:prefer|rather|like you to)\b", statement.plain, re.I) is not None
    )


def _fact(reading: Reading, statement: Statement, heard: _Heard) -> ExtractedFact | None:
    confidence = reading.confidence + (_SURER_WHEN_TOLD if statement.by_user else 0.0)
    if reading.fact_type is FactType.DOMAIN_KNOWLEDGE and not statement.by_user:
        confidence -= _LESS_SURE_WHEN_EXPLAINED
    if statement.hedged:
        confidence -= _LESS_SURE_WHEN_HEDGED
    found = ExtractedFact(
        fact_type=reading.fact_type,
        content=reading.content,
        confidence=round(min(0.95, max(0.0, confidence)), 2),
        evidence=statement.evidence,
        reason=reading.reason,
        alternative=reading.alternative,
    )
    if reading.fact_type is FactType.PREFERENCE:
        return replace(found, category=reading.category or category_of(reading.content))
    if reading.fact_type is FactType.DOMAIN_KNOWLEDGE:
        return found
    return _what_was_tried(found, reading, heard)


def _confirms(reading: Reading, fact: ExtractedFact, facts: Iterable[ExtractedFact]) -> bool:
    """Whether "it worked" only agrees with what was told before: that is one success."""
    told = reading.strategy is None and fact.success is True
    return told and any(each.success is True and each.strategy == fact.strategy for each in facts)


def _what_was_tried(found: ExtractedFact, reading: Reading, heard: _Heard) -> ExtractedFact | None:
    """The outcome of a strategy, of which at least the strategy must be known."""
    strategy = reading.strategy or heard.lately(found.evidence.message)
    if strategy is None or (reading.strategy is None and not heard.task):
        return None
    named = reading.task if reading.task and not say.UNNAMED_TASK.match(reading.task) else None
    task = named or heard.task or found.content
    return replace(found, strategy=strategy, task=task, success=reading.success)


def _remember(statement: Statement, heard: _Heard, *, told: bool) -> None:
    """Remember what is to be done, and what was done about it; `told` says that a fact was told, and no problem."""
    request = _REQUEST.match(statement.plain)
    if statement.by_user and (request is not None or statement.asked):
        asked = _HOW.sub("", statement.plain)
        heard.task = re.sub(r"[\s.!?…]+$", "", request["task"] if request else asked) or heard.task
    elif statement.by_user and not told and heard.task is None and len(statement.plain.split()) > 2:
        # Who tells of a problem wants it solved.
        heard.task = statement.plain.strip(" .!…")
    if not statement.asked:
        heard.note(_named_strategy(statement), statement)


def _named_strategy(statement: Statement) -> str | None:
    """What is said to be done, or was advised; "I did that" names nothing."""
    told = _TRIED.match(statement.plain) or _DID.match(statement.plain)
    told = told or (None if statement.by_user else _ADVISED.match(statement.plain))
    if told is None:
        return None
    named = re.split(r"\s*[,;!]\s*|\.(?:\s|$)|\s+(?:but|and it|which)\b", told["strategy"])[0].strip()
    return None if re.sub(r"^did\s+", "", named).lower() in say.PRONOUNS else named[:_LONGEST_STRATEGY]


# ---------------------------------------------------------------------- corrections


def _denial(claim: ExtractedFact, statement: Statement) -> ExtractedFact | None:
    """What was said to have worked, as the failure it is called."""
    reason = failure_of(claim, statement) if statement.by_user else None
    if reason is None:
        return None
    sure, content = 0.8, statement.plain.strip(" .!")
    return replace(
        claim,
        fact_type=FactType.OUTCOME,
        content=content,
        confidence=sure,
        evidence=statement.evidence,
        success=False,
        reason=reason,
    )


def _correction(statement: Statement, said: Sequence[Statement]) -> ExtractedFact | None:
    """ "No, it is X, not Y": what was said of Y before, with X in its place."""
    if not statement.by_user or statement.asked or statement.unreal:
        return None
    opened = say.CORRECTION.match(statement.evidence.text.replace("’", "'").strip())
    text = opened["said"] if opened else statement.plain
    both = say.NOT_BUT.match(text)
    passing = both is not None and say.PASSING.search(f"{both['right']} {both['wrong']}")
    if both is not None and both["verb"].lower() == "use" and not both["subject"].strip():
        # "Use X, not Y" is a wish.
        return None
    if both is not None and not passing and (opened or "," in both["comma"]):
        return _replaced(statement, said, both["subject"] + both["verb"], both["right"], both["wrong"])
    return _other_number(statement, said, text) if opened else None


def _other_number(statement: Statement, said: Sequence[Statement], text: str) -> ExtractedFact | None:
    """What was said a moment before, by anybody, with the number in it that a "no" without "not" gives."""
    since = statement.evidence.message - _SOON
    told = [s for s in said if s.evidence.message >= since and say.NUMBER.search(s.plain)]
    # Behind a question with a number, "no" answers that.
    if not told or told[-1].asked:
        return None
    # Who repeats a number says less than who told it: OK, 5432.
    same = [s for s in told if not s.asked and say.NUMBER.findall(s.plain) == say.NUMBER.findall(told[-1].plain)]
    before = max(same, key=lambda s: len(s.plain.split()))
    meant = number_meant(before.plain, text)
    if meant is None:
        return None
    content, wrong = meant
    return replace(_known(content, 0.9, statement.evidence, wrong), supersedes=before.plain.strip(" ."))


def _replaced(
    statement: Statement, said: Sequence[Statement], subject: str, right: str, wrong: str
) -> ExtractedFact | None:
    right, wrong = right.strip(" ,."), wrong.strip(" ,.")
    evidence = statement.evidence
    before = next((s for s in reversed(said) if not s.asked and _mentions(s.plain, wrong)), None)
    if before is not None:
        # The unit that both have stands once: 12 hours, corrected to 24 hours.
        unit = right.split()[-1] if right.split()[1:] else ""
        old = rf"(?<!\w){re.escape(wrong)}(?!\w)" + (rf"(?:\s+{re.escape(unit)}(?!\w))?" if unit else "")
        content = re.sub(old, lambda _: right, before.plain, flags=re.IGNORECASE)
        return replace(_known(content.strip(" ."), 0.9, evidence, wrong), supersedes=before.plain.strip(" ."))
    if re.match(r"(?:it|that|this|they|he|she)\b", subject.strip(), re.IGNORECASE) or not subject.strip():
        return _known(f"{right}, not {wrong}", 0.4, evidence, wrong)
    return _known(f"{subject.strip()} {right}, not {wrong}", 0.85, evidence, wrong)


def _known(content: str, confidence: float, evidence: Any, wrong: str) -> ExtractedFact:
    return ExtractedFact(FactType.DOMAIN_KNOWLEDGE, content, confidence, evidence, corrects=wrong)


def _mentions(text: str, words: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text, re.IGNORECASE) is not None


def _is_corrected(fact: ExtractedFact, correction: ExtractedFact) -> bool:
    wrong = correction.corrects
    return wrong is not None and fact.fact_type is FactType.DOMAIN_KNOWLEDGE and _mentions(fact.content, wrong)


def _is_overruled(fact: ExtractedFact, correction: ExtractedFact) -> bool:
    """Whether a user says with a "no" what an assistant said of the same thing, or says again but for one word."""
    if fact.fact_type is not FactType.DOMAIN_KNOWLEDGE:
        return False
    if fact.evidence.role not in USERS:
        return bool(_subject(fact.content) & _subject(correction.content))
    mine, theirs = set(terms(fact.content)), set(terms(correction.content))
    return len(mine - theirs) == len(theirs - mine) == 1 < len(mine & theirs)


def _subject(content: str) -> set[str]:
    """The words in front of the verb."""
    return set(terms(re.split(r"\b(?:is|are|was|were|has|have|runs?|uses?|lives?|needs?|takes?)\b", content)[0]))


def _once(facts: Iterable[ExtractedFact]) -> list[ExtractedFact]:
    """Each fact the first time that it is said."""
    kept: dict[tuple[str, ...], ExtractedFact] = {}
    for fact in facts:
        key = (fact.fact_type, fact.content.casefold(), (fact.strategy or "").casefold(), (fact.task or "").casefold())
        kept.setdefault(key, fact)
    return list(kept.values())
