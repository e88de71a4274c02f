"""What hooks hand over, what they learn, and that they never disturb a session."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from alma.hooks.hosts import HOSTS, event_of
from alma.hooks.texts import marked, without_marked
from alma.model.learning import AntiPattern, Outcome
from tests.hooks.conftest import Project, wait_for
from tests.support.unmeasured import unmeasured

STAGING = "Which port does the staging database listen on?"


# ---------------------------------------------------------------------- without a resident process


def test_a_session_starts_with_what_does_not_change(project: Project) -> None:
    context = project.context("SessionStart", session_id="start", source="startup")
    assert context.startswith("<alma-memory>\n")
    assert context.endswith("\n</alma-memory>")
    for said in ("test empty fields", "Don't: npm test", "short answers, no emojis", "Always: Run make lint"):
        assert said in context
    assert "Agent: claude-code. User: ana." in context
    assert "long answers" not in context
    assert "bluebird" not in context


def test_a_prompt_gets_what_fits_it_and_nothing_twice(project: Project) -> None:
    project.context("SessionStart", session_id="twice", source="startup")
    first = project.context("UserPromptSubmit", session_id="twice", prompt=STAGING)
    assert "port 5433" in first
    assert "short answers" not in first
    assert project.hook("UserPromptSubmit", session_id="twice", prompt=STAGING) == {}
    assert project.hook("UserPromptSubmit", session_id="twice", prompt="How do I bake a cake?") == {}
    assert "port 5433" in project.context("UserPromptSubmit", session_id="another", prompt=STAGING)


def test_a_session_without_a_start_gets_the_block_with_its_first_prompt(project: Project) -> None:
    context = project.context("UserPromptSubmit", session_id="no start", prompt=STAGING)
    assert context.index("short answers") < context.index("port 5433")


def test_the_block_is_the_same_after_compaction_and_is_not_repeated_on_resume(project: Project) -> None:
    block = project.context("SessionStart", session_id="long", source="startup")
    project.context("UserPromptSubmit", session_id="long", prompt=STAGING)
    assert project.hook("SessionStart", session_id="long", source="resume") == {}
    assert project.context("SessionStart", session_id="long", source="compact") == block
    assert "port 5433" in project.context("UserPromptSubmit", session_id="long", prompt=STAGING)


def test_a_memory_that_changed_is_shown_again(tmp_path: Path) -> None:
    own = Project(tmp_path)
    with own.memory() as memory:
        note = memory.journal.create("The staging database bluebird listens on port 5433.", project_id="shop")
    assert "5433" in own.context("UserPromptSubmit", session_id="s", prompt=STAGING)
    with own.memory() as memory:
        new = "The staging database bluebird listens on port 6000."
        memory.journal.update(note.id, {"content": new}, memory.scope())
    context = own.context("UserPromptSubmit", session_id="s", prompt=STAGING)
    assert "6000" in context
    assert "5433" not in context


def test_another_agent_gets_its_own_lessons(project: Project) -> None:
    context = project.context("SessionStart", "--agent", "victor", session_id="victor", source="startup")
    assert "test empty fields" not in context
    assert "short answers" in context


def test_without_a_resident_process_nothing_heavy_is_loaded(project: Project) -> None:
    payload = json.dumps({"cwd": str(project.folder), "session_id": "light", "prompt": STAGING})
    program = (
        "import sys, io\nfrom alma.hooks.command import main\n"
        "main(['UserPromptSubmit'])\nprint(*sorted(m.partition('.')[0] for m in sys.modules), file=sys.stderr)"
    )
    run = subprocess.run(
        [sys.executable, "-c", program],
        input=payload,
        capture_output=True,
        text=True,
        check=True,
        env={**unmeasured(), "ALMA_HOOK_RESIDENT": "0"},
    )
    assert "5433" in run.stdout
    loaded = set(run.stderr.split())
    assert not {"numpy", "pydantic", "onnxruntime", "typer", "asyncio", "tiktoken"} & loaded


# ---------------------------------------------------------------------- with a resident process


def test_a_resident_process_answers_by_meaning_with_little_work(resident: Project) -> None:
    resident.context("SessionStart", session_id="warm", source="startup")
    found = resident.context("UserPromptSubmit", session_id="warm", prompt=STAGING)
    assert "port 5433" in found
    assert resident.hook("UserPromptSubmit", session_id="warm", prompt=STAGING) == {}
    assert resident.processor_seconds < 0.15
    assert "in time" not in resident.log


def test_failures_of_tools_become_a_warning(resident: Project) -> None:
    resident.hook("UserPromptSubmit", session_id="failing", prompt="Run the unit tests of the parser")
    for _ in range(3):
        failed: Any = {"tool_name": "Bash", "tool_input": {"command": "pytest -n 8", "description": "run"}}
        answer = resident.hook("PostToolUseFailure", session_id="failing", error="No module named xdist", **failed)
        assert answer == {}
    warnings = _learned(resident, AntiPattern, "pytest -n 8")
    assert warnings
    assert "xdist" in (warnings[0].why_bad or "")


def test_an_interruption_is_not_a_failure(resident: Project) -> None:
    failed: Any = {"tool_name": "Bash", "tool_input": {"command": "sleep 1000"}, "error": "interrupted"}
    resident.hook("PostToolUseFailure", session_id="s", is_interrupt=True, **failed)
    assert not list((resident.place.folder / "spool").glob("*.json"))


@pytest.mark.parametrize("event", ["Stop", "SubagentStop", "PreCompact", "SessionEnd"])
def test_what_was_said_is_learned_once(resident: Project, tmp_path: Path, event: str) -> None:
    rule = {"Stop": "tabs", "SubagentStop": "British spelling", "PreCompact": "type hints", "SessionEnd": "UTC"}[event]
    transcript = tmp_path / "transcript.jsonl"
    said = f"Please always use {rule} in this project."
    injected = marked("## User Preferences\n- Prefers: Please always use Comic Sans everywhere.", "claude-code", "ana")
    lines: list[dict[str, Any]] = [
        {"type": "user", "message": {"role": "user", "content": said}},
        {"type": "user", "isMeta": True, "message": {"role": "user", "content": "Please always use COBOL."}},
        {"type": "user", "message": {"role": "user", "content": f"{injected}\nThank you."}},
        {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}},
        {"type": "summary", "summary": "nothing"},
    ]
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines) + "not JSON\n")
    name = "agent_transcript_path" if event == "SubagentStop" else "transcript_path"
    for _ in range(2):
        payload = {name: str(transcript), "session_id": event, "last_assistant_message": "Done."}
        assert resident.hook(event, **payload) == {}
    _settled(resident)
    with resident.memory() as memory:
        kept = [each.preference for each in memory.storage.get_user_preferences("ana")]
    assert len([each for each in kept if rule in each]) == 1
    assert not [each for each in kept if "Comic Sans" in each or "COBOL" in each]


def test_an_answer_without_a_transcript_is_learned_with_its_prompt(resident: Project) -> None:
    resident.hook("UserPromptSubmit", session_id="spoken", prompt="Please fix the flaky test of the cart")
    said = "I fixed the flaky test of the cart by waiting for the network to be idle."
    resident.hook("Stop", session_id="spoken", last_assistant_message=said, stop_hook_active=False)
    assert _learned(resident, Outcome, "network to be idle")


def test_what_was_handed_over_is_not_learned_back(resident: Project) -> None:
    before = len(_learned(resident, Outcome, "test empty fields"))
    resident.context("SessionStart", session_id="echo", source="startup")
    said = "What worked: test empty fields before valid ones."
    resident.hook("Stop", session_id="echo", last_assistant_message=said, prompt="What do you know?")
    assert len(_learned(resident, Outcome, "test empty fields")) == before


def _settled(project: Project) -> None:
    spool = project.place.folder / "spool"
    wait_for(lambda: not list(spool.glob("*.json")))


def _learned(project: Project, cls: Any, said: str) -> list[Any]:
    _settled(project)
    with project.memory() as memory:
        return [each for each in memory.storage.find(cls, memory.scope()) if said in (each.text() or "")]


# ---------------------------------------------------------------------- started when needed


def test_the_resident_process_is_started_by_a_hook_learns_what_waits_and_ends_when_idle(tmp_path: Path) -> None:
    own = Project(tmp_path)
    failed: Any = {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "no rule to make target"}
    own.hook("PostToolUseFailure", session_id="s", **failed)
    assert len(list((own.place.folder / "spool").glob("*.json"))) == 1
    env = {**os.environ, "ALMA_HOOK_IDLE_SECONDS": "1"}
    program = [sys.executable, "-m", "alma", "hook", "SessionStart"]
    started = {"session_id": "s", "cwd": str(own.folder)}
    subprocess.run(
        program, input=json.dumps(started), text=True, cwd=tmp_path, env=env, check=True, capture_output=True
    )
    assert _learned(own, Outcome, "no rule to make target")
    wait_for(lambda: not own.place.socket.exists())


def test_a_running_service_answers_hooks(tmp_path: Path) -> None:
    own = Project(tmp_path)
    with own.memory() as memory:
        memory.journal.create("The staging database bluebird listens on port 5433.", project_id="shop")
    with subprocess.Popen([sys.executable, "-m", "alma", "serve", "--port", "0"], cwd=tmp_path) as service:
        try:
            wait_for(own.place.socket.exists)
            assert "5433" in own.context("UserPromptSubmit", session_id="served", prompt=STAGING)
            failed: Any = {"tool_name": "Bash", "tool_input": {"command": "make"}, "error": "no rule to make target"}
            own.hook("PostToolUseFailure", session_id="served", **failed)
            assert _learned(own, Outcome, "no rule to make target")
            assert not (own.place.folder / "resident.lock").exists()
        finally:
            service.terminate()
    assert not own.place.socket.exists()


# ---------------------------------------------------------------------- it never disturbs


@pytest.mark.parametrize(
    ("event", "options", "stdin"),
    [
        ("SessionStart", (), "not JSON"),
        ("SessionStart", (), "[]"),
        ("SessionStart", (), ""),
        ("PreToolUse", (), "{}"),
        ("Nonsense", (), "{}"),
        ("Stop", ("--mood", "good"), "{}"),
        ("Stop", ("--host", "emacs"), "{}"),
        ("UserPromptSubmit", (), '{"prompt": 7, "session_id": ["x"], "cwd": 5}'),
        ("PostToolUseFailure", (), '{"tool_input": {"a": {"b": 1}}, "error": {"c": 2}}'),
    ],
)
def test_bad_input_is_answered_with_nothing(project: Project, event: str, options: tuple[str, ...], stdin: str) -> None:
    answer = project.hook(event, *options, stdin=stdin)
    assert answer.get("hookSpecificOutput", {}).keys() <= {"hookEventName", "additionalContext"}
    assert "Traceback" not in project.errors


def test_a_project_without_a_memory_is_left_alone(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "alma", "hook", "Stop"]
    done = subprocess.run(program, input="{}", text=True, cwd=tmp_path, check=True, capture_output=True)
    assert json.loads(done.stdout) == {}
    assert not list(tmp_path.iterdir())


def test_a_damaged_store_is_a_line_in_the_log(tmp_path: Path) -> None:
    own = Project(tmp_path)
    (tmp_path / ".alma" / "alma.db").write_bytes(b"this is no database" * 100)
    assert own.hook("UserPromptSubmit", session_id="s", prompt=STAGING) == {}
    assert re.search(r"UserPromptSubmit: DatabaseError: file is not a database", own.log)


def test_the_files_of_hooks_are_readable_by_their_owner_alone(project: Project) -> None:
    project.hook("Stop", session_id="private", last_assistant_message="x")
    for file in (project.place.folder, *project.place.folder.rglob("*")):
        assert file.stat().st_mode & 0o077 == 0, file


def test_stored_text_cannot_close_the_marks() -> None:
    text = marked("a </alma-memory> b", "x", None)
    assert text.count("</alma-memory>") == 1
    assert without_marked(f"before {text} after") == "before  after"


# ---------------------------------------------------------------------- other hosts


def test_each_host_gets_its_own_json(project: Project) -> None:
    for host, event in (("codex", "SessionStart"), ("gemini-cli", "SessionStart")):
        answer = project.hook(event, "--host", host, session_id=host, source="startup")
        assert answer["hookSpecificOutput"]["hookEventName"] == event
        assert "short answers" in answer["hookSpecificOutput"]["additionalContext"]
    cursor = project.hook(
        "sessionStart", "--host", "cursor", conversation_id="c", workspace_roots=[str(project.folder)]
    )
    assert "short answers" in cursor["additional_context"]
    before = project.context("BeforeAgent", "--host", "gemini-cli", session_id="gemini-cli", prompt=STAGING)
    assert "port 5433" in before
    assert project.hook("beforeSubmitPrompt", "--host", "cursor", conversation_id="c", prompt=STAGING) == {}


@pytest.mark.parametrize(
    ("response", "error"),
    [
        ({"exit_code": 1, "output": "no such file"}, "no such file"),
        ({"error": {"message": "denied"}}, "denied"),
        ({"llmContent": "Output: no such file\nExit Code: 2", "returnDisplay": "no such file"}, "no such file"),
        ({"exit_code": 0, "output": "fine"}, None),
        ("plain text", None),
    ],
)
def test_a_failed_tool_is_recognised_where_hosts_report_every_tool(response: Any, error: str | None) -> None:
    payload = {"session_id": "s", "tool_name": "shell", "tool_input": {"command": "ls"}, "tool_response": response}
    event = event_of(HOSTS["gemini-cli"], "AfterTool", payload)
    assert event is not None
    assert (event.error or None) == error


@pytest.mark.parametrize(("status", "error"), [("failed", "no such file"), ("completed", None)])
def test_a_failed_tool_of_codex_is_recognised_by_its_transcript(tmp_path: Path, status: str, error: str | None) -> None:
    call = {"type": "response_item", "payload": {"type": "function_call", "call_id": "call_1"}}
    item = {"type": "CommandExecution", "id": "call_1", "status": status, "exit_code": 2}
    lines = [call, {"type": "event_msg", "payload": {"type": "item_completed", "item": item}}]
    transcript = tmp_path / "rollout.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    payload = {"tool_response": "no such file\n", "tool_use_id": "call_1", "transcript_path": str(transcript)}
    event = event_of(HOSTS["codex"], "PostToolUse", payload)
    assert (None if event is None else event.error) == error


def test_what_gemini_puts_into_a_prompt_is_not_part_of_it() -> None:
    escaped = marked("- Prefers: tabs", "gemini-cli", "ana").replace("<", "&lt;").replace(">", "&gt;")
    prompt = f"<hook_context>{escaped}</hook_context>\n\nFix the flaky test"
    event = event_of(HOSTS["gemini-cli"], "BeforeAgent", {"prompt": prompt})
    assert event is not None
    assert event.prompt == "Fix the flaky test"
