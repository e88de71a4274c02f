"""Operations that exchange lessons with Agent Skills and AGENTS.md files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from alma.errors import RefusedError, ValidationError
from alma.ingest.deduplication import known_duplicate
from alma.ingest.pipeline import Status
from alma.integration.agent_skills import SKILL_FILE, SkillLesson, agents_text, lessons_in, skill_name, skill_text
from alma.learning.lessons import SKILL, lesson_id_of, skill_of
from alma.learning.maturity import Confirmation, Maturity, confirmations
from alma.model.governance import ArchiveCause
from alma.model.learning import Heuristic
from alma.model.query import Order
from alma.operations.access import Caller, Right
from alma.operations.base import InProject, Input, Name, Operation, Output, Prose, Text, operation

SOURCE = "skill"
"""The source of imported lessons; it is not trusted."""

_MOST_RULES, _MOST_DOCUMENTS = 2_000, 1_000
_CLAIMED = 0.5
_ORDER = (Maturity.PROVISIONAL, Maturity.CORROBORATED, Maturity.ESTABLISHED)
_SUREST = (Order("confidence", "desc"), Order("id"))
_EXAMPLE = "---\nname: wait\ndescription: Testing a form\n---\nWait until the network is idle."
Least = Literal["established", "corroborated", "provisional"]


class Document(Input):
    path: Annotated[Name, Field(description="Its path; a file named SKILL.md is a skill, any other is an AGENTS.md.")]
    text: Text


class Documents(InProject):
    documents: Annotated[Sequence[Document], Field(min_length=1, max_length=_MOST_DOCUMENTS)]
    agent: Name | None = Field(None, description="The agent that learns them; default: the one that the file names.")


class ExportSkills(InProject):
    agent: Name | None = Field(None, description="Only lessons of this agent.")
    least: Least = Field("established", description="How far a lesson must be confirmed at least.")
    form: Literal["skills", "agents"] = Field("skills", description="A SKILL.md for each lesson, or one AGENTS.md.")
    before: Prose = Field("", description="The text of the AGENTS.md so far, of which everything else is kept.")


class ExportedDocument(Output):
    path: str
    text: str
    lessons: Sequence[str] = Field(description="The ids of its lessons.")


class ExportedSkills(Output):
    documents: Sequence[ExportedDocument]


@operation("skills", Right.READ, example={"least": "established"})
def export_skills(caller: Caller, request: ExportSkills) -> ExportedSkills:
    """Write the confirmed lessons as Agent Skills or as sections of an AGENTS.md, with their evidence."""
    found = list(_stored(caller, request.project_id, request.agent, Maturity(request.least)))
    if request.form == "agents":
        text = agents_text((lesson for _, lesson in found), request.before)
        return ExportedSkills(documents=[ExportedDocument(path="AGENTS.md", text=text, lessons=[k for k, _ in found])])
    return ExportedSkills(
        documents=[
            ExportedDocument(path=f"{lesson.name}/{SKILL_FILE}", text=skill_text(lesson), lessons=[key])
            for key, lesson in found
        ]
    )


def _stored(
    caller: Caller, project_id: str | None, agent: str | None, least: Maturity
) -> Iterator[tuple[str, SkillLesson]]:
    """The lessons that are confirmed that far, surest first."""
    storage = caller.store.storage
    rules = storage.find(Heuristic, caller.project_scope(project_id, agent), order=_SUREST, limit=_MOST_RULES)
    known = confirmations(storage, rules)
    enough = _ORDER[_ORDER.index(least) :]
    yield from ((rule.id, _lesson(rule, known[rule.id])) for rule in rules if known[rule.id].state in enough)


def _lesson(rule: Heuristic, known: Confirmation) -> SkillLesson:
    skill = skill_of(rule) or {}
    verified = f"; verified by {', '.join(sorted(known.verifiers))}" if known.verifiers else ""
    claimed = f"\n\nWhere it was imported from: {skill['evidence']}" if skill.get("evidence") else ""
    facts = {
        "lesson": rule.id,
        "project": rule.project_id,
        "agent": rule.agent,
        "maturity": str(known.state),
        "confidence": f"{rule.confidence:.2f}",
        "successes": str(rule.success_count),
        "failures": str(rule.occurrence_count - rule.success_count),
        "tasks": str(len(known.tasks)),
        "sessions": str(len(known.sessions)),
    }
    if rule.metadata.get("task_type"):
        facts["task-type"] = str(rule.metadata["task_type"])
    return SkillLesson(
        rule.condition,
        rule.strategy,
        skill.get("name") or skill_name(rule.condition, rule.id),
        f"{known}{verified}{claimed}",
        facts,
        skill.get("fields") or {},
    )


# ---------------------------------------------------------------------- import


class ImportSkills(Documents):
    dry_run: bool = Field(False, description="Say what would happen, and store nothing.")


class ImportedLesson(Output):
    path: str
    condition: str = ""
    status: Literal["stored", "known", "quarantined", "refused"]
    id: str | None = None
    archive_id: str | None = Field(default=None, description="Of a quarantined lesson: restore accepts it.")
    reason: str | None = None


class ImportedSkills(Output):
    lessons: Sequence[ImportedLesson]
    dry_run: bool


@operation(
    "skills",
    Right.WRITE,
    idempotent=True,
    example={"agent": "helena", "documents": [{"path": "wait/SKILL.md", "text": _EXAMPLE}]},
)
def import_skills(caller: Caller, request: ImportSkills) -> ImportedSkills:
    """Learn lessons from Agent Skills and AGENTS.md files.

    They pass ingest as untrusted text: secrets are masked, and what looks like a prompt injection is quarantined. A
    lesson is provisional until outcomes confirm it. A lesson that is known already is not stored again.
    """
    found: list[ImportedLesson] = []
    for document in request.documents:
        try:
            lessons = lessons_in(document.path, document.text)
        except RefusedError as exc:
            found.append(ImportedLesson(path=document.path, status="refused", reason=str(exc)))
            continue
        found += [_imported(caller, request, document.path, each) for each in lessons]
    return ImportedSkills(lessons=found, dry_run=request.dry_run)


def _imported(caller: Caller, request: ImportSkills, path: str, lesson: SkillLesson) -> ImportedLesson:
    told = ImportedLesson(path=path, condition=lesson.title, status="refused")
    try:
        rule = _rule(caller, request, lesson)
        known = _known(caller, rule, lesson)
        if known is not None:
            return told.model_copy(update={"status": "known", "id": known.id})
        waiting = _waiting(caller, rule)
        if waiting is not None:
            said = {"status": "quarantined", "id": rule.id, "archive_id": waiting, "reason": "it waits for a review"}
            return told.model_copy(update=said)
        if request.dry_run:
            reason = caller.store.ingest.injection_reason(rule, SOURCE)
            status = "stored" if reason is None else "quarantined"
            return told.model_copy(update={"status": status, "id": rule.id, "reason": reason})
        written = caller.store.ingest.save(rule, caller.by(agent=rule.agent), SOURCE)
    except (RefusedError, ValidationError) as exc:
        return told.model_copy(update={"reason": str(exc)})
    status = {Status.MERGED: "known", Status.QUARANTINED: "quarantined"}.get(written.status, "stored")
    found = {"id": written.id, "archive_id": written.archive_id, "reason": written.reason}
    return told.model_copy(update={"status": status, **found})


def _rule(caller: Caller, request: Documents, lesson: SkillLesson) -> Heuristic:
    """The lesson as a rule that nothing confirms yet, if its agent may learn it."""
    named = request.agent or lesson.agent
    if named is None:
        raise RefusedError("skill", "the file does not name the agent that learns this: name one (agent, --agent)")
    agent, memory = caller.agent(named), caller.memory(request.project_id)
    task_type = lesson.facts.get("task-type")
    memory.learning.validator.require(agent, task_type, f"{lesson.condition} {lesson.strategy}")
    skill = {
        "name": lesson.name,
        "evidence": lesson.evidence,
        "facts": dict(lesson.facts),
        "fields": dict(lesson.fields),
    }
    return Heuristic(
        id=lesson_id_of(memory.project_id, agent, lesson.strategy, lesson.condition),
        agent=agent,
        project_id=memory.project_id,
        condition=lesson.condition,
        strategy=lesson.strategy,
        confidence=_CLAIMED,
        metadata={
            SKILL: {name: value for name, value in skill.items() if value},
            **({"task_type": task_type} if task_type else {}),
        },
    )


def _known(caller: Caller, rule: Heuristic, lesson: SkillLesson) -> Heuristic | None:
    """The stored rule that a lesson repeats: that of its id if it says the same, or one in the same words."""
    storage, scope = caller.store.storage, caller.project_scope(rule.project_id, rule.agent)
    for key in filter(None, (lesson.lesson, rule.id)):
        stored = storage.get(Heuristic, key, scope)
        if stored is not None and (key == rule.id or _lesson(stored, Confirmation()).says_the_same(lesson)):
            return stored
    clean = caller.store.ingest.clean(rule)[0]
    with storage.snapshot() as tx:
        found = known_duplicate(tx, clean)
    return found if isinstance(found, Heuristic) else None


def _waiting(caller: Caller, rule: Heuristic) -> str | None:
    """The archive id of the rule, if it is in quarantine."""
    scope = caller.project_scope(rule.project_id, rule.agent)
    archive = caller.store.archive
    found = archive.find(scope, Heuristic, ArchiveCause.QUARANTINED, record_ids=[rule.id], limit=1)
    return found[0].id if found else None


# ---------------------------------------------------------------------- diff


class DiffSkills(Documents):
    least: Least = Field("established", description="How far a stored lesson must be confirmed to be missed in files.")


class SkillDifference(Output):
    difference: Literal["changed", "only in the files", "only in the store"]
    condition: str
    path: str | None = None
    id: str | None = None
    in_file: str | None = Field(default=None, description="What the file says to do.")
    in_store: str | None = Field(default=None, description="What the store says to do.")


class SkillDifferences(Output):
    same: int = Field(description="The number of lessons that the files and the store both have.")
    differences: Sequence[SkillDifference]


@operation(
    "skills", Right.READ, example={"documents": [{"path": "wait/SKILL.md", "text": _EXAMPLE}], "agent": "helena"}
)
def diff_skills(caller: Caller, request: DiffSkills) -> SkillDifferences:
    """Compare Agent Skills and AGENTS.md files with the lessons of the store."""
    same: set[str] = set()
    found: list[SkillDifference] = []
    for document in request.documents:
        for lesson in lessons_in(document.path, document.text):
            rule = _rule(caller, request, lesson)
            known = _known(caller, rule, lesson)
            if known is not None:
                same.add(known.id)
                continue
            found.append(_difference(caller, document.path, rule, lesson))
    files = {each.id for each in found} | same
    for key, stored in _stored(caller, request.project_id, request.agent, Maturity(request.least)):
        if key not in files:
            only = SkillDifference(
                difference="only in the store", condition=stored.title, id=key, in_store=stored.strategy
            )
            found.append(only)
    return SkillDifferences(same=len(same), differences=found)


def _difference(caller: Caller, path: str, rule: Heuristic, lesson: SkillLesson) -> SkillDifference:
    scope = caller.project_scope(rule.project_id, rule.agent)
    stored = None if lesson.lesson is None else caller.store.storage.get(Heuristic, lesson.lesson, scope)
    return SkillDifference(
        difference="only in the files" if stored is None else "changed",
        condition=lesson.title,
        path=path,
        id=None if stored is None else stored.id,
        in_file=lesson.strategy,
        in_store=None if stored is None else stored.strategy,
    )


SKILLS: tuple[Operation[Any, Any], ...] = (export_skills, import_skills, diff_skills)
