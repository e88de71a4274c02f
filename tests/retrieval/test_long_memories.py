"""Long memories, such as whole conversations: found by a passage, and not dropped for being long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from alma.model.memory import Memory
from alma.model.slice import MemorySlice
from alma.retrieval.engine import RetrievalEngine

Remember = Callable[..., Any]
TOPICS = ("the garden", "the roof", "the new kitchen", "taxes", "a recipe for bread", "the train strike")


def talk(*statements: str) -> Memory:
    """A long conversation with these statements far apart from each other."""
    smalltalk = [f"Then we spoke about {topic} for quite a while and found nothing new to say." for topic in TOPICS]
    parts = [part for statement in statements for part in (statement, *smalltalk)]
    return Memory(content=" ".join(parts), project_id="shop")


def found(engine: RetrievalEngine, question: str, **options: Any) -> MemorySlice:
    return engine.retrieve(question, "helena", "shop", kinds=[Memory], **options)


def test_of_long_memories_the_one_that_says_it_in_one_place_comes_first(
    engine: RetrievalEngine, remember: Remember
) -> None:
    apart = talk("Marta bought a canoe.", "The invoice is unpaid.", "The river is cold.", "The guide was late.")
    together = talk("The river guide sent Marta the invoice for the canoe.", "It rained.", "It cleared.", "We left.")
    others = [talk(f"Number {number} was drawn.", "Nobody won.") for number in range(6)]
    remember(apart, together, *others)
    first, second = found(engine, "What about the invoice of the river guide for Marta's canoe?").memories[:2]
    assert (first.id, second.id) == (together.id, apart.id)


def test_a_passage_is_told_among_the_terms(engine: RetrievalEngine, remember: Remember) -> None:
    long, short = (
        talk("Marta bought a canoe.", "It rained."),
        Memory(content="Marta bought a canoe.", project_id="shop"),
    )
    remember(long, short)
    slice_ = found(engine, "Who bought a canoe?")
    assert slice_.memories[0].id == short.id
    assert slice_.explanations[long.id].terms["passage"] > 0
    assert "passage" not in slice_.explanations[short.id].terms


def test_what_is_linked_to_the_best_memory_does_not_pass_it(engine: RetrievalEngine, remember: Remember) -> None:
    names = "Quillfeather, Riverside, Oldport, Brambleton."
    one = talk(f"The vet treated the dog. {names}", "It rained.")
    other = talk("The vet treated the dog, and it slept.", "It rained.")
    linked = talk(f"A vet likes his dog. {names}", "It rained.")
    remember(one, other, linked, *(talk(f"Number {number} was drawn.", "Nobody won.") for number in range(8)))
    slice_ = found(engine, "Which vet treated the dog?")
    assert slice_.explanations[linked.id].terms["linked"] > 0
    assert slice_.memories[0].id != linked.id
