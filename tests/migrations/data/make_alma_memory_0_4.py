"""Write `alma_memory_0_4.db` beside this file; run it with a Python that has alma-memory 0.4.0."""

import math
from datetime import datetime, timedelta, timezone, tzinfo
from pathlib import Path

from alma.storage.sqlite_local import SQLiteStorage
from alma.types import AntiPattern, DomainKnowledge, Heuristic, Outcome, UserPreference

DIM = 8
TARGET = Path(__file__).with_name("alma_memory_0_4.db")


def vector(seed: int, length: float = 1.0) -> list[float]:
    """Return a repeatable vector of the given length."""
    raw = [math.sin(seed * 1.7 + i * 0.9) for i in range(DIM)]
    norm = math.sqrt(sum(x * x for x in raw))
    return [round(x / norm * length, 6) for x in raw]


def moment(day: int, zone: tzinfo | None, microsecond: int = 0) -> datetime:
    """Return a fixed moment a number of days after the start of 2025."""
    start = datetime(2025, 1, 1, 9, 30, 15, microsecond, tzinfo=zone)
    return start + timedelta(days=day)


def save_heuristics(storage: SQLiteStorage, zone: tzinfo | None) -> None:
    """Save three heuristics, the last of them without a vector."""
    storage.save_heuristic(
        Heuristic(
            id="heur-1",
            agent="tester",
            project_id="shop",
            condition="checkout form has many required fields",
            strategy="fill the happy path first, then break one field at a time",
            confidence=0.9,
            occurrence_count=10,
            success_count=9,
            last_validated=moment(20, zone),
            created_at=moment(1, zone),
            embedding=vector(1),
            metadata={"source": "review", "tags": ["form", "e2e"], "depth": {"level": 2}},
        )
    )
    storage.save_heuristic(
        Heuristic(
            id="heur-2",
            agent="développeur",
            project_id="shop",
            condition="la requête dépasse 2 s – naïve jointure",
            strategy="ajouter un index 索引 avant de réécrire la requête 🚀",
            confidence=0.55,
            occurrence_count=4,
            success_count=2,
            last_validated=moment(21, zone, microsecond=123456),
            created_at=moment(2, zone, microsecond=654321),
            embedding=vector(2, length=3.0),
            metadata={"auteur": "Zoë"},
        )
    )
    storage.save_heuristic(
        Heuristic(
            id="heur-3",
            agent="tester",
            project_id="billing",
            condition="invoice totals differ by one cent",
            strategy="compare the rounding mode of both services",
            confidence=0.0,
            occurrence_count=0,
            success_count=0,
            last_validated=moment(3, zone),
            created_at=moment(3, zone),
        )
    )


def save_outcomes(storage: SQLiteStorage, zone: tzinfo | None) -> None:
    """Save a plain success, a failure with its error, and a success without a vector."""
    storage.save_outcome(
        Outcome(
            id="out-1",
            agent="tester",
            project_id="shop",
            task_type="form_testing",
            task_description="check the sign-up form",
            success=True,
            strategy_used="happy path first",
            duration_ms=1250,
            user_feedback="good coverage",
            timestamp=moment(4, zone),
            embedding=vector(3),
            metadata={"browser": "firefox"},
        )
    )
    storage.save_outcome(
        Outcome(
            id="out-2",
            agent="tester",
            project_id="shop",
            task_type="api_validation",
            task_description="call the price endpoint with an expired token",
            success=False,
            strategy_used="replay a recorded session",
            duration_ms=310,
            error_message="HTTP 500 instead of 401\nTraceback: KeyError('exp')",
            timestamp=moment(5, zone),
            embedding=vector(4),
        )
    )
    storage.save_outcome(
        Outcome(
            id="out-3",
            agent="développeur",
            project_id="billing",
            task_type="refactor",
            task_description="split the tax module",
            success=True,
            strategy_used="move one rate table per commit",
            timestamp=moment(6, zone),
        )
    )


def save_preferences(storage: SQLiteStorage, zone: tzinfo | None) -> None:
    """Save a stated preference and an inferred one."""
    storage.save_user_preference(
        UserPreference(
            id="pref-1",
            user_id="ana",
            category="code_style",
            preference="tabs are never used",
            source="explicit_instruction",
            timestamp=moment(7, zone),
            metadata={"repo": "shop"},
        )
    )
    storage.save_user_preference(
        UserPreference(
            id="pref-2",
            user_id="björn",
            category="communication",
            preference="short answers in Swedish, e.g. «tack så mycket»",
            source="inferred_from_correction",
            confidence=0.6,
            timestamp=moment(8, zone),
        )
    )


def save_knowledge(storage: SQLiteStorage, zone: tzinfo | None) -> None:
    """Save two facts of different domains."""
    storage.save_domain_knowledge(
        DomainKnowledge(
            id="fact-1",
            agent="développeur",
            project_id="shop",
            domain="authentication",
            fact="session tokens expire after 24 hours",
            source="documentation",
            confidence=0.95,
            last_verified=moment(9, zone),
            embedding=vector(5),
            metadata={"page": 12},
        )
    )
    storage.save_domain_knowledge(
        DomainKnowledge(
            id="fact-2",
            agent="tester",
            project_id="billing",
            domain="database_schema",
            fact="amounts are stored as whole cents",
            source="code_analysis",
            last_verified=moment(10, zone),
            embedding=vector(6),
        )
    )


def save_anti_patterns(storage: SQLiteStorage, zone: tzinfo | None) -> None:
    """Save two anti-patterns of different agents."""
    storage.save_anti_pattern(
        AntiPattern(
            id="anti-1",
            agent="tester",
            project_id="shop",
            pattern="waiting a fixed five seconds for the cart",
            why_bad="slow on a good day and flaky on a bad one",
            better_alternative="wait for the cart total to change",
            occurrence_count=7,
            last_seen=moment(12, zone),
            created_at=moment(11, zone),
            embedding=vector(7),
            metadata={"severity": "high"},
        )
    )
    storage.save_anti_pattern(
        AntiPattern(
            id="anti-2",
            agent="développeur",
            project_id="billing",
            pattern="floating point sums of money",
            why_bad="rounding errors pile up",
            better_alternative="add whole cents",
            occurrence_count=2,
            last_seen=moment(14, zone),
            created_at=moment(13, zone),
            embedding=vector(8),
        )
    )


def build(path: Path, zone: tzinfo | None = timezone.utc) -> None:
    """Write every memory into a new database at the given path."""
    path.unlink(missing_ok=True)
    storage = SQLiteStorage(path, embedding_dim=DIM)
    save_heuristics(storage, zone)
    save_outcomes(storage, zone)
    save_preferences(storage, zone)
    save_knowledge(storage, zone)
    save_anti_patterns(storage, zone)


if __name__ == "__main__":
    build(TARGET)
