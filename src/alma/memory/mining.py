"""Mining: what recurs in memories. The same memories always give the same patterns, in whatever order they come."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from alma.memory.relation_detection import identifiers, is_telling
from alma.model.fields import JsonObject
from alma.model.memory import Memory
from alma.text.tokens import query_terms

ERROR_SOLUTION, DECISION, CONVENTION, COMMAND = "error_solution", "decision", "convention", "command"
PRACTICE = "practice"
PRACTISED = ("pattern", "insight")
"""The types of memories that tell how something was done; what recurs in them is a pattern of its category."""
PROBLEMS, ANSWERS = ("error", "bug", "issue", "problem"), ("solution", "fix")

_READ = 4_000
_ALIKE = 0.5
_FEWEST_SHARED = 3
_LONGEST_NAME = 160
_CONVENTION = re.compile(
    r"\b(?:always|never|must(?: not)?|should(?: not|n't)?|prefer|by convention|the (?:rule|convention) is|do not|don't"
    r"|we (?:use|write|name|keep|test|deploy))\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_QUOTED = re.compile(r"`([^`\n]{2,200})`|^\s*\$\s+(.{2,200})$", re.MULTILINE)
_KNOWN_TOOLS = """
git npm npx yarn pnpm pip pipx uv poetry python python3 pytest tox make cmake cargo rustc go docker podman kubectl helm
terraform ansible aws gcloud az curl wget ssh scp rsync psql mysql sqlite3 redis-cli alembic flask django-admin node
deno bun tsc eslint prettier ruff black mypy mvn gradle java dotnet bash sh systemctl apt apt-get brew sed grep alma
"""
_TOOLS = frozenset(_KNOWN_TOOLS.split())
_WORD = re.compile(r"[a-z][\w:.\-]*", re.IGNORECASE)
_FAILED = re.compile(
    r"\b(?:fail(?:s|ed|ing|ure)?|broke(?:n)?|crash(?:es|ed)?|error|does ?n[o']t work)\b", re.IGNORECASE
)
_SUCCEEDED = re.compile(
    r"\b(?:work(?:s|ed)|succe(?:eds?|eded|ssful(?:ly)?|ss)|pass(?:es|ed)|helped|paid off|improved|fixed|solved)\b",
    re.IGNORECASE,
)
_OUTCOMES = ("success", "succeeded", "outcome", "result", "status")


@dataclass(frozen=True, slots=True)
class Facts:
    """What relationships say of the memories that are mined: which solved which, and which no longer hold."""

    solutions: Mapping[str, frozenset[str]] = field(default_factory=dict)
    flawed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Mined:
    """Something that recurs: how often, how often it worked, and in which memories."""

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
    """A thing said once: where, in which words, and whether it worked there."""

    memory: Memory
    text: str
    worked: bool
    answer: Memory | None = None

    @property
    def memory_ids(self) -> list[str]:
        return [self.memory.id, *([self.answer.id] if self.answer is not None else ())]


def mine(memories: Iterable[Memory], facts: Facts, min_occurrences: int = 2) -> list[Mined]:
    """Everything that occurs at least so often, most used first."""
    ordered = sorted(memories, key=lambda memory: (memory.created_at, memory.id))
    found = [
        *_error_solutions(ordered, facts, min_occurrences),
        *_repeated(DECISION, _decisions(ordered, facts), min_occurrences),
        *_repeated(CONVENTION, _conventions(ordered, facts), min_occurrences),
        *_practices(ordered, facts, min_occurrences),
        *_commands(ordered, facts, min_occurrences),
    ]
    return sorted(found, key=lambda each: (-each.usage_count, each.pattern_type, each.key))


# ---------------------------------------------------------------------- what is looked for


def _error_solutions(ordered: Sequence[Memory], facts: Facts, least: int) -> Iterable[Mined]:
    """The same problem, solved the same way."""
    pairs = solved(ordered, facts)
    recurred = _recurred(ordered, pairs)
    said = [
        Occurrence(
            error, f"{_head(error)}\n{_head(answer)}", _holds(answer, facts) and error.id not in recurred, answer
        )
        for error, answer in pairs
    ]
    for group in alike(said, lambda each: _words(_head(each.memory))):
        for same in alike(group, lambda each: _words(_head(each.answer or each.memory))):
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
    """Problems with their solutions: those that are related, else the next in the session that speaks of the same, else
    the next anywhere that names the same."""
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
    if here is not None and _speaks_of(here, problem):
        return here
    return next((each for each in answers if _names_the_same(each, problem)), None)


def _names_the_same(answer: Memory, problem: Memory) -> bool:
    """Whether both name one issue, or one error in one place."""
    names = identifiers(problem.text())
    shared = [names[name] for name in identifiers(answer.text()) if name in names]
    return "issue" in shared or ("error" in shared and len(shared) > 1)


def _speaks_of(answer: Memory, problem: Memory) -> bool:
    shared = identifiers(answer.text()).keys() & identifiers(problem.text()).keys()
    words = _words(_head(answer)) & _words(_head(problem))
    return bool(shared) or len(words) >= 2


def _recurred(ordered: Sequence[Memory], pairs: Sequence[tuple[Memory, Memory]]) -> set[str]:
    """The problems that came again in the session in which they had been solved."""
    by_session: dict[str, list[Memory]] = defaultdict(list)
    for memory in ordered:
        if memory.memory_type in PROBLEMS and memory.session_id is not None:
            by_session[memory.session_id].append(memory)
    return {
        problem.id
        for problem, answer in pairs
        for later in by_session.get(problem.session_id or "", ())
        if later.created_at > answer.created_at and _alike(_words(_head(problem)), _words(_head(later))) >= _ALIKE
    }


def _decisions(ordered: Sequence[Memory], facts: Facts) -> list[Occurrence]:
    return [Occurrence(m, _head(m), _holds(m, facts)) for m in ordered if m.memory_type == "decision"]


def _conventions(ordered: Sequence[Memory], facts: Facts) -> list[Occurrence]:
    found: list[Occurrence] = []
    for memory in ordered:
        if memory.memory_type in PROBLEMS:
            continue
        for sentence in _SENTENCE_END.split(memory.content[:_READ]):
            if _CONVENTION.search(sentence) and len(_words(sentence)) >= 2:
                found.append(Occurrence(memory, sentence.strip(), _holds(memory, facts)))
    return found


def _practices(ordered: Sequence[Memory], facts: Facts, least: int) -> Iterable[Mined]:
    """The same way of doing something, each time with how it went; what is a rule is a convention already."""
    rules = {each.memory.id for each in _conventions(ordered, facts)}
    told = [m for m in ordered if m.memory_type in PRACTISED and m.id not in rules]
    said = [Occurrence(memory, _head(memory), _holds(memory, facts) and _went_well(memory)) for memory in told]
    for group in alike(said, lambda each: _words(_FAILED.sub(" ", _SUCCEEDED.sub(" ", each.text))), _nearly):
        if len(group) >= least:
            text = group[0].text
            yield _mined(_sort_of(group), group, _cut(text, _LONGEST_NAME), text, {})


def _sort_of(group: Sequence[Occurrence]) -> str:
    """The category that most of them have: architecture, testing, deployment and so on."""
    named = [each.memory.category for each in group if each.memory.category not in (None, "", "general")]
    return max(sorted(set(named)), key=named.count, default=None) or PRACTICE


def _went_well(memory: Memory) -> bool:
    """Whether it worked, as its JSON says, or else its words: the last that is said of it counts."""
    content = memory.content_json or {}
    for said in (content[name] for name in _OUTCOMES if name in content):
        if isinstance(said, bool):
            return said
        if isinstance(said, str) and (_FAILED.search(said) or _SUCCEEDED.search(said)):
            return _FAILED.search(said) is None
    return _last(_FAILED, memory.content) <= _last(_SUCCEEDED, memory.content)


def _last(pattern: re.Pattern[str], text: str) -> int:
    return max((match.start() for match in pattern.finditer(text[:_READ])), default=-1)


def _commands(ordered: Sequence[Memory], facts: Facts, least: int) -> Iterable[Mined]:
    by_command: dict[str, list[Occurrence]] = defaultdict(list)
    for memory in ordered:
        failed = memory.memory_type in PROBLEMS or _FAILED.search(memory.content[:_READ]) is not None
        for command, spelled in commands(memory.content).items():
            by_command[command].append(Occurrence(memory, spelled, _holds(memory, facts) and not failed))
    for command, said in sorted(by_command.items()):
        if len(said) >= least:
            written = [each.text for each in said]
            usual = max(sorted(set(written)), key=written.count)
            data: JsonObject = {"command": usual, "variants": sorted(set(written))[:10]}
            yield _mined(COMMAND, said, command, f"The command `{usual}`", data, key=command)


def commands(text: str) -> dict[str, str]:
    """The shell commands that a text quotes, each by its tool and subcommands, and as it was written."""
    found: dict[str, str] = {}
    for quoted, prompted in _QUOTED.findall(text[:_READ]):
        written = (quoted or prompted).strip()
        parts = written.split()
        if parts and parts[0] == "sudo":
            parts = parts[1:]
        if not parts or parts[0] not in _TOOLS:
            continue
        named = [parts[0]]
        for part in parts[1:3]:
            if _WORD.fullmatch(part) is None or "/" in part:
                break
            named.append(part)
        found.setdefault(" ".join(named), written)
    return found


# ---------------------------------------------------------------------- what is alike


def _repeated(pattern_type: str, said: Sequence[Occurrence], least: int) -> Iterable[Mined]:
    for group in alike(said, lambda each: _words(each.text)):
        # Saying it twice in one breath is saying it once.
        once = list({each.memory.id: each for each in reversed(group)}.values())[::-1]
        if len(once) >= least:
            yield _mined(pattern_type, once, _cut(once[0].text, _LONGEST_NAME), once[0].text, {})


def alike(
    said: Sequence[Occurrence],
    words_of: Callable[[Occurrence], frozenset[str]],
    likeness: Callable[[frozenset[str], frozenset[str]], float] | None = None,
) -> list[list[Occurrence]]:
    """Groups of those that say nearly the same as the first of their group, in the order they come in."""
    how_alike = likeness or _alike
    leaders: list[frozenset[str]] = []
    groups: list[list[Occurrence]] = []
    having: dict[str, list[int]] = defaultdict(list)
    for each in said:
        words = words_of(each)
        near = sorted({place for word in words for place in having[word]})
        best = max(near, key=lambda place: (how_alike(words, leaders[place]), -place), default=None)
        if best is not None and how_alike(words, leaders[best]) >= _ALIKE:
            groups[best].append(each)
            continue
        for word in words:
            having[word].append(len(leaders))
        leaders.append(words)
        groups.append([each])
    return groups


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one and other else 0.0


def _nearly(one: frozenset[str], other: frozenset[str]) -> float:
    """How much of the shorter one the longer has: a practice is told with where it was tried and how it went."""
    shared = one & other
    return len(shared) / min(len(one), len(other)) if len(shared) >= _FEWEST_SHARED else _alike(one, other)


def _words(text: str) -> frozenset[str]:
    """What tells a statement from others: its words without numbers, and the names in it."""
    named = {name.casefold() for name, kind in identifiers(text).items() if is_telling(kind) and kind == "error"}
    return frozenset(word for word in query_terms(text[:_READ]) if not any(c.isdigit() for c in word)) | named


def _head(memory: Memory) -> str:
    """What a memory is about: its title, else how it begins."""
    if memory.title.strip():
        return " ".join(memory.title.split())
    return " ".join(_SENTENCE_END.split(memory.content.strip(), maxsplit=1)[0].split())[:300]


def _holds(memory: Memory, facts: Facts) -> bool:
    return memory.id not in facts.flawed


def _cut(text: str, longest: int) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= longest else f"{plain[: longest - 1].rstrip()}…"


def _mined(
    pattern_type: str, said: Sequence[Occurrence], name: str, description: str, data: JsonObject, key: str | None = None
) -> Mined:
    ids = sorted({each for one in said for each in one.memory_ids})
    return Mined(
        pattern_type,
        key or said[0].memory.id,
        name,
        description,
        data,
        round(sum(each.worked for each in said) / len(said), 4),
        len(said),
        tuple(ids),
        max(each.memory.created_at for each in said),
    )
