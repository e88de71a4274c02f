"""Detection: what a directory says about the project in it: its language, its framework and what it builds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

_MOST_ENTRIES = 2000
_LONGEST_MANIFEST = 1 << 20
_SKIPPED = frozenset({"node_modules", "vendor", "target", "dist", "build", "venv", "__pycache__", "site-packages"})

# The file that declares a project, and the language it is of.
_MANIFESTS = {
    "tsconfig.json": "typescript",
    "pyproject.toml": "python",
    "setup.py": "python",
    "setup.cfg": "python",
    "requirements.txt": "python",
    "Pipfile": "python",
    "Cargo.toml": "rust",
    "go.mod": "go",
    "pom.xml": "java",
    "build.gradle": "java",
    "build.gradle.kts": "kotlin",
    "Gemfile": "ruby",
    "composer.json": "php",
    "mix.exs": "elixir",
    "Package.swift": "swift",
    "CMakeLists.txt": "c++",
    "package.json": "javascript",
}
_SUFFIXES = {
    ".py": "python",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".js": "javascript",
    ".jsx": "javascript",
    ".rs": "rust",
    ".go": "go",
    ".java": "java",
    ".kt": "kotlin",
    ".rb": "ruby",
    ".php": "php",
    ".ex": "elixir",
    ".swift": "swift",
    ".cs": "c#",
    ".c": "c",
    ".cpp": "c++",
    ".cc": "c++",
    ".scala": "scala",
    ".sh": "shell",
}
# What a project depends on, the framework that is, and what is built with it; the first that is found counts.
_FRAMEWORKS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "python": (
        ("django", "django", "web"),
        ("fastapi", "fastapi", "api"),
        ("flask", "flask", "web"),
        ("starlette", "starlette", "api"),
        ("streamlit", "streamlit", "web"),
        ("torch", "pytorch", "ml"),
        ("tensorflow", "tensorflow", "ml"),
        ("typer", "typer", "cli"),
        ("click", "click", "cli"),
    ),
    "javascript": (
        ("next", "next.js", "web"),
        ("nuxt", "nuxt", "web"),
        ("@angular/core", "angular", "web"),
        ("svelte", "svelte", "web"),
        ("vue", "vue", "web"),
        ("react-native", "react native", "mobile"),
        ("electron", "electron", "desktop"),
        ("react", "react", "web"),
        ("@nestjs/core", "nestjs", "api"),
        ("fastify", "fastify", "api"),
        ("express", "express", "api"),
        ("commander", "commander", "cli"),
    ),
    "rust": (
        ("axum", "axum", "api"),
        ("actix-web", "actix-web", "api"),
        ("rocket", "rocket", "web"),
        ("clap", "clap", "cli"),
    ),
    "go": (
        ("gin-gonic/gin", "gin", "api"),
        ("labstack/echo", "echo", "api"),
        ("gofiber/fiber", "fiber", "api"),
        ("spf13/cobra", "cobra", "cli"),
    ),
    "java": (("spring-boot", "spring boot", "web"), ("quarkus", "quarkus", "api")),
    "ruby": (("rails", "rails", "web"), ("sinatra", "sinatra", "web")),
    "php": (("laravel/framework", "laravel", "web"), ("symfony/", "symfony", "web")),
    "elixir": ((":phoenix", "phoenix", "web"),),
}
_FRAMEWORKS["typescript"] = _FRAMEWORKS["javascript"]
_FRAMEWORKS["kotlin"] = _FRAMEWORKS["java"]


@dataclass(frozen=True, slots=True)
class Detected:
    """What could be told from the files, and from which of them."""

    language: str | None = None
    framework: str | None = None
    project_type: str | None = None
    evidence: tuple[str, ...] = ()


def detect(root: Path) -> Detected:
    """What the files of a directory say; what they do not say is None."""
    manifests = [name for name in _MANIFESTS if (root / name).is_file()]
    language, why = _language(root, manifests)
    if language is None:
        return Detected()
    text = "\n".join(_read(root / name) for name in manifests)
    for needle, framework, project_type in _FRAMEWORKS.get(language, ()):
        if _depends_on(text, needle):
            return Detected(language, framework, project_type, (why, f"depends on {needle}"))
    return Detected(language, None, _type_without_framework(root, language, text), (why,))


def _language(root: Path, manifests: list[str]) -> tuple[str | None, str]:
    if manifests:
        return _MANIFESTS[manifests[0]], f"has {manifests[0]}"
    counted = Counter(_SUFFIXES[path.suffix] for path in _source_files(root) if path.suffix in _SUFFIXES)
    if not counted:
        return None, ""
    language = min(counted, key=lambda each: (-counted[each], each))
    return language, f"has {counted[language]} {language} files"


def _source_files(root: Path) -> Iterable[Path]:
    """The files up to three levels below the root, no more than a few thousand, in a fixed order."""
    seen = 0
    level = [root]
    for _ in range(3):
        entries = sorted(entry for folder in level for entry in _entries(folder))
        seen += len(entries)
        yield from (entry for entry in entries if entry.is_file())
        if seen > _MOST_ENTRIES:
            return
        level = [entry for entry in entries if entry.is_dir() and not entry.is_symlink() and _is_own(entry.name)]


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_own(name: str) -> bool:
    return name not in _SKIPPED and not name.startswith(".")


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LONGEST_MANIFEST)
    except OSError:
        return ""


def _depends_on(manifests: str, needle: str) -> bool:
    """Whether a dependency is named as a whole: `next` is not in `next-tick`, nor `react` in `preact`."""
    if "/" in needle:
        return needle in manifests
    return re.search(rf"(?<![\w@/-]){re.escape(needle)}(?![\w/-])", manifests, re.IGNORECASE) is not None


def _type_without_framework(root: Path, language: str, manifests: str) -> str | None:
    """What is built, where no framework says so: something to run, or something to use."""
    if language in ("javascript", "typescript"):
        return "cli" if '"bin"' in manifests else ("library" if _is_package(root) else None)
    if language == "python":
        return "cli" if "[project.scripts]" in manifests or "console_scripts" in manifests else "library"
    if language == "rust":
        return "library" if (root / "src" / "lib.rs").is_file() else "cli"
    return None


def _is_package(root: Path) -> bool:
    try:
        package = json.loads(_read(root / "package.json"))
    except ValueError:
        return False
    return isinstance(package, dict) and any(name in package for name in ("main", "module", "exports"))
