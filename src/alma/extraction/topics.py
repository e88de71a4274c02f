"""The domain of a fact, for the scope of an agent, and the category of a preference."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from alma.model.scope import MemoryScope
from alma.text.tokens import terms

_WORDS_OF = {
    "testing": "test tests testing tested tester validation validate assert assertion flaky fixture mock "
    "coverage suite "
    "pytest jest cypress playwright selenium regression e2e",
    "selectors": "selector selectors css xpath locator locators dom testid data-testid element elements",
    "frontend": "frontend front-end ui ux react vue angular component components form forms page pages button browser "
    "css html layout render",
    "backend": "backend back-end server service microservice worker queue controller business logic",
    "api": "api apis endpoint endpoints rest graphql grpc request response http webhook payload route",
    "database": "database databases db sql query queries table tables schema index postgres postgresql mysql sqlite "
    "mongodb redis migration migrations orm transaction",
    "authentication": "auth authentication login log-in oauth oidc saml jwt token tokens password session sso mfa 2fa",
    "deployment": "deploy deployment release releases docker kubernetes k8s helm terraform ci cd pipeline staging "
    "production environment rollback container",
    "performance": "performance slow fast latency cache caching memory cpu throughput timeout timeouts",
    "security": "security vulnerability encryption encrypted secret secrets xss csrf injection permission permissions",
    "tooling": "git branch commit lint linter formatter editor ide npm pip build make compiler",
    "documentation": "documentation docs readme changelog comment comments docstring",
}
_CATEGORIES = {
    "code_style": "tabs spaces indent indentation semicolons style naming camelcase snake_case hints typed types "
    "typescript docstring docstrings comments formatting lint quotes function functions class classes code",
    "testing": "test tests testing coverage pytest jest sleep fixture fixtures mock mocks assert",
    "communication": "answer answers reply replies short shorter concise brief verbose verbosity detailed "
    "detail explain "
    "explanation explanations language english german emoji emojis tone formal informal polite bullet bullets output "
    "summary summaries call name",
    "interface": "dark light mode theme font keyboard shortcut shortcuts mouse screen layout color colour",
    "workflow": "commit commits branch branches merge deploy push review pr pull request ask confirm approval before "
    "schedule meeting meetings morning",
    "tools": "use using library libraries framework tool tools editor vim vscode npm yarn pip poetry docker",
}
_FILLERS = "pattern strategi strategy logic rule practic data general knowledg manag handl method techniqu"
_FILLER_NAMES = frozenset(_FILLERS.split())
GENERAL = "general"


def domain_of(text: str, scope: MemoryScope | None = None) -> str:
    """The domain of a text: one that the scope names, else one of the built-in ones.

    Where an allowed and a forbidden domain fit equally well, the forbidden one has it.
    """
    words = set(terms(text))
    if scope is not None:
        named = [(_score(name, words), forbidden, name) for name, forbidden in _named(scope)]
        best = max(named, default=(0, False, ""))
        if best[0] > 0:
            return best[2]
    return _best(_WORDS_OF, words)


def category_of(text: str) -> str:
    """The category of a preference."""
    return _best(_CATEGORIES, set(terms(text)))


def _named(scope: MemoryScope) -> Iterable[tuple[str, bool]]:
    yield from ((name, False) for name in scope.can_learn)
    yield from ((name, True) for name in scope.cannot_learn)


def _score(domain: str, words: set[str]) -> int:
    """The number of words that belong to a domain; its name counts double."""
    telling = [name for name in terms(re.sub(r"[_-]+", " ", domain)) if name not in _FILLER_NAMES]
    own = len(words & set(telling)) * 2
    groups = [group for name, group in _groups(frozenset(_WORDS_OF.items())) if set(terms(name)) & set(telling)]
    return own + sum(len((words & group) - set(telling)) for group in groups)


def _best(table: dict[str, str], words: set[str]) -> str:
    scores = [(len(words & group), name) for name, group in _groups(frozenset(table.items()))]
    most = max(score for score, _ in scores)
    # In a tie, the first one of the table.
    return next(name for name in table if (most, name) in scores) if most else GENERAL


@cache
def _groups(table: frozenset[tuple[str, str]]) -> tuple[tuple[str, frozenset[str]], ...]:
    return tuple((name, frozenset(terms(words))) for name, words in table)
