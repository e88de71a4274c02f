"""Programs written for alma-memory 0.4: forgetting, health, cleanup jobs and extraction, by project."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

import alma.retrieval
from alma import MemoryScope, RetrievalEngine, Scope
from alma.learning.decay import Decay
from alma.model.learning import DomainKnowledge, Heuristic, Outcome
from alma.storage.in_memory import InMemoryStorage
from alma.testing.builders import a_heuristic, an_anti_pattern, an_outcome, some_knowledge

forgetting: Any = importlib.import_module("alma.learning.forgetting")
extraction: Any = importlib.import_module("alma.learning.heuristic_extractor")

NOW = datetime.now(UTC)
OLD = NOW - timedelta(days=120)
SHOP = Scope(project_id="shop")
TRIED = {"occurrence_count": 10, "success_count": 9, "confidence": 0.9}


class NamedMethods:
    """A store of a program's own, with the methods of alma-memory 0.4 that these calls need."""

    def __init__(self, *records: Any) -> None:
        self.records = {record.id: record for record in records}
        self.deleted: list[str] = []
        self.confidences: dict[str, float] = {}

    def _of(self, cls: Any, agent: str | None) -> list[Any]:
        return [each for each in self.records.values() if isinstance(each, cls) and agent in (None, each.agent)]

    def get_heuristics(self, project_id: str, agent: str | None = None, **_: Any) -> list[Any]:
        return self._of(Heuristic, agent)

    def get_outcomes(self, project_id: str, agent: str | None = None, **_: Any) -> list[Any]:
        return self._of(Outcome, agent)

    def get_domain_knowledge(self, project_id: str, agent: str | None = None, **_: Any) -> list[Any]:
        return self._of(DomainKnowledge, agent)

    def get_anti_patterns(self, project_id: str, agent: str | None = None, **_: Any) -> list[Any]:
        return []

    def get_user_preferences(self, user_id: str, **_: Any) -> list[Any]:
        return []

    def save_heuristic(self, heuristic: Heuristic) -> str:
        self.records[heuristic.id] = heuristic
        return heuristic.id

    def delete_outcomes_older_than(self, project_id: str, older_than: datetime, agent: str | None = None) -> int:
        self.deleted.append(f"outcomes before {older_than.date()}")
        return 1

    def delete_heuristic(self, heuristic_id: str) -> bool:
        self.deleted.append(heuristic_id)
        return True

    def update_heuristic_confidence(self, heuristic_id: str, new_confidence: float) -> bool:
        self.confidences[heuristic_id] = round(new_confidence, 2)
        return True


def test_a_project_is_pruned_by_the_earlier_limits_and_what_goes_can_be_restored() -> None:
    store = InMemoryStorage()
    store.save_heuristics(
        [
            a_heuristic(id="doubted", confidence=0.2, created_at=NOW, last_validated=OLD),
            a_heuristic(id="failing", **{**TRIED, "success_count": 3}),
            a_heuristic(id="unused", **TRIED, created_at=OLD, last_validated=OLD),
            a_heuristic(id="good", **TRIED, last_validated=NOW),
        ]
    )
    store.save_outcomes([an_outcome(id=f"o{i}", timestamp=NOW - timedelta(days=i)) for i in range(3)])
    store.save_domain_knowledge(some_knowledge(id="doubtful", confidence=0.4))
    store.save_anti_pattern(an_anti_pattern(id="seen", last_seen=NOW))
    engine = forgetting.ForgettingEngine(store, forgetting.PrunePolicy(max_outcomes_per_agent=2))
    would = engine.prune("shop", agent="helena", dry_run=True)
    assert {each.item_id: each.reason.value for each in would.pruned_items} == {
        "doubted": "low_confidence",
        "failing": "low_success",
        "unused": "stale",
        "o2": "quota",
        "doubtful": "low_confidence",
    }
    done = engine.prune(project_id="shop").to_dict()
    assert (done["heuristics_pruned"], done["outcomes_pruned"], done["total_pruned"]) == (3, 1, 5)
    assert [rule.id for rule in store.get_heuristics("shop")] == ["good"]
    assert engine.prune(SHOP).total == 0
    assert engine.purge(timedelta(0), SHOP) == 5


