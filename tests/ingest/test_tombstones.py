"""What was deleted or rejected does not return by extraction, learning, import or merge; a user may say it again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from alma import ALMA, open_storage
from alma.errors import RefusedError
from alma.extraction.auto_learner import AutoLearner
from alma.extraction.rules import RuleBasedExtractor
from alma.importers import import_into
from alma.judge.base import Judge, Judgement
from alma.learning.commit import Learned
from alma.model.governance import Setting
from alma.model.learning import DomainKnowledge, Outcome, UserPreference
from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.operations import operation_named
from alma.operations.access import Caller
from alma.storage.tombstones import PREFIX
from alma.transfer import export_store, import_store, merge_stores

ANA = Scope(user_id="ana")
EVERYWHERE = Scope.everywhere()
TALK = [{"role": "user", "content": "I prefer dark mode in every editor."}]


@pytest.fixture
def alma(sqlite_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(sqlite_path, "shop") as memory:
        yield memory


def preferences(alma: ALMA) -> list[str]:
    return [each.preference for each in alma.storage.find(UserPreference, ANA)]


def forget(alma: ALMA, kind: str, *ids: str, **more: str) -> None:
    operation_named("forget_records").perform(Caller(alma), {"kind": kind, "ids": list(ids), **more})


def extract(alma: ALMA, talk: list[dict[str, str]]) -> list[dict[str, object]]:
    learned = AutoLearner(alma, RuleBasedExtractor()).learn_from_conversation(talk, "helena", "ana")
    return list(learned["rejected"])


def test_a_deleted_preference_returns_only_when_the_user_says_it_again(alma: ALMA) -> None:
    extract(alma, TALK)
    (kept,) = alma.storage.find(UserPreference, ANA)
    forget(alma, "user_preference", kept.id, user_id="ana")
    # The same conversation, or a longer one that begins with it, is not a new event.
    for talk in (TALK, [*TALK, {"role": "user", "content": "Thanks!"}]):
        (refused,) = extract(alma, talk)
        assert "was deleted on" in str(refused["reason"])
    with pytest.raises(RefusedError, match="was deleted on"):
        alma.add_user_preference("ana", "editor", kept.preference, source="inferred")
    assert preferences(alma) == []
    extract(alma, [{"role": "user", "content": "Hello again."}, *TALK])
    (back,) = alma.storage.find(UserPreference, ANA)
    (version, *_) = alma.history.versions(UserPreference, back.id, ANA)
    assert "said again by the user: it was deleted on" in str(version.reason)
    # It may now be said by everyone.
    alma.add_user_preference("ana", "editor", kept.preference, source="inferred")
    assert len(preferences(alma)) == 1


def test_other_words_for_a_deleted_fact_stay_away_by_the_judge(alma: ALMA) -> None:
    fact = alma.add_domain_knowledge("helena", "web", "The payment service listens on port 8443.")
    forget(alma, "domain_knowledge", fact.id)
    with pytest.raises(RefusedError, match="was deleted on"):
        alma.add_domain_knowledge("helena", "web", "Port 8443 is where the payment service listens.", "inferred")
    alma.add_domain_knowledge("helena", "web", "The payment service listens on port 9000.", "inferred")
    alma.add_domain_knowledge("helena", "web", "Port 8443 is where the payment service listens.")
    assert alma.storage.count(DomainKnowledge, alma.scope()) == 2


def test_nothing_is_judged_where_nothing_was_deleted(alma: ALMA, monkeypatch: pytest.MonkeyPatch) -> None:
    fact = alma.add_domain_knowledge("helena", "web", "The shop sells tea.")
    forget(alma, "domain_knowledge", fact.id)
    asked: list[object] = []
    judge = alma.judge
    compare = type(judge).compare

    def counting(self: Judge, pairs: Sequence[tuple[str, str]]) -> Sequence[Judgement]:
        asked.append(pairs)
        return compare(self, pairs)

    monkeypatch.setattr(type(judge), "compare", counting)
    alma.add_domain_knowledge("helena", "web", "The database has eleven tables.", "inferred")
    assert asked == []


def test_a_deleted_lesson_is_not_learned_again_until_it_is_restored(alma: ALMA) -> None:
    def learn() -> object:
        return [alma.learn("helena", "Deploy", "success", "deploy at night") for _ in range(4)][-1]

    rule = learn().heuristic  # type: ignore[attr-defined]
    forget(alma, "heuristic", rule.id)
    again = learn()
    assert again.heuristic is None  # type: ignore[attr-defined]
    assert "was deleted on" in str(again.notes)  # type: ignore[attr-defined]
    assert "was deleted" in alma.recommend("Deploy", "helena").reason
    alma.restore(rule.id)
    assert learn().heuristic.id == rule.id  # type: ignore[attr-defined]


def test_a_deleted_lesson_stays_away_in_other_words(alma: ALMA, tmp_path: Path) -> None:
    def learn(memory: ALMA, strategy: str, outcome: str = "success") -> Learned:
        return [memory.learn("helena", "Restart the node", outcome, strategy) for _ in range(5)][-1]

    rule = learn(alma, "Take the node out of the load balancer before the restart").heuristic
    assert rule is not None
    forget(alma, "heuristic", rule.id)
    again = "Before restarting, remove the node from the load balancer"
    assert "in other words" in str(learn(alma, again).notes)
    assert learn(alma, "Restart all nodes at the same time").heuristic is not None
    with ALMA.quickstart(tmp_path / "other.db", "shop") as other:
        learn(other, again)
        (refused,) = merge_stores(other.storage, alma.storage).refused
    assert (refused.kind, "in other words" in refused.reason) == ("heuristic", True)
    # That a rule was deleted is not against a warning of the same words.
    assert [learn(alma, rule.strategy, "failure").anti_pattern is not None for _ in range(3)][-1]


def test_a_deleted_outcome_is_not_extracted_again_from_its_conversation(alma: ALMA) -> None:
    said = {"role": "assistant", "content": "I tried bulk inserts for the import and it worked well."}
    extract(alma, [said])
    (outcome,) = alma.storage.find(Outcome, alma.scope())
    forget(alma, "outcome", outcome.id)
    (refused,) = extract(alma, [said, {"role": "user", "content": "Good."}])
    assert "this outcome was deleted on" in str(refused["reason"])
    # It worked again.
    extract(alma, [{"role": "user", "content": "Once more, please."}, said])
    assert alma.storage.count(Outcome, alma.scope()) == 1


def test_every_conversation_that_said_it_is_known(alma: ALMA) -> None:
    second = [{"role": "user", "content": "Hello again."}, *TALK]
    for talk in (TALK, second):
        extract(alma, talk)
    (kept,) = alma.storage.find(UserPreference, ANA)
    forget(alma, "user_preference", kept.id, user_id="ana")
    (refused,) = extract(alma, second)
    assert "was deleted on" in str(refused["reason"])


def test_imports_and_merges_leave_out_what_was_deleted(alma: ALMA, tmp_path: Path) -> None:
    mem0 = tmp_path / "mem0.json"
    mem0.write_text('[{"id": "1", "memory": "Ana drinks tea", "user_id": "ana"}]')
    import_into(alma.storage, mem0, "mem0")
    note = alma.remember("The cellar key hangs by the door", title="key")
    file = tmp_path / "all.jsonl.gz"
    export_store(alma.storage, file)
    with ALMA.quickstart(tmp_path / "other.db", "shop") as other:
        # The same value under another id.
        other.remember("The cellar key hangs by the door!")
        other.remember("The attic is dry")
        (tea,) = alma.storage.find(Memory, ANA)
        alma.journal.delete(tea.id, ANA, hard=True)
        alma.delete(note.id, hard=True)
        report = import_into(alma.storage, mem0, "mem0")
        assert (sum(report.new.values()), sum(report.left_out.values())) == (0, 1)
        merged = merge_stores(other.storage, alma.storage)
        assert [each.reason[:14] for each in merged.refused] == ["it was deleted"]
        assert [each.content for each in alma.storage.find(Memory, EVERYWHERE)] == ["The attic is dry"]
        assert len(import_store(alma.storage, file).refused) == 2
        import_store(alma.storage, file, deleted=True)
        assert alma.storage.count(Memory, EVERYWHERE) == 3
        # A complete export takes the tombstones along.
        alma.delete(note.id)
        export_store(alma.storage, file, force=True)
    with ALMA.quickstart(tmp_path / "third.db", "shop") as third:
        assert import_store(third.storage, file).refused == []
        with open_storage(tmp_path / "other.db") as other_storage:
            merged = merge_stores(other_storage, third.storage)
        assert any("was deleted" in each.reason for each in merged.refused)


def test_an_erasure_leaves_a_keyed_fingerprint_and_nothing_else(alma: ALMA, tmp_path: Path) -> None:
    alma.add_user_preference("ana", "drink", "green tea without sugar")
    file = tmp_path / "before.jsonl.gz"
    export_store(alma.storage, file)
    token = alma.deletions.plan("user", "ana").token
    alma.deletions.delete("user", "ana", token)
    rows = [row for row in alma.storage.find(Setting, EVERYWHERE) if row.key.startswith(PREFIX)]
    (row,) = rows
    assert set(row.typed_value) == {"because", "at"}
    assert "tea" not in f"{row.key}{row.value}"
    assert import_store(alma.storage, file).refused[0].kind == "user_preference"
    assert preferences(alma) == []
    alma.add_user_preference("ana", "drink", "green tea without sugar")
    assert preferences(alma) == ["green tea without sugar"]


def test_what_a_rule_put_away_may_return(alma: ALMA) -> None:
    fact = alma.add_domain_knowledge("helena", "web", "The shop sells tea.")
    alma.archive.put(DomainKnowledge, fact.id, alma.scope(), "forgotten")
    alma.add_domain_knowledge("helena", "web", "The shop sells tea.", "inferred")
    assert alma.storage.count(DomainKnowledge, alma.scope()) == 1
    alma.archive.purge(timedelta(0), alma.scope())


def test_a_deleted_memory_that_is_written_again_says_so(alma: ALMA) -> None:
    note = alma.remember("The attic is dry")
    alma.delete(note.id)
    with pytest.raises(RefusedError, match="was deleted on"):
        alma.remember("The attic is dry", source="web")
    again = alma.remember("The attic is dry")
    versions = alma.history.versions(Memory, again.id, alma.scope())
    assert "it was deleted on" in str(versions[0].reason)
