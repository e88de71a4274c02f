"""Lessons as documents that coding agents read: Agent Skills (`SKILL.md`) and sections of an `AGENTS.md`."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from alma.errors import RefusedError
from alma.lazy import lazy_regex
from alma.text.canonical import fingerprint

SKILL_FILE = "SKILL.md"
BEGIN, END = "<!-- alma:lessons:begin -->", "<!-- alma:lessons:end -->"
"""The lines around the lessons in an AGENTS.md; a new export replaces what is between them."""

_PREFIX = "alma-"
_LONGEST_NAME, _LONGEST_SLUG, _LONGEST_DESCRIPTION, _LONGEST_TITLE = 64, 50, 1024, 80
_SECTIONS = ("When", "Do", "Evidence")
_BEGINS, _ENDS = (lazy_regex(f"^{re.escape(mark)}$", re.MULTILINE) for mark in (BEGIN, END))
_FRONT = lazy_regex(r"\A\ufeff?---[ \t]*\n(.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_DATA = lazy_regex(r"^<!-- alma: (\{.*\}) -->$", re.MULTILINE)
_HEADING = lazy_regex(r"^(#{1,6})[ \t]+(.+?)[ \t]*#*$")
_BULLET = lazy_regex(r"^[-*+][ \t]+|^\d+[.)][ \t]+")
_FENCE = lazy_regex(r"^[ \t]*(```|~~~)")
_ANYWHERE = "work in this project"


@dataclass(frozen=True, slots=True)
class SkillLesson:
    """A lesson in a document: what to do when, its evidence, and what else the document says about it.

    `facts` are the lesson's data as texts, and `fields` the other fields of a skill, such as its license.
    """

    condition: str
    strategy: str
    name: str = ""
    evidence: str = ""
    facts: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def agent(self) -> str | None:
        """The agent that learned it, if the document says so."""
        return self.facts.get("agent") or None

    @property
    def lesson(self) -> str | None:
        """The id of the lesson in the store that it was exported from."""
        return self.facts.get("lesson") or None

    @property
    def title(self) -> str:
        """The condition on one line."""
        line = " ".join(self.condition.split())
        return line if len(line) <= _LONGEST_TITLE else f"{line[: _LONGEST_TITLE - 1]}…"

    def says_the_same(self, other: SkillLesson) -> bool:
        """Whether both say the same to do in the same case, apart from white space at the end of lines."""
        return _plain(self.condition) == _plain(other.condition) and _plain(self.strategy) == _plain(other.strategy)


def skill_name(condition: str, lesson_id: str) -> str:
    """The name of a lesson's skill: its condition in words, and a part of its id."""
    plain = unicodedata.normalize("NFKC", condition).lower()
    slug = "-".join("".join(sign if sign.isalnum() else " " for sign in plain).split())[:_LONGEST_SLUG].strip("-")
    return unicodedata.normalize("NFKC", f"{slug or 'lesson'}-{fingerprint(lesson_id)[:8]}")


# ---------------------------------------------------------------------- writing


def skill_text(lesson: SkillLesson) -> str:
    """A lesson as the text of its SKILL.md."""
    description = f"Use for: {' '.join(lesson.condition.split())}"
    if len(description) > _LONGEST_DESCRIPTION:
        description = f"{description[: _LONGEST_DESCRIPTION - 1]}…"
    own = {f"{_PREFIX}{name}": text for name, text in lesson.facts.items()}
    kept = {name: value for name, value in lesson.fields.items() if name not in ("name", "description", "metadata")}
    front = {
        "name": lesson.name,
        "description": lesson.fields.get("description", description),
        **kept,
        "metadata": {**(lesson.fields.get("metadata") or {}), **own},
    }
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000)
    return f"---\n{head}---\n\n# {lesson.title}\n\n{_body(lesson, '##')}\n"


def agents_text(lessons: Iterable[SkillLesson], before: str = "") -> str:
    """An AGENTS.md with a section for each lesson, in place of the earlier ones; its other text stays."""
    sections = [f"### {each.title}\n\n{_body(each, '####')}\n\n{_data(each)}" for each in lessons]
    block = "\n\n".join([BEGIN, "## Lessons", *sections, END])
    start, end = _block_of("AGENTS.md", before)
    if end == 0:
        return f"{before.rstrip()}\n\n{block}\n".lstrip()
    return f"{before[:start]}{block}{before[end:]}"


def _data(lesson: SkillLesson) -> str:
    """A comment with the data of a lesson."""
    # A comment cannot contain two dashes.
    dashed = json.dumps({"name": lesson.name, **lesson.facts}, ensure_ascii=False).replace("--", "-\\u002d")
    return f"<!-- alma: {dashed} -->"


def _body(lesson: SkillLesson, level: str) -> str:
    texts = zip(_SECTIONS, (lesson.condition, lesson.strategy, lesson.evidence), strict=True)
    return "\n\n".join(f"{level} {name}\n\n{_escaped(text)}" for name, text in texts if text.strip())


def _escaped(text: str) -> str:
    """A text in which no line looks like a heading or the end of the block."""
    return re.sub(r"^(\\*)(#|<!--)", r"\\\1\2", text.strip(), flags=re.MULTILINE)


def _unescaped(text: str) -> str:
    return re.sub(r"^\\(\\*(?:#|<!--))", r"\1", text.strip(), flags=re.MULTILINE)


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def _refused(path: str, sentence: str) -> RefusedError:
    return RefusedError("skill", f"{path} {sentence}")