def test_a_store_with_the_named_methods_alone_is_pruned_and_searched() -> None:
    store = NamedMethods(
        a_heuristic(id="doubted", confidence=0.2), an_outcome(id="old", timestamp=OLD), a_heuristic(id="good", **TRIED)
    )
    engine = forgetting.ForgettingEngine(store)
    assert engine.prune("shop", dry_run=True).total_pruned == 2
    assert store.deleted == []
    engine.prune("shop")
    assert store.deleted == [f"outcomes before {(NOW - timedelta(days=90)).date()}", "doubted"]
    assert [each["id"] for each in engine.identify_candidates("shop")] == ["doubted", "good"]
    retrieval = RetrievalEngine(cast(Any, store), "mock")
    assert retrieval.retrieve("test a form field by field", "helena", "shop").heuristics
    del store.records["good"], store.records["doubted"]
    assert not retrieval.retrieve("test a form field by field", "helena", "shop").heuristics


def test_curves_of_decay_have_their_earlier_names_and_a_program_may_bring_its_own() -> None:
    curves = [
        forgetting.ExponentialDecay(),
        forgetting.LinearDecay(decay_period_days=60, min_value=0.2),
        forgetting.StepDecay(),
        forgetting.NoDecay(),
    ]
    assert [curve.compute_decay(30) for curve in curves] == [0.5, 0.6, 0.9, 1.0]
    assert [curve.get_name().partition("(")[0] for curve in curves] == ["exponential", "linear", "step", "none"]

    class Halved(forgetting.DecayFunction):  # type: ignore[misc]
        def compute_decay(self, days_since_validation: float) -> float:
            return 0.5

        def get_name(self) -> str:
            return "halved"

    assert isinstance(Halved(), Decay)
    store = NamedMethods(a_heuristic(id="fading", confidence=0.8), a_heuristic(id="gone", confidence=0.1))
    decayer = forgetting.ConfidenceDecayer(store, Halved())
    assert decayer.apply_decay("shop", dry_run=True).items_processed == 2
    assert store.confidences == {}
    result = decayer.apply_decay("shop")
    assert (result.items_updated, result.items_pruned, result.avg_decay_applied) == (1, 1, 0.5)
    assert (store.confidences, store.deleted) == ({"fading": 0.4}, ["gone"])


def test_confidence_in_a_store_of_ours_decays_once_for_an_age() -> None:
    store = InMemoryStorage()
    store.save_heuristics(
        [a_heuristic(id=name, confidence=sure, created_at=OLD) for name, sure in (("a", 0.8), ("b", 0.3))]
    )
    decayer = forgetting.ConfidenceDecayer(store, forgetting.ExponentialDecay(60), prune_below_confidence=0.1)
    assert (decayer.apply_decay("shop").items_pruned, decayer.apply_decay("shop").items_updated) == (1, 0)
    assert [round(rule.confidence, 2) for rule in store.get_heuristics("shop")] == [0.2]


def test_health_is_measured_by_project_and_alerts_are_told() -> None:
    store = InMemoryStorage()
    store.save_heuristics([a_heuristic(confidence=0.8), a_heuristic(confidence=0.2, created_at=OLD)])
    limits = forgetting.HealthThresholds(max_total_items_warning=1, min_avg_confidence_warning=0.6)
    monitor = forgetting.MemoryHealthMonitor(store, limits)
    told: list[Any] = []
    monitor.add_alert_handler(told.append)
    assert {alert.category: alert.level for alert in monitor.check_health("shop")} == {
        "total_items": "warning",
        "staleness": "critical",
        "confidence": "warning",
    }
    assert len(told) == 3
    metrics = monitor.collect_metrics("shop").to_dict()
    assert (metrics["heuristic_count"], metrics["stale_heuristic_count"], metrics["agents_count"]) == (2, 1, 1)
    assert monitor.get_growth_trend("shop")["total_growth"] == 0
    assert monitor.get_growth_trend("other") == {"status": "insufficient_data", "samples": 0}


