"""`alma skills`: lessons as files that coding agents read, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from alma.cli.app import application, examples
from alma.cli.output import AsJson, say, show_json, show_table
from alma.cli.store_options import Config, Project, Store, open_memory
from alma.errors import ConfigurationError, RefusedError
from alma.integration.agent_skills import SKILL_FILE, agents_text, lessons_in
from alma.operations.access import Caller
from alma.operations.base import to_json
from alma.operations.skills import diff_skills, export_skills, import_skills

if TYPE_CHECKING:
    from alma.core import ALMA

app = application("Lessons as Agent Skills and AGENTS.md: export, import, diff.")

_PLACE = "A folder of skills, or a Markdown file such as AGENTS.md."
Place = Annotated[Path, typer.Argument(metavar="PATH", help=_PLACE)]
Agent = Annotated[str | None, typer.Option(metavar="NAME", help="The agent; default: every agent, or the file's.")]
Least = Annotated[
    str, typer.Option(help="How far lessons must be confirmed: established, corroborated or provisional.")
]
_MARKDOWN = (".md", ".markdown", ".mdc")
_LARGEST = 1_000_000


@app.command("export", epilog=examples("alma skills export .claude/skills", "alma skills export AGENTS.md"))
def export_command(
    path: Place,
    config: Config = None,
    store: Store = None,
    project: Project = None,
    agent: Agent = None,
    least: Least = "established",
    force: Annotated[bool, typer.Option("--force", help="Overwrite lessons that were changed in the files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the confirmed lessons as Agent Skills, or into an AGENTS.md, with their evidence.

    A skill that was changed by hand is not overwritten without --force; other text of an AGENTS.md stays.
    """
    is_file = _is_file(path)
    request: dict[str, Any] = {"agent": agent, "least": least, "form": "agents" if is_file else "skills"}
    if is_file and path.exists():
        request["before"] = _text_of(path)
    with open_memory(config, store, project, must_exist=True) as memory:
        result = to_json(export_skills.perform(Caller(memory), request))
        places = {path if is_file else path / each["path"]: each["text"] for each in result["documents"]}
        changed = [] if force else [file for file in places if file.exists() and _is_changed(memory, file)]
    if changed:
        raise ConfigurationError(
            f"{changed[0]} says something else than the store: keep it with  alma skills import {path}, or give --force"
        )
    lessons = [key for each in result["documents"] for key in each["lessons"]]
    for file, text in places.items() if lessons or path.exists() else ():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    if as_json:
        show_json({"path": str(path), "files": [str(file) for file in places], "lessons": lessons})
    elif not lessons:
        say(f"no lesson is {least} yet: that takes successes on several tasks in several sessions; see --least")
    else:
        say(f"{len(lessons)} lesson(s) written to {path}")


@app.command(
    "import",
    epilog=examples("alma skills import .claude/skills --agent helena", "alma skills import AGENTS.md --agent helena"),
)
def import_command(
    path: Place,
    config: Config = None,
    store: Store = None,
    project: Project = None,
    agent: Agent = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would happen and store nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Learn lessons from Agent Skills or an AGENTS.md; they are provisional until outcomes confirm them.

    Their text is not trusted: secrets are masked, and what looks like a prompt injection is quarantined. Importing
    again stores nothing twice. The exit code is 1 if a file or lesson was refused.
    """
    documents, left_out = _documents(path)
    with open_memory(config, store, project) as memory:
        request = {"documents": documents, "agent": agent, "dry_run": dry_run}
        result = to_json(import_skills.perform(Caller(memory), request))
    if as_json:
        show_json({**result, "left_out": left_out})
    else:
        show_table(("status", "condition", "path", "reason"), result["lessons"], as_json=False)
        for file in left_out:
            say(f"left out: {file}")
        if dry_run:
            say("nothing was changed")
    if any(each["status"] == "refused" for each in result["lessons"]):
        raise typer.Exit(1)


@app.command("diff", epilog=examples("alma skills diff .claude/skills", "alma skills diff AGENTS.md --agent helena"))
def diff_command(
    path: Place,
    config: Config = None,
    store: Store = None,
    project: Project = None,
    agent: Agent = None,
    least: Least = "established",
    as_json: AsJson = False,
) -> None:
    """Show which lessons differ between files and the store."""
    documents, _ = _documents(path)
    with open_memory(config, store, project, must_exist=True) as memory:
        request = {"documents": documents, "agent": agent, "least": least}
        result = to_json(diff_skills.perform(Caller(memory), request))
    if as_json:
        show_json(result)
        return
    if result["differences"]:
        show_table(("difference", "condition", "in_file", "in_store", "path"), result["differences"], as_json=False)
    say(f"{result['same']} lesson(s) are the same")


# ---------------------------------------------------------------------- files


def _is_file(path: Path) -> bool:
    return path.is_file() or (path.suffix.lower() in _MARKDOWN and not path.is_dir())


def _documents(path: Path) -> tuple[list[dict[str, str]], list[str]]:
    """The documents of a file or folder, and the other files of its skills."""
    if not path.exists():
        raise ConfigurationError(f"there is no {path}: name a folder of skills or a Markdown file")
    if path.is_file():
        text = _text_of(path)
        if not text.strip():
            raise ConfigurationError(f"{path} is empty")
        return [{"path": str(path), "text": text}], []
    skills = sorted(path.rglob(SKILL_FILE))
    if not skills:
        raise ConfigurationError(f"there is no {SKILL_FILE} in {path}: name a folder of skills or a Markdown file")
    others = [str(each) for skill in skills for each in sorted(skill.parent.rglob("*")) if each.is_file()]
    return (
        [{"path": str(each), "text": _text_of(each)} for each in skills],
        [each for each in others if Path(each).name != SKILL_FILE],
    )


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise ConfigurationError(f"{path} is larger than {_LARGEST:,} bytes, which is too large for a skill")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text") from None
    except OSError as exc:
        raise ConfigurationError(f"{path} cannot be read: {exc.strerror}") from None


def _is_changed(memory: ALMA, file: Path) -> bool:
    """Whether a file has a lesson of the store in other words, or is the skill of another author."""
    is_skill = file.name == SKILL_FILE
    try:
        own = [each for each in lessons_in(str(file), _text_of(file)) if each.lesson is not None]
    except RefusedError:
        return is_skill
    if not own:
        return is_skill
    request = {"documents": [{"path": "AGENTS.md", "text": agents_text(own)}]}
    return any(each.difference == "changed" for each in diff_skills.perform(Caller(memory), request).differences)
