"""`alma doctor`: check the installation and suggest fixes."""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from alma.bootstrap import (
    is_cosmos,
    judge_of_file,
    open_migrator,
    require_containers,
    require_sound_store,
    store_exists,
)
from alma.cli.app import single
from alma.cli.output import AsJson, one_line, show_json
from alma.cli.store_options import Config, Place, Store, open_memory, place_of, without_password
from alma.config import config_file
from alma.errors import ALMAError
from alma.model.kinds import KINDS
from alma.model.scope import Scope
from alma.model.slice import MemorySlice

if TYPE_CHECKING:
    from alma.core import ALMA
    from alma.sync.results import EngineStatus

_COLOURS = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "fail": typer.colors.RED}
_PROBE = "Is everything well?"
_SERVER_PACKAGES = ("fastapi", "uvicorn", "mcp")


class Check(NamedTuple):
    """The result of one check, and what to do about it."""

    what: str
    status: str
    said: str
    to_do: str = ""


class _Stop(Exception):
    """The remaining checks are impossible."""


def doctor(
    config: Config = None,
    store: Store = None,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also read every page of the store and every event of the audit log.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check configuration, store, schema, model, index and servers, and suggest fixes.

    The exit code is 1 if a check fails; warnings do not count. Nothing is changed.
    """
    failed = False
    checks = []
    for check in _checks(config, store, deep):
        failed = failed or check.status == "fail"
        checks.append(check)
        if not as_json:
            _show(check)
    if as_json:
        show_json({"ok": not failed, "checks": [check._asdict() for check in checks]})
    elif not failed:
        typer.echo("All checks passed.")
    if failed:
        raise typer.Exit(1)


def _show(check: Check) -> None:
    status = typer.style(check.status.ljust(4), fg=_COLOURS[check.status], bold=True)
    typer.echo(f"{status}  {check.what.ljust(13)}  {one_line(check.said)}")
    if check.to_do:
        typer.echo(f"{' ' * 21}→ {one_line(check.to_do)}")


def _checks(config: Path | None, store: str | None, deep: bool) -> Iterator[Check]:
    try:
        place = yield from _configuration(config, store)
        yield _judge(config_file(config, store))
        yield from _store(place, deep)
        yield from _memory(config, store, deep)
    except _Stop:
        pass
    yield _packages()


def _configuration(config: Path | None, store: str | None) -> Generator[Check, None, Place]:
    try:
        place = place_of(config, store)
        file = config_file(config, store)
    except ALMAError as exc:
        yield Check("configuration", "fail", str(exc), "correct it, or write a new one with  alma init --force")
        raise _Stop from exc
    if file is not None:
        yield Check("configuration", "ok", str(file))
        yield from _secrets(file)
    else:
        chosen = "given by --store" if store is not None else "default store"
        yield Check("configuration", "ok", f"none, {chosen}: {without_password(place.store)}")
    return place


def _secrets(file: Path) -> Iterator[Check]:
    from alma.config.loader import plain_secrets

    for key in plain_secrets(file):
        section, _, name = key.rpartition(".")
        variable = f"ALMA_{key}".replace(".", "_").upper()
        reference = f"alma-{key}".replace(".", "-").replace("_", "-")
        to_do = f"{name}: ${{{variable}}}  (the environment)  or  {name}: ${{KEYVAULT:{reference}}}  (Azure Key Vault)"
        yield Check("secrets", "warn", f"{key} is written in {file} as plain text", f"under {section}:  write  {to_do}")


def _store(place: Place, deep: bool) -> Iterator[Check]:
    shown = without_password(place.store)
    if not store_exists(place.store):
        yield Check("store", "warn", f"no store yet at {shown}", "the first  alma learn  or  alma remember  creates it")
        raise _Stop
    if "://" not in place.store and not os.access(place.store, os.W_OK):
        yield Check("store", "fail", f"{shown} is not writable", "change its owner or its permissions")
        raise _Stop
    if place.store.startswith("file://"):
        yield Check("store", "ok", f"a directory of JSON files at {shown}")
        return
    if is_cosmos(place.store):
        yield from _containers(place.store)
        return
    try:
        with open_migrator(*place) as migrator:
            states = migrator.status()
        require_sound_store(place.store, quick=not deep)
    except ALMAError as exc:
        to_do = "start the server, or correct postgres.* in the configuration" if "://" in place.store else ""
        yield Check("store", "fail", str(exc), to_do or "restore it from a backup with  alma restore FILE --force")
        raise _Stop from exc
    yield Check("store", "ok", f"{shown}{_size(place.store)}")
    if "://" not in place.store:
        yield Check("file", "ok", f"SQLite's {'integrity_check' if deep else 'quick_check'} finds nothing wrong")
    pending = sum(state.applied_at is None for state in states)
    if pending:
        yield Check(
            "schema", "warn", f"{pending} migration(s) pending", "alma migrate up  (opening the store also runs them)"
        )
        # Opening the store would run them.
        raise _Stop
    yield Check("schema", "ok", f"version {states[-1].migration.version}")


def _containers(store: str) -> Iterator[Check]:
    try:
        require_containers(store)
    except ALMAError as exc:
        to_do = "correct azure.* in the configuration, or let  alma learn  create the containers"
        yield Check("store", "fail", str(exc), to_do)
        raise _Stop from exc
    yield Check("store", "ok", without_password(store))


def _size(store: str) -> str:
    return f", {Path(store).stat().st_size / 1e6:.1f} MB" if Path(store).is_file() else ""


def _memory(config: Path | None, store: str | None, deep: bool) -> Iterator[Check]:
    with ExitStack() as opened:
        try:
            memory = opened.enter_context(open_memory(config, store, None, must_exist=True))
        except ALMAError as exc:
            yield Check("opening", "fail", str(exc), "see the error message")
            return
        yield from _model(memory)
        yield _vectors(memory)
        yield _index(memory)
        yield from _cache(memory)
        yield from map(_engine, memory.sync.status())
        yield from (Check("store", "warn", note) for note in memory.storage.notes)
        if deep:
            yield _audit(memory)


def _model(memory: ALMA) -> Iterator[Check]:
    embedder = memory.embedder
    begun = time.perf_counter()
    try:
        length = len(embedder.encode(_PROBE))
    except ALMAError as exc:
        yield Check("model", "fail", str(exc), "check the key and the address, or choose embedding_provider: local")
        return
    took = (time.perf_counter() - begun) * 1000
    yield Check("model", "ok", f"{embedder.model}, {length} dimensions, first text in {took:,.0f} ms")


def _vectors(memory: ALMA) -> Check:
    everywhere, model = Scope.everywhere(), memory.storage.embedding_model
    kinds = [cls for cls in KINDS if cls.spec.embeds]
    lacking = sum(memory.storage.count_without_vector(cls, model, everywhere) for cls in kinds)
    if lacking:
        return Check(
            "vectors", "warn", f"{lacking:,} memories have no vector and are only found by words", "alma reembed"
        )
    return Check("vectors", "ok", f"all memories have vectors ({sum(1 for _ in kinds)} kinds)")


_INDEX_FIX = "start its server, if it has one; alma reembed  rebuilds it otherwise"


def _index(memory: ALMA) -> Check:
    begun = time.perf_counter()
    try:
        found = memory.retrieval.retrieve(_PROBE, "doctor", memory.project_id, bypass_cache=True)
    except ALMAError as exc:
        return Check("index", "fail", str(exc), _INDEX_FIX)
    if found.degraded:
        return Check("index", "fail", found.degraded, _INDEX_FIX)
    took = (time.perf_counter() - begun) * 1000
    return Check("index", "ok", f"{type(memory.retrieval.index).__name__}, answered in {took:,.0f} ms")


def _cache(memory: ALMA) -> Iterator[Check]:
    cache = memory.retrieval.cache
    name = type(cache).__name__
    if name != "RedisCache":
        return
    cache.put("doctor", "doctor", MemorySlice(), 5)
    if cache.get("doctor", "doctor") is None:
        yield Check(
            "cache",
            "warn",
            "the Redis server does not respond; retrieval works without it",
            "start it, or correct redis.url",
        )
    else:
        yield Check("cache", "ok", "the Redis server responds")


def _engine(found: EngineStatus) -> Check:
    """An engine beside the store; the store works without it, so nothing here is a failure."""
    said = [_ENGINE_STATES[found.state]]
    if found.problem is not None:
        said.append(found.problem)
    if found.pending:
        said.append(f"{found.pending:,} change(s) wait, the oldest for {found.lag_seconds:,.0f} s")
    if found.parked:
        said.append(f"{found.parked:,} record(s) parked: {found.parked_error}")
    if found.rebuilding is not None:
        said.append(f"{found.rebuilding.done:,} of {found.rebuilding.total:,} records")
    said.append(_verification(found))
    is_sound = found.verified is None or found.verified.is_consistent
    to_do = _ENGINE_FIXES.get(found.state, "" if is_sound else "alma sync repair")
    return Check(found.engine, "warn" if to_do else "ok", "; ".join(said), to_do.format(found.engine))


def _verification(found: EngineStatus) -> str:
    if found.verified is None:
        return "never verified"
    result = "consistent" if found.verified.is_consistent else f"{found.verified.issues:,} issue(s)"
    return f"verified {found.verified.at:%Y-%m-%d %H:%M}Z: {result}"


_ENGINE_STATES = {
    "ok": "up to date",
    "behind": "behind",
    "rebuilding": "being rebuilt",
    "parked": "some records do not reach it",
    "degraded": "does not answer",
    "new": "not filled yet",
    "unused": "not configured, but changes are kept for it",
}
_ENGINE_FIXES = {
    "behind": "alma sync run, or a running  alma serve  or  alma mcp",
    "rebuilding": "alma sync run  continues it",
    "new": "alma sync run, or a running  alma serve  or  alma mcp",
    "parked": "correct the cause, then  alma sync retry-parked --engine {}  and  alma sync run",
    "degraded": "start the server, or correct its address in the configuration",
    "unused": "configure it again, or  alma sync drop {}",
}


def _audit(memory: ALMA) -> Check:
    found = memory.audit.verify()
    if not found.ok:
        return Check("audit", "fail", f"{len(found.findings):,} event(s) were changed or removed", "alma audit verify")
    return Check("audit", "ok", f"{found.checked:,} events are unchanged")


def _judge(file: Path | None) -> Check:
    """The judge, and whether its model can be loaded."""
    from alma.judge import FallbackJudge, LLMJudge

    try:
        judge = judge_of_file(file)
    except ALMAError as exc:
        return Check("judge", "fail", str(exc), "correct judge and llm in the configuration")
    prefix = ""
    if isinstance(judge, LLMJudge):
        prefix, judge = f"{judge.name} (not asked now), and where it does not answer, ", judge.fallback
    begun = time.perf_counter()
    judge.compare([(_PROBE, "Does everything work?")])
    took = (time.perf_counter() - begun) * 1000
    if not isinstance(judge, FallbackJudge):
        return Check("judge", "ok", f"{prefix}{judge.name}: only equal texts are the same, as configured")
    if judge.problem is not None:
        said = f"{prefix}{judge.name}: only equal texts are the same, because the model does not load: {judge.problem}"
        return Check("judge", "warn", said, "pip install --force-reinstall --no-deps alma-agent-memory")
    return Check("judge", "ok", f"{prefix}{judge.name}, {judge.megabytes:.0f} MB, first pair in {took:,.0f} ms")


def _packages() -> Check:
    missing = [name for name in _SERVER_PACKAGES if find_spec(name) is None]
    if missing:
        said = f"{', '.join(missing)} not installed, required by  alma serve  and  alma mcp"
        return Check("servers", "warn", said, "pip install 'alma-agent-memory[server]'")
    return Check("servers", "ok", "alma serve  and  alma mcp  can start")


app = single(doctor, "alma doctor", "alma doctor --deep --json", "alma doctor --config .alma/config.yaml")
