"""Mining: find recurring patterns in memories. The result does not depend on the order of the memories."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from alma.lazy import lazy_regex
from alma.memory.relation_detection import ANSWERS, PROBLEMS, identifiers
from alma.memory.tuning import MINING, phrases, table
from alma.model.fields import JsonObject
from alma.model.memory import Memory
from alma.text.tokens import query_terms

ERROR_SOLUTION, DECISION, CONVENTION, COMMAND, PRACTICE = (
    "error_solution",
    "decision",
    "convention",
    "command",
    "practice",
)

_PRACTICE_TYPES = ("pattern", "insight")
_MOST_CHARACTERS_READ = 4_000
_MAX_NAME_LENGTH = 160
_OUTCOME_KEYS = ("success", "succeeded", "outcome", "result", "status")
_SENTENCE_END = lazy_regex(r"(?<=[.!?])\s+|\n+")
_QUOTED_COMMAND = lazy_regex(r"`([^`\n]{2,200})`|^\s*\$\s+(.{2,200})$", re.MULTILINE)
_SUBCOMMAND = lazy_regex(r"[a-z][\w:.\-]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Facts:
    """What relationships say about the mined memories: which solve which, and which no longer hold."""

    solutions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    flawed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mined:
    """A recurring pattern: how often it occurs, how often it worked, and in which memories."""

    pattern_type: str
    key: str
    name: str
    description: str
    data: JsonObject
    success_rate: float
    usage_count: int
    memory_ids: tuple[str, ...]
    last_used_at: datetime


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence of a pattern: where, in which words, and whether it worked."""

    memory: Memory
    text: str
    worked: bool
    answer: Memory | None = None

    @property
    def memory_ids(self) -> list[str]:
        return [self.memory.id, *([self.answer.id] if self.answer is not None else ())]


def mine(memories: Iterable[Memory], facts: Facts, min_occurrences: int = 2) -> list[Mined]:
    """The patterns that occur at least this often, most frequent first."""
    ordered = sorted(memories, key=lambda memory: (memory.created_at, memory.id))
    found = [
        *_error_solutions(ordered, facts, min_occurrences),
        *_repeated(DECISION, _decisions(ordered, facts), min_occurrences),
        *_repeated(CONVENTION, _conventions(ordered, facts), min_occurrences),
        *_practices(ordered, facts, min_occurrences),
        *_commands(ordered, facts, min_occurrences),
    ]
    return sorted(found, key=lambda each: (-each.usage_count, each.pattern_type, each.key))


# ---------------------------------------------------------------------- kinds of patterns


def _error_solutions(ordered: Sequence[Memory], facts: Facts, least: int) -> Iterable[Mined]:
    """A problem that is solved the same way several times."""
    pairs = solved(ordered, facts)
    recurred = _recurred(ordered, pairs)
    occurrences = [
        Occurrence(
            error, f"{_head(error)}\n{_head(answer)}", _holds(answer, facts) and error.id not in recurred, answer
        )
        for error, answer in pairs
    ]
    for group in similar_groups(occurrences, lambda each: _words(_head(each.memory))):
        for same in similar_groups(group, lambda each: _words(_head(each.answer or each.memory))):
            if len(same) >= least:
                first = same[0]
                answer = first.answer or first.memory
                data: JsonObject = {
                    "problem": _head(first.memory),
                    "solution": _head(answer),
                    "problem_ids": [each.memory.id for each in same],
                    "solution_ids": sorted({each.answer.id for each in same if each.answer is not None}),
                }
                name = f"{_cut(_head(first.memory), 78)} → {_cut(_head(answer), 78)}"
                yield _mined(ERROR_SOLUTION, same, name, f"{_head(first.memory)}\nSolution: {_head(answer)}", data)


def solved(ordered: Sequence[Memory], facts: Facts) -> list[tuple[Memory, Memory]]:
    """Problems with their solutions: related ones, else the next in the session about the same, else the next anywhere
    that names the same issue or error."""
    by_id = {memory.id: memory for memory in ordered}
    pairs: list[tuple[Memory, Memory]] = []
    for place, memory in enumerate(ordered):
        if memory.memory_type not in PROBLEMS:
            continue
        related = [by_id[each] for each in sorted(facts.solutions.get(memory.id, ())) if each in by_id]
        following = None if related else _following_answer(memory, ordered[place + 1 :])
        pairs.extend((memory, answer) for answer in (related or ([following] if following is not None else [])))
    return pairs


