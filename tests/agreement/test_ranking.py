"""A corpus of sentences in every store: the first ten of each are nearly the same."""

from __future__ import annotations

import itertools
import random
from statistics import mean

from alma.model.memory import Memory
from alma.model.scope import Scope
from alma.storage.base import StorageBackend
from tests.agreement.conftest import Stores
from tests.agreement.stores import EVERYWHERE, refill

WHO = ("the team", "our agent", "a new user", "the nightly job", "the payment service", "the mobile app")
DOES = ("retries", "rejects", "caches", "validates", "exports", "deletes", "renames", "encrypts", "merges", "schedules")
WHAT = ("the login form", "an invoice", "the search index", "every backup", "user sessions", "a database schema")
WHEN = ("before release", "after midnight", "when the network fails", "on the staging server", "twice a week")
QUESTIONS = (
    "Who validates the login forms before a release?",
    "exporting invoices on staging",
    "backups deleted after midnight",
    "Does the payment service retry when networks fail?",
    "encrypted user session",
    "merge database schemas",
    "Which backups are scheduled twice a week?",
    "search indexes of the mobile apps",
)


def corpus() -> list[Memory]:
    """Six hundred texts of one to five sentences, so that words repeat and lengths differ."""
    rng = random.Random(11)
    sentences = [" ".join(parts) for parts in itertools.product(WHO, DOES, WHAT, WHEN)]
    texts = [". ".join(rng.sample(sentences, rng.choice((1, 1, 2, 3, 5)))) for _ in range(600)]
    return [Memory(id=f"m{n:03d}", content=text) for n, text in enumerate(texts)]


def first_ten(store: StorageBackend, question: str, scope: Scope = EVERYWHERE) -> set[str]:
    return {key for key, _ in store.matching_ids(Memory, question, scope, limit=10)}


def test_the_stores_agree_on_the_best_matches(stores: Stores) -> None:
    batch = corpus()
    for store in stores.values():
        refill(store, Memory, list(batch))
    for one, other in itertools.combinations(stores, 2):
        shared = [len(first_ten(stores[one], q) & first_ten(stores[other], q)) / 10 for q in QUESTIONS]
        assert mean(shared) >= 0.95, (one, other, shared)


def test_the_stores_agree_where_some_texts_are_in_scripts_whose_letters_take_more_room(stores: Stores) -> None:
    rng = random.Random(5)
    latin = ["".join(both) for both in itertools.product(("ka", "lo", "mi", "re"), ("bun", "den", "gol", "tar"))]
    cyrillic = ["".join(both) for both in itertools.product(("ка", "ло", "ми", "ре"), ("бун", "ден", "гол", "тар"))]
    texts = [rng.choices(rng.choice((latin, cyrillic)), k=rng.randint(3, 25)) for _ in range(400)]
    mixed = [" ".join([*text, *rng.choices(latin, k=3)]) for text in texts]
    for store in stores.values():
        refill(store, Memory, [Memory(id=f"m{n:03d}", content=text) for n, text in enumerate(mixed)])
    questions = [" ".join(rng.sample(latin, 3)) for _ in range(8)]
    for one, other in itertools.combinations(stores, 2):
        shared = [len(first_ten(stores[one], q) & first_ten(stores[other], q)) / 10 for q in questions]
        assert mean(shared) >= 0.95, (one, other, shared)


def test_the_stores_agree_in_a_project_whose_common_words_are_rare_elsewhere(stores: Stores) -> None:
    """Every text of the project is about invoices, of the others hardly any: there the word tells nothing."""
    small = Scope(project_id="small")
    own = [text for text in corpus() if "invoice" in text.content][:60]
    others = [text for text in corpus() if "invoice" not in text.content]
    batch = [
        *(each.replace(id=f"s{each.id}", project_id="small") for each in own),
        *(each.replace(project_id="large") for each in others),
    ]
    for store in stores.values():
        refill(store, Memory, list(batch))
    for one, other in itertools.combinations(stores, 2):
        shared = [len(first_ten(stores[one], q, small) & first_ten(stores[other], q, small)) / 10 for q in QUESTIONS]
        assert mean(shared) >= 0.95, (one, other, shared)
