"""The page for people: every operation with its address and an example, made here; it loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from html import escape
from itertools import groupby

from alma import __version__
from alma.rest.routes import Route

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "h2{margin-top:2.5rem}summary{cursor:pointer;padding:.3rem 0}code,pre{font-family:ui-monospace,monospace}"
    "pre{background:#f4f4f4;padding:1rem;overflow:auto}.m{display:inline-block;width:4.5rem;font-weight:600}"
    "@media(prefers-color-scheme:dark){body{background:#161616;color:#ddd}pre{background:#222}a{color:#8bf}}"
)
CONTENT_POLICY = (
    f"default-src 'none'; style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


def page(routes: Iterable[Route], address: str) -> str:
    """The whole page."""
    return "\n".join(_page(list(routes), address))


def _page(routes: list[Route], address: str) -> Iterator[str]:
    yield f"<!doctype html><html lang=en><meta charset=utf-8><title>ALMA</title><style>{_STYLE}</style>"
    yield f"<h1>ALMA {escape(__version__)}</h1>"
    yield (
        "<p>Every operation is at <code>POST /v1/operations/NAME</code> with its arguments as JSON; the best known "
        "have addresses of their own. <a href=/openapi.json>openapi.json</a> describes all. A key goes into the "
        "header <code>Authorization: Bearer alma_…</code>.</p>"
    )
    for is_generic, part in groupby(routes, lambda route: route.is_generic):
        yield f"<h2>{'Every operation' if is_generic else 'Resources'}</h2>"
        for route in part:
            yield from _entry(route, address)


def _entry(route: Route, address: str) -> Iterator[str]:
    said = escape(route.operation.summary)
    yield f"<details><summary><span class=m>{route.method}</span><code>{escape(route.path)}</code> — {said}</summary>"
    yield f"<p>{escape(route.operation.description)}</p><pre>{escape(example(route, address))}</pre></details>"


def example(route: Route, address: str) -> str:
    """A command that does it."""
    path = route.path
    for name in route.in_path:
        path = path.replace(f"{{{name}}}", str(route.operation.example.get(name, name.upper())))
    if route.query is not None:
        method = "" if route.method == "GET" else f" -X {route.method}"
        return f"curl{method} {address}{path}"
    body = {name: value for name, value in route.operation.example.items() if name not in route.in_path}
    method = "" if route.method == "POST" else f" -X {route.method}"
    said = json.dumps(body, ensure_ascii=False).replace("'", "\\u0027")
    return f"curl{method} {address}{path} -H 'Content-Type: application/json' -d '{said}'"
