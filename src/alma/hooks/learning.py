"""Event handling of the resident process: retrieve for a session, and learn from its outcomes."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from alma.benefit.signals import TEST_RESULTS, Signal, reaction_to, signal_of
from alma.core import ALMA
from alma.errors import ALMAError, NotFoundError
from alma.extraction.auto_learner import AutoLearner
from alma.extraction.model import create_extractor
from alma.hooks.files import HookFiles
from alma.hooks.hosts import FAILURE, PROMPT, START, TOOL, Event, Json
from alma.hooks.texts import BLOCK_TOKENS, TASK_TOKENS, without_marked
from alma.model.injection import Block, Shown, block_of
from alma.model.learning import SIGNAL
from alma.model.slice import MemorySlice

_log = logging.getLogger("alma.hooks")

_ABOUT_NOTHING = "the start of a session"
_LONGEST_TASK = 400
_MOST_BYTES = 2_000_000
_MOST_TURNS = 200


class HookService:
    """Answers events of sessions from a memory, and learns from them."""

    def __init__(self, alma: ALMA, files: HookFiles) -> None:
        self._alma = alma
        self._files = files

    # ------------------------------------------------------------------ handing over

    def found(self, event: Event, agent: str, user: str | None, shown: Shown) -> Block:
        """The answer to an event."""
        if event.act == START:
            return block_of(self._alma.standing(agent, user), shown, BLOCK_TOKENS)
        found = MemorySlice()
        if event.prompt.strip():
            found = self._alma.retrieve(event.prompt, agent, user, already_shown=shown)
        # Preferences and instructions belong to the block at the start, and are added here only if they are new.
        return block_of(found, shown, TASK_TOKENS)

    def warm_up(self) -> None:
        """Prefetch models and data, so that the first hook does not wait for them."""
        nothing = Event(START, START, START)
        for event in (nothing, nothing._replace(act=PROMPT, prompt=_ABOUT_NOTHING)):
            self.found(event, _ABOUT_NOTHING, None, {})

    # ------------------------------------------------------------------ learning

    def learn(self, waiting: Mapping[str, Any]) -> None:
        """Learn from a spooled event; one that cannot be learned from is logged."""
        agent, user = str(waiting.get("agent", "")), waiting.get("user")
        event = Event(**waiting["event"])
        try:
            if served := waiting.get("served"):
                self._alma.ingest.served(served, agent, self._alma.scope(agent))
            elif event.act == PROMPT:
                if self._alma.benefit.is_used:
                    self._observe(reaction_to(event.before, event.prompt), event.before, agent)
            elif event.act in (TOOL, FAILURE):
                signal = Signal(signal_of(event.command), event.act == TOOL) if event.command else None
                self._observe(signal, event.prompt, agent)
                if event.act == FAILURE:
                    self._learn_failure(event, agent)
            else:
                self._learn_conversation(event, agent, user if isinstance(user, str) else None)
        except ALMAError as exc:
            self._files.log(f"{event.name} was not learned from: {exc}")

    def _observe(self, signal: Signal | None, task: str, agent: str) -> None:
        """Note a signal about a task whose memories are measured."""
        if signal is not None and self._alma.benefit.is_used:
            with suppress(NotFoundError):
                self._alma.benefit.observe(
                    signal.name, signal.success, agent=agent, project_id=self._alma.project_id, task=task
                )

    def _learn_failure(self, event: Event, agent: str) -> None:
        task = event.prompt[:_LONGEST_TASK].strip() or f"use {event.tool}"
        self._alma.learn(
            agent,
            task,
            "failure",
            f"{event.tool}: {event.call}" if event.call else event.tool,
            error_message=event.error,
            duration_ms=event.duration_ms,
            # It is about the call; that the task failed is only a signal.
            metadata={"source": "hook", "session": event.session, SIGNAL: "tool"},
            verified_by="tests" if signal_of(event.command) == TEST_RESULTS else "tool",
        )

    def _learn_conversation(self, event: Event, agent: str, user: str | None) -> None:
        progress = self._files.progress(event.session)
        turns = self._new_turns(event, progress)
        if turns:
            # The rules, whatever the configuration says: a hook never calls a language model.
            learner = AutoLearner(self._alma, create_extractor("rules", judge=self._alma.judge))
            learner.learn_from_conversation(turns, agent, user)
        self._files.save_progress(event.session, progress)

    def _new_turns(self, event: Event, progress: Json) -> list[dict[str, str]]:
        """The lines of the transcript since the last event of the session; `progress` is updated.

        The last answer is in the event, and in the transcript a moment later: it counts once.
        """
        offsets = progress.setdefault("offsets", {})
        answered = progress.get("answered", "")
        turns: list[dict[str, str]] = []
        if event.transcript:
            turns, offsets[event.transcript] = _read(Path(event.transcript), int(offsets.get(event.transcript, 0)))
        if not turns and event.said and _mark(event.said) != answered and event.prompt:
            turns = [{"role": "user", "content": event.prompt}]
        turns = [turn for turn in turns if _mark(turn["content"]) != answered or turn["role"] == "user"]
        if event.said:
            if _mark(event.said) not in (answered, *(_mark(turn["content"]) for turn in turns)):
                turns.append({"role": "assistant", "content": without_marked(event.said)})
            progress["answered"] = _mark(event.said)
        return turns[-_MOST_TURNS:]


def _read(file: Path, offset: int) -> tuple[list[dict[str, str]], int]:
    """The turns in a transcript after a position, and the position of the next."""
    try:
        with file.open("rb") as lines:
            size = file.stat().st_size
            lines.seek(max(offset if offset <= size else 0, size - _MOST_BYTES))
            data = lines.read()
            end = lines.tell()
    except OSError as exc:
        _log.warning("a transcript cannot be read", extra={"reason": str(exc)})
        return [], offset
    whole, newline, rest = data.rpartition(b"\n")
    turns = [turn for line in whole.splitlines() if (turn := _turn(line)) is not None] if newline else []
    return turns, end - len(rest)


def _turn(line: bytes) -> dict[str, str] | None:
    """The message of a person or the model in a line of a transcript; None for tools, notes and other lines."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or entry.get("type") not in ("user", "assistant") or entry.get("isMeta"):
        return None
    message = entry.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    said = without_marked("\n".join(_message_texts(content))).strip()
    return {"role": entry["type"], "content": said} if said else None


def _message_texts(content: Any) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            yield part["text"]


def _mark(text: str) -> str:
    said = " ".join(without_marked(text).split())
    return blake2b(said.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()
