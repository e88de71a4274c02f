"""The files of the dashboard: served without a key, compressed and kept, under a strict policy."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from alma.web import CONTENT_POLICY, asset, index_page
from tests.faces.rest import client_of, key_for, memory_at, served

STATIC = Path(str(files("alma.web"))) / "static"
FIRST_VIEW_BYTES = 350_000


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client without a key, of a service that wants one."""
    place = tmp_path_factory.mktemp("web") / "alma.db"
    with memory_at(place) as alma, served(alma) as address, client_of(address) as http:
        key_for(alma)
        yield http


def names_in(page: str) -> list[str]:
    """The paths of the files that the page names."""
    return [part.split('"')[0] for part in page.split('="/')[1:]]


def test_the_page_and_its_files_need_no_key_and_the_data_does(http: httpx.Client) -> None:
    for path in ("/", "/docs"):
        page = http.get(path)
        assert page.status_code == 200
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        for name in names_in(page.text):
            assert name == "openapi.json" or http.get(f"/{name}").status_code == 200, name
    assert http.post("/v1/operations/whoami", json={}).status_code == 401


def test_every_file_has_the_strict_policy(http: httpx.Client) -> None:
    for path in ("/", "/docs", *(f"/{name}" for name in names_in(http.get("/").text))):
        headers = http.get(path).headers
        assert headers["content-security-policy"] == CONTENT_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert CONTENT_POLICY.startswith("default-src 'self'")
    assert "unsafe" not in CONTENT_POLICY


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_page_has_no_inline_script_or_style(http: httpx.Client, path: str) -> None:
    page = http.get(path).text
    assert page.count("<script") == page.count('<script type="module" src="/ui/') == 1
    assert "<style" not in page
    assert " style=" not in page


def test_a_file_is_kept_for_ever_under_its_digest_and_asked_for_again_elsewhere(http: httpx.Client) -> None:
    name = next(each for each in names_in(http.get("/").text) if each.endswith("/app.js"))
    kept = http.get(f"/{name}")
    assert "immutable" in kept.headers["cache-control"]
    other = http.get("/ui/0123456789abcdef/app.js")
    assert other.text == kept.text
    assert other.headers["cache-control"] == "no-cache"
    again = http.get("/", headers={"If-None-Match": http.get("/").headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_a_file_is_compressed_for_those_who_take_it(http: httpx.Client) -> None:
    path = next(f"/{each}" for each in names_in(http.get("/").text) if each.endswith("/style.css"))
    with http.stream("GET", path, headers={"Accept-Encoding": "gzip"}) as packed:
        raw = b"".join(packed.iter_raw())
        assert packed.headers["content-encoding"] == "gzip"
    plain = http.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert gzip.decompress(raw) == plain.content


@pytest.mark.parametrize(
    "path", ["/ui/x/nothing.js", "/ui/x/../../pyproject.toml", "/ui/x/%2e%2e/__init__.py", "/ui/", "/ui/x/index.html"]
)
def test_nothing_else_is_served(http: httpx.Client, path: str) -> None:
    assert http.get(path).status_code in (401, 404)


def test_all_files_together_are_within_the_budget_of_the_first_view() -> None:
    packed = [found[0] for path in STATIC.rglob("*.*") if (found := asset(f"x/{path.relative_to(STATIC).as_posix()}"))]
    total = sum(len(each.packed or each.content) for each in packed) + len(index_page().packed or b"")
    assert total < FIRST_VIEW_BYTES


def test_the_vendored_libraries_are_those_of_the_manifest() -> None:
    manifest = json.loads((STATIC / "vendor" / "vendor.json").read_text(encoding="utf-8"))
    assert {each["file"] for each in manifest} == {path.name for path in (STATIC / "vendor").glob("*.js")}
    for each in manifest:
        content = (STATIC / "vendor" / each["file"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == each["sha256"]
        assert each["npm_integrity"].startswith("sha512-")
        assert (STATIC / "vendor" / f"{each['package']}.LICENSE.txt").stat().st_size > 500


def test_no_file_names_an_address_elsewhere() -> None:
    allowed = ("http://www.w3.org/", "https://github.com/preactjs")
    for path in STATIC.rglob("*"):
        if path.suffix in (".js", ".css", ".html", ".svg") and "vendor" not in path.parts:
            text = path.read_text(encoding="utf-8")
            for address in ("http://", "https://", "//cdn", "@import"):
                found = [text[at : at + 60] for at in range(len(text)) if text.startswith(address, at)]
                assert [each for each in found if not each.startswith(allowed)] == [], path


def test_stored_text_is_never_made_into_markup() -> None:
    for path in STATIC.rglob("*.js"):
        if "vendor" not in path.parts:
            text = path.read_text(encoding="utf-8")
            for way in (
                "innerHTML",
                "dangerouslySetInnerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
                "new Function",
            ):
                assert way not in text, (path, way)


def test_the_words_of_the_page_are_in_one_file() -> None:
    """Between tags of the dashboard there is no text, but only what strings.js or the service says."""
    for path in STATIC.rglob("*.js"):
        if "vendor" not in path.parts and path.name not in ("strings.js", "docs.js"):
            found = re.findall(r">\s*([A-Za-z][A-Za-z ,.]{2,}?)\s*<", path.read_text(encoding="utf-8"))
            assert found == [], path
