"""Projects: told from their directories, and counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from alma.errors import ValidationError
from alma.memory.projects import DetectedProject, Projects, detect
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from alma.testing import builders as make

ANA = Scope(user_id="ana")


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def package(**content: object) -> str:
    return json.dumps({"name": "shop", **content})


@pytest.mark.parametrize(
    ("files", "language", "framework", "project_type"),
    [
        ({"pyproject.toml": '[project]\ndependencies = ["Django>=5"]'}, "python", "django", "web"),
        ({"requirements.txt": "fastapi==0.115\nuvicorn\n"}, "python", "fastapi", "api"),
        ({"pyproject.toml": "[project.scripts]\nshop = 'shop:main'"}, "python", None, "cli"),
        ({"pyproject.toml": "[project]\nname = 'shop'"}, "python", None, "library"),
        ({"package.json": package(dependencies={"react": "19"}), "tsconfig.json": "{}"}, "typescript", "react", "web"),
        ({"package.json": package(dependencies={"next": "15", "react": "19"})}, "javascript", "next.js", "web"),
        ({"package.json": package(dependencies={"preact": "10", "next-tick": "1"})}, "javascript", None, None),
        ({"package.json": package(main="index.js")}, "javascript", None, "library"),
        ({"package.json": "not JSON"}, "javascript", None, None),
        ({"Cargo.toml": '[dependencies]\nclap = "4"'}, "rust", "clap", "cli"),
        ({"Cargo.toml": "[package]", "src__lib.rs": ""}, "rust", None, "library"),
        ({"go.mod": "require github.com/gin-gonic/gin v1.10.0"}, "go", "gin", "api"),
        ({"src__a.rb": "", "src__b.rb": "", "x.py": ""}, "ruby", None, None),
        ({"notes.txt": ""}, None, None, None),
    ],
)
def test_language_framework_and_type_are_told_from_files(
    tmp_path: Path, files: dict[str, str], language: str | None, framework: str | None, project_type: str | None
) -> None:
    found = detect(written(tmp_path, **files))
    assert (found.language, found.framework, found.project_type) == (language, framework, project_type)
    assert bool(found.evidence) == (language is not None)


def test_what_belongs_to_others_does_not_decide(tmp_path: Path) -> None:
    files = {f"node_modules__{number}.js": "" for number in range(5)}
    assert detect(written(tmp_path, **files, main__py="")) == DetectedProject()
    assert detect(written(tmp_path, **{"main.py": ""})).language == "python"


def test_a_project_is_made_once_and_kept_up_to_date(store: StorageBackend, tmp_path: Path) -> None:
    projects = Projects(store)
    folder = written(tmp_path / "shop", **{"requirements.txt": "flask\n"})
    made = projects.initialize("ana", path=folder, description="The shop")
    assert (made.id, made.name, made.language, made.framework) == ("shop", "shop", "python", "flask")
    written(folder, **{"requirements.txt": "django\n"})
    again = projects.initialize("ana", path=folder)
    assert (again.id, again.framework, again.description) == ("shop", "django", "The shop")
    assert projects.list_all("ana") == [again]
    assert projects.initialize("ana", "shop", framework="bottle").framework == "bottle"


def test_two_users_may_have_projects_of_one_name(store: StorageBackend) -> None:
    projects = Projects(store)
    first, second = projects.initialize("ana", "shop"), projects.initialize("ben", "shop")
    assert first.id == "shop"
    assert second.id != "shop"
    assert projects.get("shop", Scope(user_id="ben")) is None
    assert projects.named("ben", "shop") == second
    with pytest.raises(ValidationError, match="is not that of 'shop'"):
        projects.initialize("ana", "shop", project_id="other")


def test_a_path_that_is_not_a_directory_or_no_name_is_named(store: StorageBackend, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="must be a directory that exists"):
        Projects(store).initialize("ana", path=tmp_path / "nothing")
    with pytest.raises(ValidationError, match="or a path must be given"):
        Projects(store).initialize("ana")


def test_a_project_is_counted_without_its_neighbours(store: StorageBackend) -> None:
    store.save_many(
        [
            make.a_memory(memory_type="decision", layer_project=True),
            make.a_memory(layer_global=True),
            make.a_memory(is_archived=True),
            make.a_memory(project_id="office"),
            make.a_heuristic(),
            make.an_outcome(success=True),
            make.an_outcome(success=False),
            make.a_session(),
            make.a_session(is_active=False),
            make.a_work_item(status="done"),
            make.a_work_item(),
            make.a_handoff(),
        ]
    )
    stats = Projects(store).stats("shop")
    assert (stats.memories, stats.memories_by_type) == (2, {"decision": 1, "note": 1})
    assert stats.memories_by_layer == {"session": 0, "project": 1, "global": 1, "temporal": 0}
    assert (stats.heuristics, stats.outcomes, stats.success_rate) == (1, 2, 0.5)
    assert (stats.sessions, stats.active_sessions, stats.handoffs) == (2, 1, 1)
    assert stats.work_items == {"done": 1, "pending": 1}
    assert stats.last_activity is not None
    empty = Projects(store).stats("nothing")
    assert (empty.memories, empty.success_rate, empty.last_activity) == (0, None, None)