def _following_answer(problem: Memory, later: Sequence[Memory]) -> Memory | None:
    answers = [memory for memory in later if memory.memory_type in ANSWERS]
    here = next((each for each in answers if problem.session_id and each.session_id == problem.session_id), None)
    if here is not None and _shares_subject(here, problem):
        return here
    return next((each for each in answers if _names_the_same(each, problem)), None)


def _names_the_same(answer: Memory, problem: Memory) -> bool:
    """Whether both name the same issue, or the same error with another shared name."""
    names = identifiers(problem.text())
    shared = [names[name] for name in identifiers(answer.text()) if name in names]
    return "issue" in shared or ("error" in shared and len(shared) > 1)


def _shares_subject(answer: Memory, problem: Memory) -> bool:
    shared = identifiers(answer.text()).keys() & identifiers(problem.text()).keys()
    words = _words(_head(answer)) & _words(_head(problem))
    return bool(shared) or len(words) >= 2


def _recurred(ordered: Sequence[Memory], pairs: Sequence[tuple[Memory, Memory]]) -> set[str]:
    """The problems that occurred again in the session in which they were solved."""
    by_session: dict[str, list[Memory]] = defaultdict(list)
    for memory in ordered:
        if memory.memory_type in PROBLEMS and memory.session_id is not None:
            by_session[memory.session_id].append(memory)
    return {
        problem.id
        for problem, answer in pairs
        for later in by_session.get(problem.session_id or "", ())
        if later.created_at > answer.created_at
        and _jaccard(_words(_head(problem)), _words(_head(later))) >= MINING.min_similarity
    }


def _decisions(ordered: Sequence[Memory], facts: Facts) -> list[Occurrence]:
    return [Occurrence(m, _head(m), _holds(m, facts)) for m in ordered if m.memory_type == "decision"]


def _conventions(ordered: Sequence[Memory], facts: Facts) -> list[Occurrence]:
    found: list[Occurrence] = []
    for memory in ordered:
        if memory.memory_type in PROBLEMS:
            continue
        for sentence in _SENTENCE_END.split(memory.content[:_MOST_CHARACTERS_READ]):
            if phrases("convention").search(sentence) and len(_words(sentence)) >= 2:
                found.append(Occurrence(memory, sentence.strip(), _holds(memory, facts)))
    return found


def _practices(ordered: Sequence[Memory], facts: Facts, least: int) -> Iterable[Mined]:
    """A way of doing something, with how it went; statements of conventions are left out."""
    rules = {each.memory.id for each in _conventions(ordered, facts)}
    practices = [m for m in ordered if m.memory_type in _PRACTICE_TYPES and m.id not in rules]
    occurrences = [
        Occurrence(memory, _head(memory), _holds(memory, facts) and _went_well(memory)) for memory in practices
    ]
    failed, succeeded = phrases("failed"), phrases("succeeded")
    for group in similar_groups(
        occurrences, lambda each: _words(failed.sub(" ", succeeded.sub(" ", each.text))), _overlap
    ):
        if len(group) >= least:
            text = group[0].text
            yield _mined(_category_of(group), group, _cut(text, _MAX_NAME_LENGTH), text, {})


def _category_of(group: Sequence[Occurrence]) -> str:
    """The most frequent category of the group, or PRACTICE."""
    named = [each.memory.category for each in group if each.memory.category not in (None, "", "general")]
    return max(sorted(set(named)), key=named.count, default=None) or PRACTICE


def _went_well(memory: Memory) -> bool:
    """Whether it worked, according to its JSON, else to the last word of success or failure in its text."""
    failed, succeeded = phrases("failed"), phrases("succeeded")
    content = memory.content_json or {}
    for outcome in (content[name] for name in _OUTCOME_KEYS if name in content):
        if isinstance(outcome, bool):
            return outcome
        if isinstance(outcome, str) and (failed.search(outcome) or succeeded.search(outcome)):
            return failed.search(outcome) is None
    return _last(failed, memory.content) <= _last(succeeded, memory.content)


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in pattern.finditer(text[:_MOST_CHARACTERS_READ])), default=-1)


