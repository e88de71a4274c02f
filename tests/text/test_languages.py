"""Languages: which questions are in another one than English, and what they are asked with."""

from __future__ import annotations

import pytest

from alma.text.tokens import is_english, is_foreign, query_terms

FOREIGN = {
    "Wann deployen wir den Shop?": ["deployen", "shop"],
    "Welche Farbe hat das Logo?": ["farb", "logo"],
    "¿Dónde está la contraseña del wifi?": ["contrasena", "wifi"],
    "Cuanto es el alquiler": ["alquil"],
    "Où est le mot de passe du wifi ?": ["mot", "pass", "wifi"],
    "Comment soigner un coup de soleil ?": ["soigner", "coup", "soleil"],
    "Dove sono le chiavi della macchina?": ["chiavi", "macchina"],
    "Onde estão as chaves do carro?": ["chave", "carro"],
    "Waar is de sleutel van de auto?": ["sleutel", "auto"],
}
ENGLISH = (
    "When do we deploy the shop?",
    "flights from Los Angeles to Las Vegas",
    "Los Angeles Las Vegas",
    "die hard",
    "La La Land",
    "Who is Ludwig van Beethoven?",
    "What does the German word 'und' mean?",
    "Beyoncé's tour in El Salvador",
    "comment on the café",
    "deploy the shop",
    "",
)


@pytest.mark.parametrize("question", FOREIGN)
def test_function_words_of_other_languages_find_nothing(question: str) -> None:
    assert is_foreign(question)
    assert query_terms(question) == FOREIGN[question]


@pytest.mark.parametrize("question", ENGLISH)
def test_a_name_or_a_word_of_another_language_makes_no_foreign_question(question: str) -> None:
    assert not is_foreign(question)


def test_a_question_of_nothing_but_function_words_is_asked_with_them() -> None:
    assert query_terms("Wer ist das?") == ["wer", "ist", "das"]


def test_a_text_without_function_words_is_in_no_language() -> None:
    assert is_english("The rent is 1200 euros a month.")
    assert not is_english("Die Miete beträgt 1200 Euro im Monat.")
    assert not is_english("Elegimos Svelte como framework.")
    assert not is_english("Svelte")