def _block_of(path: str, text: str) -> tuple[int, int]:
    """Where the lessons begin and end in an AGENTS.md; 0, 0 without them."""
    start = _BEGINS.search(text)
    if start is None:
        return 0, 0
    end = _ENDS.search(text, start.end())
    if end is None:
        raise _refused(path, f"has the line {BEGIN} without {END}: add it, or remove both")
    return start.start(), end.end()


# ---------------------------------------------------------------------- reading


def lessons_in(path: str, text: str) -> list[SkillLesson]:
    """The lessons of a document: one of a SKILL.md, one of each section or list item of another Markdown file."""
    if path.rpartition("/")[2] == SKILL_FILE:
        return [_skill(path, text)]
    start, end = _block_of(path, text)
    block = text[start:end]
    found = [*_sections(path, block), *_stated(text[:start] + text[end:])]
    if not found:
        raise _refused(path, "has no lessons: write them as list items under headings")
    return found


def _skill(path: str, text: str) -> SkillLesson:
    front = _FRONT.match(text.replace("\r\n", "\n"))
    if front is None:
        raise _refused(path, "must begin with the fields name and description between two lines ---")
    fields = _fields(path, front[1])
    body = text.replace("\r\n", "\n")[front.end() :]
    data = {str(name): str(value) for name, value in (fields.get("metadata") or {}).items()}
    facts = {name.removeprefix(_PREFIX): value for name, value in data.items() if name.startswith(_PREFIX)}
    others = {name: value for name, value in data.items() if not name.startswith(_PREFIX)}
    kept = {name: value for name, value in fields.items() if name not in ("name", "metadata")}
    if "lesson" in facts:
        kept.pop("description")
    named = _named_sections(body, "##")
    condition = named.get("When") or fields["description"].strip()
    strategy = named.get("Do") or _unescaped(body)
    if not strategy:
        raise _refused(path, "says nothing to do: write it below the second line ---")
    return SkillLesson(
        condition,
        strategy,
        fields["name"],
        named.get("Evidence", ""),
        facts,
        {**kept, **({"metadata": others} if others else {})},
    )


def _fields(path: str, front: str) -> dict[str, Any]:
    try:
        fields = yaml.safe_load(front)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = "" if mark is None else f" in line {mark.line + 2}"
        problem = getattr(exc, "problem", None) or "it cannot be read"
        raise _refused(path, f"has fields that are not YAML{where}: {problem}") from None
    if not isinstance(fields, dict):
        raise _refused(path, "must have the fields name and description")
    for name in ("name", "description"):
        if not isinstance(fields.get(name), str) or not fields[name].strip():
            raise _refused(path, f"lacks the text of the field {name}: add it between the two lines ---")
    if len(fields["name"]) > _LONGEST_NAME or not fields["name"].replace("-", "").isalnum():
        raise _refused(path, f"has a name that is not of at most {_LONGEST_NAME} letters, digits and hyphens")
    if not isinstance(fields.get("metadata") or {}, dict):
        raise _refused(path, "has a field metadata that is not a map of names to texts")
    return fields


def _sections(path: str, block: str) -> Iterator[SkillLesson]:
    """The lessons between the marks of an AGENTS.md."""
    for part in re.split(r"^### .*$", block, flags=re.MULTILINE)[1:]:
        data = _DATA.search(part)
        named = _named_sections(part[: data.start()] if data else _ENDS.sub("", part), "####")
        try:
            facts = {str(name): str(value) for name, value in json.loads(data[1] if data else "{}").items()}
        except ValueError:
            raise _refused(path, "has a comment <!-- alma: … --> that is not JSON") from None
        if not named.get("When") or not named.get("Do"):
            raise _refused(path, "has a lesson without its parts #### When and #### Do")
        name = facts.pop("name", "")
        yield SkillLesson(named["When"], named["Do"], name, named.get("Evidence", ""), facts)


def _named_sections(text: str, level: str) -> dict[str, str]:
    """The texts under the headings When, Do and Evidence."""
    parts = re.split(rf"^{level} ({'|'.join(_SECTIONS)})[ \t]*$", text, flags=re.MULTILINE)
    return {name: _unescaped(said) for name, said in zip(parts[1::2], parts[2::2], strict=True)}


def _stated(text: str) -> Iterator[SkillLesson]:
    """The list items, or else the text, under each heading of a Markdown file that others wrote."""
    for heading, lines in _under_headings(text):
        items = [] if any(_FENCE.match(line) for line in lines) else _items(lines)
        said = "\n".join(lines).strip()
        for each in items or ([said] if said else []):
            yield SkillLesson(heading, each)


def _under_headings(text: str) -> Iterator[tuple[str, Sequence[str]]]:
    heading, lines, fenced = _ANYWHERE, list[str](), False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        found = None if fenced else _HEADING.match(line)
        if found is None:
            lines.append(line)
            continue
        yield heading, lines
        # The title of the file says nothing about when.
        heading, lines = (_ANYWHERE if len(found[1]) == 1 else found[2]), []
    yield heading, lines


def _items(lines: Sequence[str]) -> list[str]:
    """The items of a list, with their continuation lines; a paragraph before it leads each item in."""
    found: list[list[str]] = []
    for line in lines:
        if _BULLET.match(line):
            found.append([_BULLET.sub("", line)])
        elif found and line.strip():
            found[-1].append(line)
    return ["\n".join(each).strip() for each in found]
