"""How much code a newcomer reads who follows one `retrieve()` or one `learn()` from the facade to the store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from alma import ALMA
from tests.support.walk import Walk, walk

# Limits that are lowered as the paths get shorter. Raising one is a decision, not a repair of a failing test.
RETRIEVE = {"files": 62, "functions": 390}
LEARN = {"files": 56, "functions": 358}


@pytest.fixture
def alma(tmp_path: Path) -> Iterator[ALMA]:
    with ALMA.quickstart(path=tmp_path / "alma.db", project_id="walk") as made:
        for form in ("login form", "sign-up form", "contact form"):
            made.learn("helena", f"Test the {form}", "success", "submit it empty, then with an invalid email")
        made.add_user_preference("ana", "style", "short answers")
        made.add_domain_knowledge("helena", "shop", "Production runs in eu-west-1")
        made.retrieve("Test the search form", "helena", user_id="ana")
        yield made


def _report(name: str, found: Walk) -> None:
    print(f"\n{name}: {found}")
    for function in found.functions:
        print(f"  {function}")


def test_retrieve_is_a_short_walk(alma: ALMA) -> None:
    found = walk(lambda: alma.retrieve("Test the order form", "helena", user_id="ana"))
    _report("retrieve", found)
    assert len(found.files) <= RETRIEVE["files"]
    assert len(found.functions) <= RETRIEVE["functions"]


def test_learn_is_a_short_walk(alma: ALMA) -> None:
    found = walk(lambda: alma.learn("helena", "Test the payment form", "success", "fill in every field, then submit"))
    _report("learn", found)
    assert len(found.files) <= LEARN["files"]
    assert len(found.functions) <= LEARN["functions"]