def _commands(ordered: Sequence[Memory], facts: Facts, least: int) -> Iterable[Mined]:
    by_command: dict[str, list[Occurrence]] = defaultdict(list)
    for memory in ordered:
        failed = (
            memory.memory_type in PROBLEMS
            or phrases("failed").search(memory.content[:_MOST_CHARACTERS_READ]) is not None
        )
        for command, spelled in commands(memory.content).items():
            by_command[command].append(Occurrence(memory, spelled, _holds(memory, facts) and not failed))
    for command, occurrences in sorted(by_command.items()):
        if len(occurrences) >= least:
            written = [each.text for each in occurrences]
            usual = max(sorted(set(written)), key=written.count)
            data: JsonObject = {"command": usual, "variants": sorted(set(written))[:10]}
            yield _mined(COMMAND, occurrences, command, f"The command `{usual}`", data, key=command)


def commands(text: str) -> dict[str, str]:
    """The shell commands that a text quotes, by tool and subcommands, each as it was written."""
    found: dict[str, str] = {}
    for quoted, prompted in _QUOTED_COMMAND.findall(text[:_MOST_CHARACTERS_READ]):
        written = (quoted or prompted).strip()
        parts = written.split()
        if parts and parts[0] == "sudo":
            parts = parts[1:]
        if not parts or parts[0] not in table("assignment")["command_line_tools"]:
            continue
        named = [parts[0]]
        for part in parts[1:3]:
            if _SUBCOMMAND.fullmatch(part) is None or "/" in part:
                break
            named.append(part)
        found.setdefault(" ".join(named), written)
    return found


# ---------------------------------------------------------------------- similarity


def _repeated(pattern_type: str, occurrences: Sequence[Occurrence], least: int) -> Iterable[Mined]:
    for group in similar_groups(occurrences, lambda each: _words(each.text)):
        # Two sentences of one memory count once.
        once = list({each.memory.id: each for each in reversed(group)}.values())[::-1]
        if len(once) >= least:
            yield _mined(pattern_type, once, _cut(once[0].text, _MAX_NAME_LENGTH), once[0].text, {})


def similar_groups(
    occurrences: Sequence[Occurrence],
    words_of: Callable[[Occurrence], frozenset[str]],
    similarity: Callable[[frozenset[str], frozenset[str]], float] | None = None,
) -> list[list[Occurrence]]:
    """Group occurrences that are similar to the first of their group, in order."""
    how_similar = similarity or _jaccard
    leaders: list[frozenset[str]] = []
    groups: list[list[Occurrence]] = []
    having: dict[str, list[int]] = defaultdict(list)
    for each in occurrences:
        words = words_of(each)
        near = sorted({place for word in words for place in having[word]})
        best = max(near, key=lambda place: (how_similar(words, leaders[place]), -place), default=None)
        if best is not None and how_similar(words, leaders[best]) >= MINING.min_similarity:
            groups[best].append(each)
            continue
        for word in words:
            having[word].append(len(leaders))
        leaders.append(words)
        groups.append([each])
    return groups


def _jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of the shorter text in the longer one, which may add where and how a practice was tried."""
    shared = one & other
    return len(shared) / min(len(one), len(other)) if len(shared) >= MINING.min_shared_words else _jaccard(one, other)


def _words(text: str) -> frozenset[str]:
    """The words of a statement without numbers, and the errors that it names."""
    named = {name.casefold() for name, kind in identifiers(text).items() if kind == "error"}
    return (
        frozenset(word for word in query_terms(text[:_MOST_CHARACTERS_READ]) if not any(c.isdigit() for c in word))
        | named
    )


def _head(memory: Memory) -> str:
    """The title of a memory, else its first sentence."""
    if memory.title.strip():
        return " ".join(memory.title.split())
    return " ".join(_SENTENCE_END.split(memory.content.strip(), maxsplit=1)[0].split())[:300]


def _holds(memory: Memory, facts: Facts) -> bool:
    return memory.id not in facts.flawed


def _cut(text: str, longest: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1].rstrip()}…"


def _mined(
    pattern_type: str,
    occurrences: Sequence[Occurrence],
    name: str,
    description: str,
    data: JsonObject,
    key: str | None = None,
) -> Mined:
    ids = sorted({each for one in occurrences for each in one.memory_ids})
    worked = {each for one in occurrences if one.worked for each in one.memory_ids}
    failed = [each for each in ids if each not in worked]
    return Mined(
        pattern_type,
        key or occurrences[0].memory.id,
        name,
        description,
        {**data, "failed_ids": failed} if failed else data,
        round(sum(each.worked for each in occurrences) / len(occurrences), 4),
        len(occurrences),
        tuple(ids),
        max(each.memory.created_at for each in occurrences),
    )
