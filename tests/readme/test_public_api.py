"""The public API changes on purpose: `make api` writes the list, and the commit shows what changed."""

from __future__ import annotations

import difflib

from tests.readme.public_api import TARGET, listing


def test_the_public_api_is_the_listed_one() -> None:
    listed = TARGET.read_text(encoding="utf-8").splitlines()
    changed = [line for line in difflib.unified_diff(listed, listing().splitlines(), n=0, lineterm="") if line]
    assert not changed, "the public API changed; if that is intended, run `make api` and commit the list"