def test_cleanup_jobs_run_when_they_are_due() -> None:
    store = InMemoryStorage()
    store.save_heuristic(a_heuristic(confidence=0.2))
    scheduler = forgetting.CleanupScheduler(store)
    scheduler.register_job(forgetting.CleanupJob("nightly", "shop", 24.0, apply_decay=False))
    scheduler.register_job(forgetting.CleanupJob("off", "shop", 24.0, enabled=False, next_run=OLD))
    assert scheduler.run_all_due() == []
    assert scheduler.run_job("nightly", dry_run=True).prune_summary.total_pruned == 1
    scheduler.register_job(forgetting.CleanupJob("due", "shop", 24.0, next_run=OLD))
    (run,) = scheduler.run_all_due()
    assert (run.job_name, run.success, run.prune_summary.total_pruned) == ("due", True, 1)
    assert [each["items_pruned"] for each in scheduler.get_history()] == [1, 1]
    assert [job["name"] for job in scheduler.get_jobs()] == ["nightly", "off", "due"]
    assert (scheduler.unregister_job("off"), scheduler.unregister_job("off")) == (True, False)
    with pytest.raises(ValueError, match="not found among nightly, due"):
        scheduler.run_job("weekly")
    scheduler.start_background(3600)
    scheduler.stop_background()


def test_heuristics_are_extracted_from_stored_outcomes() -> None:
    store = InMemoryStorage()
    told = [("run the tests first", True)] * 3 + [("push at once", False)] * 3 + [("ask a colleague", True)]
    store.save_outcomes([an_outcome(strategy_used=text, success=won, task_type="release") for text, won in told])
    extractor = extraction.HeuristicExtractor(store, {"helena": MemoryScope("helena", [])})
    first = extractor.extract("shop").to_dict()
    assert (first["heuristics_created"], first["patterns_analyzed"]) == (1, 3)
    assert first["rejected_reasons"] == {"low_confidence": 1, "insufficient_occurrences": 1}
    (rule,) = store.get_heuristics("shop")
    assert (rule.strategy, rule.occurrence_count, rule.success_count) == ("run the tests first", 3, 3)
    assert extractor.extract("shop").heuristics_updated == 1
    outcome = an_outcome(strategy_used="run the tests first", task_type="release", success=False)
    known = a_heuristic(id="r", condition="task type: release", strategy="run the tests first")
    assert extraction.extract_heuristics_from_outcome(outcome, [known])["action"] == "invalidate"
    assert extraction.extract_heuristics_from_outcome(outcome, [known.replace(agent="victor")]) is None


def test_the_caches_of_the_retrieval_package_are_the_earlier_ones() -> None:
    cache: Any = alma.retrieval.RetrievalCache(ttl_seconds=60)
    assert cache.get("a form", "helena", "shop") is None
    assert cache.get_stats().misses == 1


def test_a_threshold_of_0_returns_lessons_however_weak() -> None:
    store = InMemoryStorage()
    engine = RetrievalEngine(store, "mock", min_score_threshold=0)
    store.save_heuristic(a_heuristic(embedding=engine.embedder.encode("a form")))
    assert engine.retrieve("an unrelated question", "helena", "shop").heuristics
    assert not RetrievalEngine(store, "mock").retrieve("an unrelated question", "helena", "shop").heuristics


def test_the_learning_package_knows_the_earlier_names() -> None:
    learning: Any = importlib.import_module("alma.learning")
    assert learning.HealthThresholds is forgetting.HealthThresholds
    assert learning.PatternCandidate is extraction.PatternCandidate
    assert {name for name in learning.__all__ if not hasattr(learning, name)} == set()
