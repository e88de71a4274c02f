"""The API browser at /docs: it finds an operation, sends it and shows the answer, without anything from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.faces.rest import key_for, memory_at, served
from tests.web.conftest import OpenPage

pytestmark = pytest.mark.slow


def test_an_operation_is_found_and_sent(tmp_path: Path, open_page: OpenPage) -> None:
    with memory_at(tmp_path / "alma.db") as alma, served(alma) as address:
        page = open_page(address, "docs", allow="400 (Bad Request)")
        page.fill("input[type=search]", "post memories create a memory")
        page.click("#create_memory > summary")
        page.fill("#create_memory textarea", json.dumps({"content": "The staging database is reset on Mondays"}))
        page.click("#create_memory .button.primary")
        page.wait_for_selector("#create_memory .badge.good")
        assert json.loads(page.inner_text("#create_memory .answer"))["memory"]["id"]
        assert f"curl -X POST '{address}/v1/memories'" in page.inner_text("#create_memory pre:not(.answer)")
        assert "The API key does not allow this" in page.inner_text("#create_memory")
        page.fill("#create_memory textarea", '{"content": ')
        page.click("#create_memory .button.primary")
        page.wait_for_selector("#create_memory .badge.bad")
        page.fill("input[type=search]", "no such operation")
        assert page.is_visible("text=No operation is like that.")


def test_a_service_that_needs_a_key_is_given_one(tmp_path: Path, open_page: OpenPage) -> None:
    with memory_at(tmp_path / "alma.db") as alma, served(alma) as address:
        token = key_for(alma, "read")
        page = open_page(address, "docs", allow="401")
        page.wait_for_selector("text=this service needs one")
        page.fill("input[type=password]", token)
        page.click("text=Use")
        page.wait_for_selector("#create_memory")
