"""What the journal is asked is in the audit log: what fails always, what is read where that is switched on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA
from alma.errors import ALMAError, NotFoundError, PermissionDeniedError, ValidationError
from alma.memory.filters import MemoryFilter
from alma.model.governance import Attribution, AuditEvent
from alma.model.scope import Scope
from alma.operations import operation_named
from alma.operations.access import Caller, Grant, Right

SHOP = Scope(project_id="shop")
ANA = Attribution(user_id="ana", ip_address="10.0.0.7")


@pytest.fixture
def alma(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(tmp_path / "alma.db", "shop", embedding_provider="mock") as opened:
        yield opened


def failures(alma: ALMA) -> list[AuditEvent]:
    return [event for event in alma.audit.find(Scope.everywhere()) if not event.success]


def test_what_could_not_be_done_is_told_with_who_from_where_and_why(alma: ALMA) -> None:
    key = "sk-proj-abcDEF123456ghiJKL789mno"
    with pytest.raises(NotFoundError):
        alma.journal.update("nobody", {"title": f"with {key}"}, SHOP, by=ANA)
    with pytest.raises(ValidationError):
        alma.journal.create(" ", by=ANA, project_id="shop")
    empty, missing = failures(alma)
    assert (missing.user_id, missing.ip_address, missing.action, missing.resource_id) == (
        "ana",
        "10.0.0.7",
        "update",
        "nobody",
    )
    assert "there is no memory" in (missing.error_message or "")
    assert missing.details_json == {"request": {"changes": {"title": "with [redacted:openai_key]"}}}
    assert empty.action == "create"


def test_deleting_and_bringing_back_are_called_so(alma: ALMA) -> None:
    journal = alma.journal
    for key in ("a", "b"):
        journal.create(f"say {key}", by=ANA, id=key, project_id="shop", memory_type="note")
    journal.delete("a", SHOP, by=ANA)
    journal.undelete("a", SHOP, by=ANA)
    journal.bulk_delete(SHOP, where=MemoryFilter(types=["note"]), by=ANA)
    journal.undelete("b", SHOP, by=ANA)
    journal.update("b", {"title": "t"}, SHOP, by=ANA)
    log = [event.action for event in alma.audit.find(Scope.everywhere(), resource_type="memory")][::-1]
    assert log == ["create", "create", "delete", "restore", "delete", "restore", "update"]
    for refused in (
        lambda: journal.undelete("nobody", SHOP, by=ANA),
        lambda: journal.demote("b", SHOP, by=ANA),
        lambda: journal.mark_helpful("nobody", SHOP, by=ANA),
    ):
        with pytest.raises(ALMAError):
            refused()
    assert [event.action for event in failures(alma)] == ["mark_helpful", "demote", "restore"]


def test_an_id_that_is_none_does_not_hide_what_was_wrong(alma: ALMA) -> None:
    with pytest.raises(ALMAError, match="no memory"):
        alma.journal.update("x" * 300, {"title": "t"}, SHOP, by=ANA)
    assert [event.resource_id for event in failures(alma)] == ["*"]


def test_an_operation_that_fails_or_is_not_permitted_is_told_once(alma: ALMA) -> None:
    with pytest.raises(NotFoundError):
        operation_named("update_memory").perform(
            Caller(alma, ip_address="10.0.0.8"), {"memory_id": "nobody", "title": "x"}
        )
    reader = Caller(alma, Grant(frozenset({Right.READ}), user_id="ben"))
    with pytest.raises(PermissionDeniedError):
        operation_named("delete_memory").perform(reader, {"memory_id": "m"})
    with pytest.raises(NotFoundError):
        operation_named("get_memory").perform(reader, {"memory_id": "m"})
    denied, missing = failures(alma)
    assert (denied.user_id, denied.action, denied.resource_id) == ("ben", "delete_memory", "m")
    assert (missing.ip_address, missing.resource_id) == ("10.0.0.8", "nobody")


def test_reads_are_told_where_the_configuration_says_so(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "read.db", "shop", embedding_provider="mock", audit={"log_reads": True}) as alma:
        made = alma.journal.create("the cart is tested on Fridays", by=ANA, project_id="shop")
        alma.journal.get(made.id, SHOP, by=ANA)
        alma.journal.search("cart", SHOP, by=ANA, mode="keyword")
        alma.journal.batch_read(SHOP, by=ANA)
        alma.learn("helena", "test the cart", "success", "with two articles")
        alma.retrieve("test the cart", "helena", user_id="ana")
        events = alma.audit.find(Scope.everywhere())
    seen = [f"{e.action} {e.resource_type}" for e in events if e.action in ("read", "search")]
    assert seen[::-1] == ["read memory", "search memory", "read memory", "search memory", "search outcome"]


def test_otherwise_reads_leave_nothing(alma: ALMA) -> None:
    made = alma.journal.create("the cart is tested on Fridays", by=ANA, project_id="shop")
    before = len(alma.audit.find(Scope.everywhere()))
    alma.journal.get(made.id, SHOP, by=ANA)
    alma.journal.search("cart", SHOP, by=ANA)
    assert len(alma.audit.find(Scope.everywhere())) == before
