"""A redactor of one's own: whatever a memory writes passes it, and nothing else."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from alma import (
    ALMA,
    AsyncALMA,
    Attribution,
    ConfigurationError,
    DomainMemoryFactory,
    RefusedError,
    Scope,
    ValidationError,
)
from alma.ingest import Masked, Redacted, Rule, SecretRedactor
from alma.model.governance import AuditEvent
from alma.model.learning import DomainKnowledge

BADGE = "badge-482913"
MASK = "[redacted:badge]"
KEY = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
PATTERNS = {"patterns": [{"name": "badge", "pattern": r"badge-\d+"}]}


class BadgesOnly:
    """Knows badges, and no other secret."""

    def redact(self, text: str, name: str = "") -> Redacted:
        clean, found = re.subn(r"badge-\d+", MASK, text)
        return Redacted(clean, (Masked("badge", name),) * found)


WAYS: dict[str, dict[str, Any]] = {
    "a class": {"redactor": BadgesOnly()},
    "a rule": {"redactor": SecretRedactor([Rule("badge", "badge-", re.compile(r"badge-\d+"))])},
    "configuration": {"redaction": PATTERNS},
}


@pytest.fixture(params=WAYS)
def alma(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(
        tmp_path / "alma.db", project_id="shop", embedding_provider="mock", **WAYS[request.param]
    ) as made:
        yield made


def everything_in(folder: Path) -> bytes:
    for database in folder.glob("*.db"):
        with sqlite3.connect(database) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_every_way_to_write_uses_it(alma: ALMA, tmp_path: Path) -> None:
    by = Attribution(user_id="ana", reason=f"because of {BADGE}", user_agent=f"cli {BADGE}")
    here = Scope(project_id="shop")
    alma.learn("helena", f"open {BADGE}", False, f"use {BADGE}", error_message=BADGE, metadata={"a": [{"b": BADGE}]})
    known = alma.add_domain_knowledge("helena", "doors", f"The door opens with {BADGE}")
    alma.add_user_preference("ana", "doors", f"likes {BADGE}")
    memory = alma.journal.create(f"note {BADGE}", by=by, project_id="shop", title=BADGE)
    other = alma.journal.create("another note", by=by, project_id="shop")
    alma.relationships.relate(memory.id, other.id, "related_to", here, context=BADGE, by=by)
    alma.journal.delete(memory.id, here, by=by, reason=BADGE)
    alma.archive.put(DomainKnowledge, known.id, alma.scope(), reason=f"gone with {BADGE}", by=by)
    session = alma.sessions.create(user_id="ana", project_id="shop", agent="helena", goal=BADGE)
    alma.sessions.end(session.id, here, summary=BADGE)
    alma.states.save("helena", {"a": [BADGE]})
    alma.users.create("ana", user_id="ana", profile={"a": BADGE})
    alma.projects.initialize("ana", "shop", description=BADGE)
    alma.audit.record_failure("update", "memory", RuntimeError(BADGE), by)
    alma.writer.save(DomainKnowledge(agent="helena", project_id="shop", fact=f"written with {BADGE}"), by)
    factory = DomainMemoryFactory(alma.storage, alma.redactor)
    assert factory.create_schema("doors", {"description": BADGE}).description == MASK
    alma.close()
    stored = everything_in(tmp_path)
    assert MASK.encode() in stored
    assert BADGE.encode() not in stored


def test_one_that_is_given_takes_the_place_of_the_usual_one_and_patterns_come_on_top(tmp_path: Path) -> None:
    for way, usual in (
        ("a class", KEY),
        ("a rule", "[redacted:github_token]"),
        ("configuration", "[redacted:github_token]"),
    ):
        with ALMA.quickstart(tmp_path / f"{way}.db", embedding_provider="mock", **WAYS[way]) as alma:
            assert alma.add_domain_knowledge("helena", "keys", f"{KEY} {BADGE}").fact == f"{usual} {MASK}"


def test_none_and_the_configuration_switch_it_off(tmp_path: Path) -> None:
    off: list[dict[str, Any]] = [{"redactor": None}, {"redaction": {"enabled": False}}]
    for number, way in enumerate(off):
        with ALMA.quickstart(tmp_path / f"{number}.db", embedding_provider="mock", **way) as alma:
            assert alma.add_domain_knowledge("helena", "keys", f"the key {KEY}").fact == f"the key {KEY}"
            assert alma.learn("helena", f"use {KEY}", True, "do it").outcome.task_description == f"use {KEY}"


def test_the_asynchronous_memory_takes_one_as_well(tmp_path: Path) -> None:
    async def learned() -> str:
        async with AsyncALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock", redactor=BadgesOnly()) as alma:
            kept = await alma.add_domain_knowledge("helena", "doors", f"opens with {BADGE}")
            return str(kept.fact)

    assert asyncio.run(learned()) == f"opens with {MASK}"


def test_a_file_describes_patterns_and_a_given_redactor_goes_before_them(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "alma:\n  project_id: shop\n  embedding_provider: mock\n"
        "  redaction:\n    patterns:\n      - {name: badge, pattern: 'badge-\\d+'}\n"
    )
    with ALMA.from_config(file) as alma:
        assert alma.add_domain_knowledge("helena", "doors", f"opens with {BADGE}").fact == f"opens with {MASK}"
    with ALMA.from_config(file, redactor=None) as alma:
        assert alma.add_domain_knowledge("helena", "gates", f"closes with {BADGE}").fact == f"closes with {BADGE}"


class FailsAt:
    """Knows nothing of badges, and falls over one."""

    def redact(self, text: str, name: str = "") -> Redacted:
        if BADGE in text:
            raise RuntimeError(f"what is {text}?")
        return Redacted(text)


class AnswersWithText:
    def redact(self, text: str, name: str = "") -> str:
        return text


class TakesNoName:
    def redact(self, text: str) -> Redacted:
        return Redacted(text)


@pytest.mark.parametrize(
    ("redactor", "why"),
    [
        (FailsAt(), "FailsAt failed with RuntimeError"),
        (AnswersWithText(), "AnswersWithText did not return a Redacted"),
        (TakesNoName(), "TakesNoName failed with TypeError"),
    ],
)
def test_where_a_redactor_fails_every_write_is_a_refusal_that_stores_and_tells_nothing(
    tmp_path: Path, redactor: Any, why: str
) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock", redactor=redactor) as alma:
        note = DomainKnowledge(agent="helena", project_id="default", fact=f"opens with {BADGE}")
        writes: list[Callable[[], object]] = [
            lambda: alma.learn("helena", f"open {BADGE}", True, "pull"),
            lambda: alma.add_domain_knowledge("helena", "doors", f"opens with {BADGE}"),
            lambda: alma.add_user_preference("ana", "doors", f"likes {BADGE}"),
            lambda: alma.journal.create(f"note {BADGE}", project_id="default"),
            lambda: alma.sessions.create(agent="helena", goal=BADGE),
            lambda: alma.writer.save(note),
            lambda: alma.ingest.save(note),
        ]
        for write in writes:
            with pytest.raises(RefusedError, match=why) as refused:
                write()
            assert refused.value.code == "redaction"
            assert BADGE not in "".join(traceback.format_exception(refused.value))
        alma.close()
    assert BADGE.encode() not in everything_in(tmp_path)


def test_of_a_batch_only_what_a_redactor_fails_at_is_refused(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock", redactor=FailsAt()) as alma:
        facts = [f"The door opens with {BADGE}", "The gate opens at nine"]
        notes = [DomainKnowledge(agent="helena", project_id="default", fact=fact) for fact in facts]
        refused, stored = alma.ingest.save_many(notes)
        assert (refused.status, stored.status) == ("refused", "stored")
        assert "FailsAt failed with RuntimeError" in (refused.reason or "")
        assert [each.status for each in alma.ingest.save_many(notes[:1])] == ["refused"]


def test_an_invalid_redactor_is_an_error(tmp_path: Path) -> None:
    wrong: Any = "mask everything"
    with pytest.raises(ValidationError, match=r"redactor must have a method redact"):
        ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock", redactor=wrong)


@pytest.mark.parametrize(
    ("redaction", "sentence"),
    [
        (
            {"patterns": [{"name": "badge", "pattern": "badge-("}]},
            r"redaction.patterns.0.pattern is not a valid regular expression: ",
        ),
        ({"patterns": [{"name": "badge", "pattern": "x*"}]}, r"redaction.patterns.0.pattern .*empty text"),
        ({"patterns": [{"name": "My Badge", "pattern": "x"}]}, r"redaction.patterns.0.name must be lowercase letters"),
        ({"patterns": [{"name": "badge"}]}, r"redaction.patterns.0.pattern is missing"),
        (
            {"patterns": [{"name": "b", "patern": "x"}]},
            r"redaction.patterns.0.(pattern is missing|patern is not known)",
        ),
        ({"patterns": "badge"}, r"redaction.patterns must be a list"),
        ({"enabld": True}, r"redaction.enabld is not known; did you mean enabled"),
        ({"enabled": "yes"}, r"redaction.enabled must be true or false"),
    ],
)
def test_a_mistake_in_the_configuration_is_one_sentence(
    redaction: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as raised:
        ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock", redaction=redaction)
    assert "\n" not in str(raised.value)


def test_the_audit_log_holds_no_secret_that_an_agent_calls_itself(tmp_path: Path) -> None:
    by = Attribution(user_id="ana", user_agent=f"cli/1.0 {KEY}")
    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock") as alma:
        alma.audit.record_failure("update", "memory", "it did not work", by)
        (event,) = alma.storage.find(AuditEvent, Scope.everywhere())
    assert event.user_agent == "cli/1.0 [redacted:github_token]"


def test_a_schema_holds_no_secret(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "alma.db", embedding_provider="mock") as alma:
        made = DomainMemoryFactory(alma.storage).create_schema("doors", {"description": f"key {KEY}"})
        kept = DomainMemoryFactory(alma.storage).get_schema("doors")
    assert made == kept
    assert kept is not None
    assert kept.description == "key [redacted:github_token]"
