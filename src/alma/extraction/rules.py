"""Extract facts by rules: frames propose, and the judge decides whether the sentence implies the proposal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from alma.extraction.clauses import Clause, is_past
from alma.extraction.facts import (
    ExtractedFact,
    ExtractionResult,
    FactExtractor,
    FactType,
    Turn,
    category_of,
    conversation,
)
from alma.extraction.frames import Frame
from alma.extraction.sentences import Sentence, sentences
from alma.judge.base import Judge
from alma.judge.default import LEAST_RESTATED, entailed
from alma.lazy import lazy_regex
from alma.model.learning import PROFILE_CATEGORY

_KIND_OF = {
    "profile": FactType.PREFERENCE,
    "preference": FactType.PREFERENCE,
    "fact": FactType.DOMAIN_KNOWLEDGE,
    "worked": FactType.OUTCOME,
    "failed": FactType.OUTCOME,
    "harm": FactType.ANTI_PATTERN,
    "heuristic": FactType.HEURISTIC,
}
_LONGEST_STRATEGY = 200
_FEWEST_WORDS_OF_A_TASK = 3
_SOON = 3
# Frames of lower confidence count only where there is a task.
_ONLY_FOR_A_TASK = 0.75
# The judge checks at most this many proposals of a conversation.
_MOST_PROPOSED = 64


@dataclass(frozen=True, slots=True)
class _Proposed:
    """A fact proposed by a frame, and the words that must imply it."""

    fact: ExtractedFact
    said: str
    subject: str = ""


@dataclass
class _Heard:
    """The state of a conversation: proposals, sentences, task and strategy so far."""

    proposed: list[_Proposed] = field(default_factory=list)
    said: list[Sentence] = field(default_factory=list)
    task: str | None = None
    strategy: str | None = None
    strategy_at: int = -_SOON - 1

    def lately(self, message: int) -> str | None:
        """The strategy that "it" refers to."""
        return self.strategy if message - self.strategy_at <= _SOON else None

    def note(self, strategy: str, message: int) -> None:
        self.strategy, self.strategy_at = _shortened(strategy), message


class RuleBasedExtractor(FactExtractor):
    """Extracts outcomes, preferences, profiles and facts.

    A frame proposes a statement with a subject and a predicate; it is taken if the `judge` finds that it follows from
    the words it was read from. What is asked, supposed, quoted, reported or meant as the opposite gives nothing.
    """

    def __init__(self, judge: Judge | None = None) -> None:
        self._judge = judge

    def extract(self, messages: Iterable[Mapping[str, Any] | Turn]) -> ExtractionResult:
        heard = _Heard()
        for sentence in sentences(conversation(messages)):
            _read(sentence, heard)
            heard.said.append(sentence)
        proposed = _once(heard.proposed)[:_MOST_PROPOSED]
        taken = entailed([(each.said, each.fact.content) for each in proposed], LEAST_RESTATED, self._judge)
        return ExtractionResult(tuple(each.fact for each, is_said in zip(proposed, taken, strict=True) if is_said))


def _read(sentence: Sentence, heard: _Heard) -> None:
    """Propose facts of a sentence, and note what the next one may refer to."""
    found = _corrected(sentence, heard) or _answered(sentence, heard) or _tried(sentence, heard)
    if not found and sentence.wish_asked_for is not None:
        found = _stated(sentence.wish_asked_for, sentence)
    elif not found and sentence.is_plain:
        found = _stated(sentence.plain, sentence, whole=True)
        found = found or [each for ways in sentence.clauses() for each in _first_read(ways, sentence)]
    if sentence.is_correction or sentence.takes_back:
        found = _take_back(found, heard) if found else _mended(sentence, heard)
    heard.proposed += found
    _remember(sentence, found, heard)


# ---------------------------------------------------------------------- profiles, preferences and facts


def _first_read(ways: Iterable[Clause], sentence: Sentence) -> list[_Proposed]:
    return next((found for clause in ways if (found := _stated(clause, sentence))), [])


def _stated(clause: Clause, sentence: Sentence, whole: bool = False) -> list[_Proposed]:
    """Facts of a clause; from an assistant, only its findings."""
    for frame in clause.language.frames:
        if (whole and not frame.has_comma) or (not sentence.by_user and not _found_out(frame)):
            continue
        named = frame.match(clause)
        if named is None or (frame.kind != "preference" and _is_passing(clause, frame)):
            continue
        return [_statement(frame, template, named, clause, sentence) for template in frame.means]
    return []


def _found_out(frame: Frame) -> bool:
    return frame.kind == "fact" and any(part.name == "fact" for part in frame.parts) and frame.confidence == 0.8


def _is_passing(clause: Clause, frame: Frame) -> bool:
    return clause.has("passing")


def _statement(frame: Frame, template: str, named: Mapping[str, str], clause: Clause, sentence: Sentence) -> _Proposed:
    content = frame.text_of(template, named, clause.language)
    if template != "<whole!>":
        content = _of_the_user(content, clause) if frame.kind != "fact" else content
    sort = _KIND_OF[frame.kind]
    category = None
    if sort is FactType.PREFERENCE:
        category = PROFILE_CATEGORY if frame.kind == "profile" else category_of(content)
    subject = named.get("subject", "") or " ".join(content.split()[:2] if frame.kind == "fact" else [])
    fact = ExtractedFact(sort, content, frame.confidence, sentence.evidence, category=category)
    return _Proposed(fact, clause.text, f"{template} {subject}".casefold())


def _of_the_user(content: str, clause: Clause) -> str:
    """The statement in the third person; unchanged in languages without the words for it."""
    shifted: Mapping[str, str] = clause.language.data.get("shifted", {})
    first = set(clause.language.data["first"]) - {"we", "we're", "we've", "our", "nous", "notre", "nos", "wir", "uns"}
    words = re.split(r"([\w'’]+)", content)
    if not any(word.casefold() in first for word in words):
        return content
    if not shifted:
        return _capital(clause.text)
    if "the user" not in content.casefold():
        # An instruction addresses the agent and speaks of the user.
        shifted = {**shifted, "my": "the user's", "me": "the user", "our": "our"}
    return "".join(shifted.get(word.casefold(), word) for word in words)


# ---------------------------------------------------------------------- outcomes


def _tried(sentence: Sentence, heard: _Heard) -> list[_Proposed]:
    """The outcomes that a sentence reports."""
    said = sentence.finding
    if not sentence.is_plain or (not sentence.by_user and _advises(said)):
        return []
    for frame in said.language.tried:
        named = frame.match(said)
        if named is None or (frame.kind == "worked" and _is_spoiled(said)):
            continue
        if frame.confidence < _ONLY_FOR_A_TASK and heard.task is None:
            continue
        strategy = _shortened(frame.text_of(frame.means[0], named, said.language))
        pointing = said.language.data.get("pointing", ())
        if len(strategy.split()) == 1 or (len(strategy.split()) == 2 and strategy.split()[1] in pointing):
            # "Restarting did nothing" is about the advised strategy.
            strategy = heard.lately(sentence.evidence.message) or ""
        if not strategy or strategy.split()[-1] in said.language.data["joins"] or _is_half(frame, strategy, said):
            continue
        task = _named_task(frame.text_of(frame.task, named, said.language), said)
        reason = (
            said.text[len(said.text) - len(_behind(said.text, strategy)) :].strip(" ,")
            if frame.kind in ("failed", "harm")
            else None
        )
        done = said.language.base(strategy)
        return [_outcome(sentence, heard, frame.kind, done, task, reason, frame.confidence)]
    return []


def _is_half(frame: Frame, strategy: str, said: Clause) -> bool:
    """Whether the sentence reports two outcomes that differ."""
    classes, words = said.language.classes, strategy.casefold().split()
    if frame.kind in ("worked", "heuristic"):
        return any(classes[name].at(said.words, i) > i for name in ("failed", "harms") for i in range(len(said.words)))
    return any(classes[name].at(words, i) > i for name in ("worked", "fixes") for i in range(1, len(words)))


def _is_spoiled(said: Clause) -> bool:
    """Whether a success is qualified: but …, until …, only …"""
    return said.has("spoiled") if "spoiled" in said.language.phrases else False


def _advises(said: Clause) -> bool:
    return any(word in ("you", "your", "you'll", "you're", "can", "will") for word in said.words)


def _behind(text: str, words: str) -> str:
    _, found, behind = text.partition(words)
    return behind if found else text


def _named_task(task: str, said: Clause) -> str | None:
    vague = said.language.phrases["vague"]
    words = task.casefold().split()
    return task if words and vague.at(words, 0) != len(words) and words[0] not in ("it", "that", "this") else None


def _outcome(
    sentence: Sentence,
    heard: _Heard,
    kind: str,
    strategy: str,
    task: str | None,
    reason: str | None,
    confidence: float,
) -> _Proposed:
    problem = task or heard.task
    said = sentence.plain.text
    is_named = strategy.split()[-1].casefold() in said.casefold()
    success = kind in ("worked", "heuristic")
    content = _capital(said)
    context = said
    if not is_named:
        content = f"{'What worked' if success else 'What did not work'}: {strategy}"
        context = f"{strategy}. {said}"
    if task is None and heard.task is not None:
        content, context = f"{heard.task}. {content}", f"{heard.task}. {context}"
    fact = ExtractedFact(
        _KIND_OF[kind],
        content,
        confidence,
        sentence.evidence,
        task=problem or content,
        strategy=strategy,
        success=success,
        reason=reason or (None if success else said),
        alternative=_alternative(said) if kind == "harm" else None,
    )
    return _Proposed(fact, context)


_INSTEAD = lazy_regex(r"[,;]\s*(?:so |better |please )?use\s+(.+?)(?:\s+instead)?[.!\s]*$", re.IGNORECASE)


def _alternative(said: str) -> str | None:
    found = _INSTEAD.search(said)
    return found[1] if found else None


def _answered(sentence: Sentence, heard: _Heard) -> list[_Proposed]:
    """The outcome of the strategy before, from "that worked" or "no luck"."""
    strategy = heard.lately(sentence.evidence.message)
    if not sentence.by_user or strategy is None or sentence.text.rstrip().endswith("?") or sentence.quotes:
        return []
    said = sentence.plain
    for frame in said.language.answers:
        if frame.match(said) is None or (frame.kind == "worked" and _is_spoiled(said)):
            continue
        denied = [each for each in heard.proposed if each.fact.success and each.fact.strategy == strategy]
        heard.proposed = [each for each in heard.proposed if each not in denied or frame.kind == "worked"]
        if denied and frame.kind == "worked":
            return []
        task = next((each.fact.task for each in denied), None)
        return [_outcome(sentence, heard, frame.kind, strategy, task, None, frame.confidence)]
    return []


# ---------------------------------------------------------------------- corrections


def _take_back(found: Sequence[_Proposed], heard: _Heard) -> list[_Proposed]:
    """New statements, which replace earlier ones about the same thing."""
    new = []
    for each in found:
        old = next((known for known in reversed(heard.proposed) if _is_same_thing(known, each)), None)
        if old is not None:
            heard.proposed.remove(old)
            was = old.fact.content
            each = replace(each, fact=replace(each.fact, corrects=was, supersedes=was))
        new.append(each)
    return new


def _is_same_thing(old: _Proposed, new: _Proposed) -> bool:
    same = old.fact.fact_type is new.fact.fact_type
    return same and bool(old.subject) and old.subject == new.subject


def _corrected(sentence: Sentence, heard: _Heard) -> list[_Proposed]:
    """ "It is 5433, not 5432": the statement about the second value, with the first in its place."""
    said = sentence.plain
    nots = [i for i, word in enumerate(said.words) if word == "not" and i and said.tokens[i - 1].text == ","]
    if not nots or not sentence.by_user or sentence.is_asked:
        return []
    wrong = said.between(nots[-1] + 1, len(said.words))
    size = len(said.words) - nots[-1] - 1
    numbers = [token.text for token in said.tokens[: nots[-1]] if token.text[0].isdigit()]
    if wrong[:1].isdigit():
        right = numbers[-1] if numbers and size == 1 else ""
    else:
        right = said.between(nots[-1] - 1 - size, nots[-1] - 1) if size < nots[-1] else ""
    earlier = [each for each in heard.said if each.is_plain and wrong in each.plain.text]
    if not wrong or not right or not earlier:
        return []
    # A repetition ("OK, 5432") is not a correction.
    before = max(earlier, key=lambda each: len(each.plain.words))
    content = before.plain.text.replace(wrong, right)
    fact = ExtractedFact(
        FactType.DOMAIN_KNOWLEDGE,
        _capital(content),
        0.9,
        sentence.evidence,
        corrects=wrong,
        supersedes=_capital(before.plain.text),
    )
    heard.proposed = [each for each in heard.proposed if wrong not in each.fact.content]
    return [_Proposed(fact, f"{content}. {said.text}")]


def _mended(sentence: Sentence, heard: _Heard) -> list[_Proposed]:
    """ "No, 5433": the last statement with its one number or name replaced; without one, it is only retracted."""
    last = [each for each in heard.said if each.evidence.message >= sentence.evidence.message - _SOON and each.is_plain]
    values = [_values(each.plain) for each in last]
    new = _values(sentence.plain)
    if len(new) != 1 or sentence.is_asked or not sentence.by_user or len(sentence.plain.words) > _MOST_OF_A_FRAGMENT:
        _forget_last(sentence, heard)
        return []
    fitting = [each for each, old in zip(last, values, strict=True) if len(old) == 1 and _alike(old[0], new[0])]
    if not fitting or fitting[-1] is not next((e for e, v in zip(last[::-1], values[::-1], strict=True) if v), None):
        return []
    before = max(fitting, key=lambda each: len(each.plain.words))
    wrong = _values(before.plain)[0]
    content = before.plain.text.replace(wrong, new[0])
    heard.proposed = [each for each in heard.proposed if wrong not in each.fact.content]
    again = Sentence(content, sentence.evidence, before.quotes)
    found = [each for ways in again.clauses() for each in _first_read(ways, again)]
    supersedes = _capital(before.plain.text)
    return [replace(each, fact=replace(each.fact, corrects=wrong, supersedes=supersedes)) for each in found]


_MOST_OF_A_FRAGMENT = 6


def _values(said: Clause) -> list[str]:
    """The numbers with units, or the names where there are none."""
    numbers = []
    for i, token in enumerate(said.tokens):
        if token.text[0].isdigit():
            unit = i + 1 < len(said.tokens) and said.words[i + 1] in said.language.data.get("units", ())
            numbers.append(said.between(i, i + 1 + unit))
    if numbers:
        return numbers
    return [token.text for i, token in enumerate(said.tokens) if token.is_capital and (i or len(said.tokens) == 1)]


def _alike(old: str, new: str) -> bool:
    return old[0].isdigit() == new[0].isdigit() and len(old.split()) == len(new.split())


def _forget_last(sentence: Sentence, heard: _Heard) -> None:
    """Drop the last statement of a speaker who takes it back."""
    before = next((each for each in reversed(heard.said) if each.by_user == sentence.by_user), None)
    if before is not None and sentence.takes_back:
        heard.proposed = [each for each in heard.proposed if each.fact.evidence != before.evidence]


# ---------------------------------------------------------------------- references


def _remember(sentence: Sentence, found: Sequence[_Proposed], heard: _Heard) -> None:
    message = sentence.evidence.message
    done = next((each.fact for each in found if each.fact.strategy), None)
    if done is not None and done.strategy:
        heard.note(done.strategy, message)
    elif not found:
        strategy = _mentioned(sentence)
        strategy = None if strategy is None else sentence.language.base(strategy)
        if strategy is not None:
            heard.note(strategy, message)
        elif sentence.by_user and _is_task(sentence, heard):
            heard.task = _task_of(sentence.plain)


def _is_task(sentence: Sentence, heard: _Heard) -> bool:
    """Whether a sentence states a task: a request, a question, or a problem at the beginning."""
    said = sentence.plain
    orders = [said.language.classes[name] for name in ("wish", "imperative") if name in said.language.classes]
    requested = sentence.is_asked or any(each.at(said.words, 0) for each in orders)
    return len(said.words) >= _FEWEST_WORDS_OF_A_TASK and (requested or heard.task is None)


def _task_of(said: Clause) -> str:
    """The task of a sentence, without the words of the request."""
    how = said.language.phrases.get("how")
    start = how.at(said.words, 0) if how is not None else 0
    return said.between(start if start < len(said.words) else 0, len(said.words)).rstrip(" .!?…:")


def _mentioned(sentence: Sentence) -> str | None:
    """The strategy that a sentence names or advises."""
    said = sentence.plain
    if not said.words:
        return None
    words, language = said.words, said.language
    if "advise" not in language.classes:
        return None
    if not sentence.by_user:
        start = language.classes["advise"].at(words, 0)
        if start or language.classes["imperative"].at(words, 0):
            return _first_clause(said, start)
    own = 1 if words[0] in ("i", "we", "i've", "we've") else 0
    if own < len(words) - 1 and is_past(said, own) and (own or not sentence.by_user or len(words) > 2):
        return _first_clause(said, own + (words[own] == "tried"))
    return None


def _first_clause(said: Clause, start: int) -> str | None:
    ends = [i for i in range(start + 1, len(said.words)) if said.tokens[i].is_mark or said.words[i] in ("but", "which")]
    end = min([len(said.words), *ends])
    return said.between(start, end) if end > start + 1 else None


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _shortened(strategy: str) -> str:
    return _USING.sub(lambda match: match[1] + match[2].lower(), strategy)[:_LONGEST_STRATEGY].strip(" ,.;:")


# The first word of a sentence; acronyms stay.
_USING = lazy_regex(r"^(using |trying )([A-Z])(?=[a-z]+\b(?! [A-Z]))")


def _once(proposed: Iterable[_Proposed]) -> list[_Proposed]:
    """The proposals without repetitions."""
    kept: dict[tuple[str, ...], _Proposed] = {}
    for each in proposed:
        fact = each.fact
        key = (fact.fact_type, fact.content.casefold(), (fact.strategy or "").casefold())
        kept.setdefault(key, each)
    return list(kept.values())
