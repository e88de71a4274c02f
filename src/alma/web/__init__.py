"""The dashboard and the API browser: static files that run in a browser, and how they are served."""

from __future__ import annotations

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

__all__ = ["CONTENT_POLICY", "PREFIX", "Asset", "asset", "docs_page", "index_page"]

PREFIX = "/ui/"
"""The files of the dashboard are below this path; the page itself is at `/`."""

CONTENT_POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'"
"""Nothing from elsewhere, no inline script and no inline style."""

_FOR_EVER = "public, max-age=31536000, immutable"
_ASK_AGAIN = "no-cache"
_SMALLEST_PACKED = 512
_PACKED_TYPES = ("text/", "application/javascript", "application/json", "image/svg+xml")
_TYPES = {".js": "text/javascript", ".svg": "image/svg+xml", ".css": "text/css", ".txt": "text/plain"}
_FOLDER = Path(str(files("alma.web"))) / "static"


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the dashboard, plain and compressed, with its entity tag."""

    content: bytes
    packed: bytes | None
    media_type: str
    etag: str

    @classmethod
    def of(cls, content: bytes, media_type: str) -> Asset:
        is_text = media_type.startswith(_PACKED_TYPES) and len(content) >= _SMALLEST_PACKED
        packed = gzip.compress(content, 9, mtime=0) if is_text else None
        return cls(content, packed, media_type, f'"{hashlib.sha256(content).hexdigest()[:24]}"')

    def response(self, headers: Mapping[str, str], *, for_ever: bool) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of the answer to a request with these headers."""
        said = {
            "Content-Security-Policy": CONTENT_POLICY,
            "Cache-Control": _FOR_EVER if for_ever else _ASK_AGAIN,
            "ETag": self.etag,
            "Vary": "Accept-Encoding",
        }
        if self.etag in headers.get("if-none-match", "").replace("W/", "").split(", "):
            return 304, b"", said
        said["Content-Type"] = f"{self.media_type}; charset=utf-8" if self.packed is not None else self.media_type
        if self.packed is not None and "gzip" in headers.get("accept-encoding", ""):
            return 200, self.packed, {**said, "Content-Encoding": "gzip"}
        return 200, self.content, said


def index_page() -> Asset:
    """The page, which names the files by the digest of all of them, so that browsers may cache them without limit."""
    return _page("index.html")


def docs_page() -> Asset:
    """The page of the API browser."""
    return _page("docs.html")


def asset(path: str) -> tuple[Asset, bool] | None:
    """The file at a path below `PREFIX`, and whether the path names it by its digest; None if there is none."""
    digest, _, name = path.partition("/")
    found = _files().get(name)
    return None if found is None else (found, digest == _digest())


@cache
def _files() -> Mapping[str, Asset]:
    """Every file by its path; a request can only name one of these."""
    paths = sorted(each for each in _FOLDER.rglob("*") if each.is_file() and each.suffix != ".html")
    return {path.relative_to(_FOLDER).as_posix(): Asset.of(path.read_bytes(), _type(path)) for path in paths}


@cache
def _digest() -> str:
    every = "".join(f"{name} {each.etag}\n" for name, each in _files().items())
    return hashlib.sha256(every.encode()).hexdigest()[:16]


@cache
def _page(name: str) -> Asset:
    page = (_FOLDER / name).read_text(encoding="utf-8")
    return Asset.of(page.replace("{{files}}", f"{PREFIX}{_digest()}").encode(), "text/html")


def _type(path: Path) -> str:
    return _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
