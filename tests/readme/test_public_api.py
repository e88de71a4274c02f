"""The public API changes on purpose: `make api` writes the list, and the commit shows what changed."""

from __future__ import annotations

import difflib

import pytest

from tests.readme.public_api import TARGET, listing


def test_the_public_api_is_the_listed_one() -> None:
    listed = TARGET.read_text(encoding="utf-8").splitlines()
    changes = list(difflib.unified_diff(listed, listing().splitlines(), "listed", "now", n=0, lineterm=""))
    if changes:
        pytest.fail("the public API changed; if it is intended, run `make api`\n" + "\n".join(changes), pytrace=False)
