"""General memories through the facade, and agents that are named in another case or nearly right."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA, AsyncALMA
from alma.errors import NotFoundError, ValidationError


@pytest.fixture
def alma(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(tmp_path / "alma.db", "shop", embedding_provider="mock") as opened:
        yield opened


def test_a_memory_is_stored_found_corrected_and_deleted_in_the_project_of_the_facade(alma: ALMA) -> None:
    kept = alma.remember("Invoices are sent on Fridays", agent="ana", tags=["invoices"], memory_type="decision")
    assert (kept.project_id, kept.tags, kept.memory_type) == ("shop", ("invoices",), "decision")
    assert [hit.memory.id for hit in alma.search("When are invoices sent?")] == [kept.id]
    assert list(alma.for_project("garage").search("When are invoices sent?")) == []
    with pytest.raises(NotFoundError):
        alma.for_project("garage").correct(kept.id, "Never")
    corrected = alma.correct(kept.id, "Invoices are sent on Mondays")
    assert (corrected.id, corrected.content) == (kept.id, "Invoices are sent on Mondays")
    assert not alma.for_project("garage").delete(kept.id)
    assert alma.delete(kept.id)
    assert not alma.delete(kept.id)
    assert list(alma.search("When are invoices sent?")) == []


def test_private_memories_are_of_their_user(alma: ALMA) -> None:
    kept = alma.remember("My locker is 17", user_id="ana", is_private=True)
    assert [hit.memory.id for hit in alma.search("locker", user_id="ana")] == [kept.id]
    assert list(alma.search("locker", user_id="bob")) == []
    assert not alma.delete(kept.id, user_id="bob")


def test_an_empty_text_is_refused(alma: ALMA) -> None:
    with pytest.raises(ValidationError):
        alma.remember("")
    with pytest.raises(TypeError, match="colour"):
        alma.remember("A note", colour="red")  # type: ignore[call-arg]


async def _asynchronously(path: Path) -> str:
    async with AsyncALMA.quickstart(path, "shop", embedding_provider="mock") as memory:
        kept = await memory.remember("Invoices are sent on Fridays")
        await memory.correct(kept.id, "Invoices are sent on Mondays")
        (hit,) = await memory.search("invoices")
        assert await memory.delete(kept.id)
        return str(hit.memory.content)


def test_the_asynchronous_facade_has_the_same_methods(tmp_path: Path) -> None:
    assert asyncio.run(_asynchronously(tmp_path / "a.db")) == "Invoices are sent on Mondays"


def test_an_agent_is_the_same_in_any_case_where_no_configuration_names_agents(alma: ALMA) -> None:
    alma.learn("HeLena", "Pack the parcel", "success", "weigh it first")
    for name in ("helena", "HELENA", "Helena"):
        alma.learn(name, "Pack the parcel", "success", "weigh it first")
    assert alma.get_stats("helena")["outcomes_count"] == 4
    assert alma.retrieve("Pack the parcel", "hELENA").agent == "HeLena"
    assert alma.recommend("Pack the parcel", "Helena").strategy == "weigh it first"


def test_a_name_that_is_nearly_right_is_hinted_at(alma: ALMA) -> None:
    alma.learn("helena", "Pack the parcel", "success", "weigh it first")
    assert alma.retrieve("Pack the parcel", "helna").hint == "helna has no memories yet; did you mean helena?"
    assert alma.retrieve("Pack the parcel", "victor").hint == ""
    assert alma.recommend("Pack the parcel", "helna").reason == "helna has no memories yet; did you mean helena?"
    assert alma.recommend("Pack the parcel", "victor").reason == "nothing was tried yet"
    assert alma.retrieve("How do I bake a cake?", "helena").hint == ""
    assert alma.for_project("garage").retrieve("Pack the parcel", "helna").hint == ""
