"""The hosts whose events are understood: their names for events and fields, and the JSON they expect."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from alma.hooks.texts import without_marked
from alma.lazy import lazy_regex

START, PROMPT, TOOL, FAILURE, STOP, SUBAGENT, COMPACT, END = (
    *("start", "prompt", "tool", "failure", "stop", "subagent", "compact", "end"),
)
"""The meaning of an event, independent of its host's name for it."""

HANDS_OVER = frozenset({START, PROMPT})
"""The events that are answered with memories; all others are learned from."""

_LONGEST_TEXT = 20_000
_LONGEST_ERROR = 2_000
_LONGEST_CALL = 300
_TRANSCRIPT_BYTES = 1 << 18
_EXIT_CODE = lazy_regex(r"^Exit Code: [1-9]", re.MULTILINE)

Json = dict[str, Any]


class Host(NamedTuple):
    """A host: which of its events are used, for which of them it takes context from a hook, and for which tools an
    event is wanted, if not for all.
    """

    name: str
    events: Mapping[str, str]
    takes_context: frozenset[str]
    flat: bool = False
    matchers: Mapping[str, str] = {}

    def answer(self, event: str, context: str) -> Json:
        """The JSON that passes a context to the host; an empty object changes nothing."""
        if not context or event not in self.takes_context:
            return {}
        if self.flat:
            return {"additional_context": context}
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}


HOSTS: Mapping[str, Host] = {
    each.name: each
    for each in (
        Host(
            "claude-code",
            {
                "SessionStart": START,
                "UserPromptSubmit": PROMPT,
                "PostToolUse": TOOL,
                "PostToolUseFailure": FAILURE,
                "Stop": STOP,
                "SubagentStop": SUBAGENT,
                "PreCompact": COMPACT,
                "SessionEnd": END,
            },
            frozenset({"SessionStart", "UserPromptSubmit"}),
            matchers={"PostToolUse": "Bash"},
        ),
        Host(
            "codex",
            {
                "SessionStart": START,
                "UserPromptSubmit": PROMPT,
                "PostToolUse": TOOL,
                "Stop": STOP,
                "SubagentStop": SUBAGENT,
                "PreCompact": COMPACT,
            },
            frozenset({"SessionStart", "UserPromptSubmit"}),
        ),
        Host(
            "gemini-cli",
            {
                "SessionStart": START,
                "BeforeAgent": PROMPT,
                "AfterTool": TOOL,
                "AfterAgent": STOP,
                "PreCompress": COMPACT,
                "SessionEnd": END,
            },
            frozenset({"SessionStart", "BeforeAgent"}),
        ),
        Host(
            "cursor",
            {
                "sessionStart": START,
                "beforeSubmitPrompt": PROMPT,
                "postToolUseFailure": FAILURE,
                "afterAgentResponse": STOP,
                "preCompact": COMPACT,
                "sessionEnd": END,
            },
            # Cursor takes no context with a prompt.
            frozenset({"sessionStart"}),
            flat=True,
        ),
    )
}


class Event(NamedTuple):
    """An event of any host, with what is used of it; `before` is the prompt before this one."""

    act: str
    name: str
    session: str
    source: str = ""
    prompt: str = ""
    said: str = ""
    transcript: str = ""
    tool: str = ""
    call: str = ""
    error: str = ""
    duration_ms: int | None = None
    command: str = ""
    before: str = ""

    def as_json(self) -> Json:
        """The event as it is sent to the resident process and spooled."""
        return {name: value for name, value in self._asdict().items() if value not in ("", None)}


def event_of(host: Host, name: str, payload: Json) -> Event | None:
    """The event in a host's payload; None for one that is not used."""
    act = host.events.get(name)
    if act is None:
        return None
    error = _error(act, payload)
    if act == TOOL and error:
        act = FAILURE
    command = _command(payload.get("tool_input"))
    if (act == TOOL and not command) or (act == FAILURE and (not error or payload.get("is_interrupt") is True)):
        return None
    duration = payload.get("duration_ms")
    return Event(
        act,
        name,
        _text(payload, "session_id", "conversation_id") or "none",
        source=_text(payload, "source", "trigger"),
        prompt=without_marked(_text(payload, "prompt")).strip()[:_LONGEST_TEXT],
        said=_text(payload, "last_assistant_message", "prompt_response", "text")[:_LONGEST_TEXT],
        transcript=_text(payload, "agent_transcript_path", "transcript_path"),
        tool=_text(payload, "tool_name"),
        call=_call(payload.get("tool_input")),
        command=command,
        error=error[:_LONGEST_ERROR],
        duration_ms=duration if isinstance(duration, int) and not isinstance(duration, bool) else None,
    )


def _text(payload: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := payload.get(name), str) and value), "")


def _call(arguments: Any) -> str:
    """The input of a tool: its first text, as a command or a path."""
    if isinstance(arguments, str):
        return arguments[:_LONGEST_CALL]
    values = arguments.values() if isinstance(arguments, Mapping) else ()
    return next((value[:_LONGEST_CALL] for value in values if isinstance(value, str) and value.strip()), "")


def _command(arguments: Any) -> str:
    """The command of a tool that runs commands; empty for other tools."""
    given = arguments.get("command") if isinstance(arguments, Mapping) else None
    words = given if isinstance(given, list) else [given]
    return " ".join(word for word in words if isinstance(word, str))[:_LONGEST_CALL]


def _error(act: str, payload: Mapping[str, Any]) -> str:
    if act == FAILURE:
        return _text(payload, "error", "error_message")
    if act != TOOL:
        return ""
    response = payload.get("tool_response")
    if isinstance(response, str):
        # Codex passes the output alone.
        failed = _failed_in(_text(payload, "transcript_path"), _text(payload, "tool_use_id"))
        return (response.strip() or "failed") if failed else ""
    return _error_in(response) if isinstance(response, Mapping) else ""


def _error_in(response: Mapping[str, Any]) -> str:
    error = response.get("error")
    if isinstance(error, Mapping):
        return _text(error, "message") or "failed"
    failed = (
        response.get("exit_code", 0) not in (0, None)
        or response.get("is_error") is True
        or _EXIT_CODE.search(_text(response, "llmContent"))
    )
    said = _text(response, "output", "stderr", "returnDisplay") or "failed" if failed else ""
    return str(error) if error else said


def _failed_in(transcript: str, call: str) -> bool:
    """Whether a transcript of Codex has a call of a tool as failed; its end is read."""
    if not transcript or not call:
        return False
    try:
        with Path(transcript).open("rb") as lines:
            lines.seek(max(0, Path(transcript).stat().st_size - _TRANSCRIPT_BYTES))
            read = lines.read()
    except OSError:
        return False
    return any(_is_failed(line, call) for line in read.splitlines() if call.encode() in line)


def _is_failed(line: bytes, call: str) -> bool:
    try:
        item = json.loads(line)["payload"]["item"]
        return bool(item["id"] == call and item["status"] == "failed")
    except (ValueError, KeyError, TypeError, RecursionError):
        return False
