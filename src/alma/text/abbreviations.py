"""Abbreviations that stand for one word, so that a task in short finds what is told in full."""

from __future__ import annotations

ABBREVIATIONS = {
    "acct": "account",
    "admin": "administrator",
    "app": "application",
    "appt": "appointment",
    "auth": "authentication",
    "config": "configuration",
    "db": "database",
    "deps": "dependencies",
    "dept": "department",
    "docs": "documentation",
    "env": "environment",
    "infra": "infrastructure",
    "js": "javascript",
    "k8s": "kubernetes",
    "mgmt": "management",
    "perf": "performance",
    "prod": "production",
    "repo": "repository",
    "stats": "statistics",
}
_AROUND = ".,;:!?()[]{}\"'`"


def spelled_out(text: str) -> str:
    """The text with its abbreviations in full: a model learned few of them."""
    words = text.split()
    full = [ABBREVIATIONS.get(word.strip(_AROUND).casefold()) for word in words]
    if not any(full):
        return text
    pairs = zip(words, full, strict=True)
    return " ".join(word if long is None else word.replace(word.strip(_AROUND), long) for word, long in pairs)
