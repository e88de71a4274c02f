"""The report of benefit on every face, and what follows for memories that harm."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from alma import ALMA, Scope
from alma.clock import now
from alma.errors import ValidationError
from alma.model.governance import BenefitTrial
from alma.model.learning import Heuristic
from alma.model.query import EVERYTHING, Order
from alma.operations.access import Caller
from alma.operations.benefit import benefit_report, demote_harmful, reinstate_memories
from alma.operations.review import InboxItem, review_inbox
from tests.benefit.test_log import TASK, a_fact, a_rule
from tests.support.command_line import run

SHOP = Scope(project_id="shop")
TASKS = 1_200


@pytest.fixture
def alma(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(tmp_path / "a.db", "shop", embedding_provider="mock", benefit={"withhold": 0.2}) as made:
        made.storage.save_many([a_rule("good", "drain the queue first"), a_rule("bad", "restart the cluster twice")])
        made.storage.save(a_fact("fact", "billing", "The billing service deploys to the cluster"))
        made.storage.save_many(trials())
        yield made


def trials() -> list[BenefitTrial]:
    """Tasks in which one lesson adds a quarter of success, one takes as much, and two change nothing."""
    rng, begun = np.random.default_rng(3), now() - timedelta(days=40)
    kinds = {"good": "heuristic", "bad": "heuristic", "gone": "heuristic", "fact": "domain_knowledge"}
    made = []
    for number in range(TASKS):
        drawn = rng.random(len(kinds)) < 0.8
        arms = {
            key: {"kind": kind, "shown": bool(shown), "propensity": 0.8}
            for (key, kind), shown in zip(kinds.items(), drawn, strict=True)
        }
        good, bad, *_ = drawn
        chance = 0.5 + 0.25 * good - 0.25 * bad
        made.append(
            BenefitTrial(
                agent="victor",
                project_id="shop",
                arms=arms,
                success=bool(rng.random() < chance),
                created_at=begun + timedelta(minutes=number),
            )
        )
    return made


def shown(alma: ALMA) -> str:
    """What ten tasks are shown; a fifth of each is withheld."""
    return " ".join(alma.retrieve(f"{TASK} {number}", "victor").to_prompt() for number in range(10))


def test_the_report_tells_what_helps_and_harms_with_intervals(alma: ALMA) -> None:
    report = alma.benefit.report(SHOP)
    states = {each.memory_id: each.uplift.state for each in report.memories}
    assert states == {"bad": "harms", "good": "helps", "fact": "no effect seen", "gone": "no effect seen"}
    bad, good = report.memories[:2]
    assert bad.uplift.interval.low < -0.25 < bad.uplift.interval.high < 0 < good.uplift.interval.low
    assert bad.additive == pytest.approx(-0.25, abs=0.07)
    assert (good.text, good.agent, good.uplift.exposures) == ("drain the queue first", "victor", TASKS)
    assert [each.memory_id for each in report.memories if not each.is_stored] == ["gone"]
    assert {each.name for each in report.groups} == {"heuristic", "domain_knowledge", "agent victor"}
    assert (report.trials, report.outcomes) == (TASKS, {"not stated": TASKS})
    assert alma.benefit.report(SHOP, since=now()).trials == 0
    assert alma.benefit.report(Scope(project_id="shop", agent="helena")).memories == []


def test_the_command_line_draws_the_intervals_on_one_scale(alma: ALMA, tmp_path: Path) -> None:
    told = run("benefit", "report", "--store", str(tmp_path / "a.db"), "--project", "shop").stdout
    bad, good = (next(line for line in told.splitlines() if state in line) for state in (" harms ", " helps "))
    assert bad.index("●") < bad.index("│") < bad.index("%")
    assert good.index("│") < good.index("●") < good.index("%")
    assert "alma benefit demote-harmful" in told


def test_the_command_line_withholds_as_configured_and_credits_outcomes(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("{project_id: shop, storage_dir: ., embedding_provider: mock, benefit: {withhold: 0.1}}")
    told = ("--agent", "victor", "--config", str(config))
    run("learning", "add-knowledge", "billing", "The billing service deploys to the cluster", *told)
    retrieval = run("retrieve", TASK, *told, "--json").json["retrieval_id"]
    outcome = ("--outcome", "success", "--strategy", "drain the queue", "--verified-by", "tests")
    assert run("learn", TASK, *told, *outcome, "--retrieval-id", retrieval).returncode == 0
    assert "1 task with an outcome that counts (all: 1 tests)" in run("benefit", "report", *told).stdout


def test_what_harms_is_demoted_listed_for_review_and_reinstated(alma: ALMA) -> None:
    caller = Caller(alma)
    assert "restart the cluster twice" in shown(alma)
    assert [each.is_demoted for each in _harmful(caller)] == [False]
    assert [each.memory_id for each in demote_harmful.perform(caller, {"dry_run": True}).memories] == ["bad"]
    assert "restart the cluster twice" in shown(alma)
    assert [each.memory_id for each in demote_harmful.perform(caller, {}).memories] == ["bad"]
    assert "restart the cluster twice" not in shown(alma)
    weak = alma.retrieve(TASK, "victor", weak=True)
    assert "demoted: it harms: -2" in " ".join(weak.explanations["bad"].notes)
    (listed,) = _harmful(caller)
    assert (listed.is_demoted, listed.row.id) == (True, "bad")
    assert "95% interval -3" in listed.reason
    assert demote_harmful.perform(caller, {}).memories == []
    back = {"kind": "heuristic", "ids": ["bad", "good"]}
    assert reinstate_memories.perform(caller, back).reinstated == ["bad"]
    assert "restart the cluster twice" in shown(alma)
    # It is measured anew: what was known before does not demote it again.
    assert "bad" not in {each.memory_id for each in benefit_report.perform(caller, {}).memories}
    assert demote_harmful.perform(caller, {}).memories == []
    with pytest.raises(ValidationError, match="must be one of heuristic, domain_knowledge"):
        alma.benefit.reinstate("memory", ["bad"], SHOP)


def _harmful(caller: Caller) -> list[InboxItem]:
    return list(review_inbox.perform(caller, {"categories": ["harmful"]}).items)


def test_what_probably_harms_is_withheld_from_half_of_the_tasks(alma: ALMA) -> None:
    alma.storage.write(lambda tx: tx.delete_where(BenefitTrial, SHOP, EVERYTHING))
    alma.storage.save_many(trials()[:60])
    known = {each.memory_id: each.uplift for each in alma.benefit.report(SHOP).memories}
    assert (known["bad"].state, known["bad"].is_suspected) == ("not enough data", True)
    assert not known["good"].is_suspected
    alma.maintenance.run(["benefit"])
    alma.retrieve(TASK, "victor")
    (newest,) = alma.storage.find(BenefitTrial, SHOP, order=(Order("created_at", "desc"),), limit=1)
    drawn = {key: arm["propensity"] for key, arm in newest.arms.items()}
    assert drawn == {key: 0.5 if known[key].is_suspected else 0.8 for key in ("bad", "good", "fact")}


def test_maintenance_demotes_what_harms_but_nothing_that_is_pinned(alma: ALMA) -> None:
    pinned = a_rule("bad", "restart the cluster twice").replace(metadata={"pinned": True})
    alma.storage.save(pinned)
    assert alma.maintenance.run(["benefit"])[0].count == 0
    alma.storage.save(pinned.replace(metadata={}))
    assert alma.maintenance.run(["benefit"], dry_run=True)[0].count == 1
    assert alma.maintenance.run(["benefit"])[0].count == 1
    (demoted,) = alma.storage.get_many(Heuristic, ["bad"], SHOP)
    assert demoted.metadata["benefit"]["effect"] == pytest.approx(-0.25, abs=0.1)
    assert alma.maintenance.run(["benefit"])[0].count == 0
