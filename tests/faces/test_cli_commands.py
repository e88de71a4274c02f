"""What the commands do: the everyday ones from start to end, what they print, and how mistakes end."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from alma.bootstrap import open_existing
from alma.cli.output import safe, safe_json
from alma.core import ALMA
from alma.testing import builders as make
from tests.support.command_line import run, spawn
from tests.support.postgres import wait_until

LESSON = ["learn", "Test the login form", "--agent", "helena", "--outcome", "success", "--strategy", "wait until idle"]
EVIL = "\x1b[2Jgone \x9b31m [red]not red[/red] \u202eright to left\x07"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder with a configured memory, which is where the commands run."""
    place = tmp_path / "shop"
    place.mkdir()
    monkeypatch.chdir(place)
    for name in ("ALMA_STORE", "ALMA_CONFIG", "ALMA_PROJECT", "ALMA_AGENT", "ALMA_USER"):
        monkeypatch.delenv(name, raising=False)
    assert run("init", "--embeddings", "mock").returncode == 0
    return place


# ---------------------------------------------------------------------- everyday


def test_what_is_learned_is_retrieved_and_explained(folder: Path) -> None:
    assert "No lesson yet" in run(*LESSON).stdout
    run(*LESSON)
    assert "Lesson: wait until idle (3 of 3 worked" in run(*LESSON).stdout
    shown = run("retrieve", "Test the login form", "--agent", "helena", "--explain").stdout
    assert "Do: wait until idle" in shown
    assert "recency" in shown
    found = run("retrieve", "Test the login form", "--agent", "helena", "--explain", "--json").json
    assert found["heuristics"][0]["strategy"] == "wait until idle"
    assert found["explanations"][0]["terms"]
    why = run("retrieve", "Test the login form", "--agent", "helena", "--why-not", "nothing-such").stdout
    assert "nothing-such: scope: " in why


def test_json_is_remembered_as_json(folder: Path) -> None:
    order = {"text": "an order", "items": [{"sku": "x"}]}
    for given in (
        run("remember", json.dumps(order), "--json"),
        run("remember", "-", "--json", stdin=json.dumps(order)),
    ):
        kept = given.json["memory"]
        assert (kept["content"], kept["content_json"]) == ("an order", order)
    found = run("memories", "list", "--content", '{"items": [{"sku": "x"}]}', "--json").json["memories"]
    # The same said again is one memory.
    assert len(found) == 1
    assert run("remember", "{braces} are no JSON", "--json").json["memory"]["content"] == "{braces} are no JSON"


def test_what_is_remembered_is_found_and_counts(folder: Path) -> None:
    said = run("remember", "We chose PostgreSQL for its row locks.", "--type", "decision", "--tag", "database")
    assert said.stdout.startswith("Remembered ")
    assert run("remember", "-", stdin="Piped in.").returncode == 0
    shown = run("search", "PostgreSQL row locks", "--mode", "keyword").stdout
    assert "1. We chose PostgreSQL for its row locks." in shown
    assert [
        hit["memory"]["tags"] for hit in run("search", "row locks", "--mode", "keyword", "--json").json["hits"]
    ] == [["database"]]
    assert "row locks" in run("context", "change the database", "--file", "db.py").stdout
    assert [m["content"] for m in run("memories", "list", "--type", "note", "--json").json["memories"]] == ["Piped in."]
    assert run("stats", "--json").json["counts"]["memories_count"] == 2
    assert run("search", "nothing like it", "--mode", "keyword").stdout == "Nothing was found.\n"


def test_what_is_forgotten_comes_back_until_it_is_purged(folder: Path) -> None:
    outcome = run(*LESSON, "--json").json["outcome"]["id"]
    dry = run("forget", "--older-than-days", "0", "--dry-run")
    assert outcome in dry.stdout
    assert dry.stdout.endswith("1 would be archived; nothing was changed\n")
    assert run("forget", "--older-than-days", "0").stdout.startswith("1 forgotten")
    assert run("stats", "--json").json["counts"]["outcomes_count"] == 0
    assert run("restore", outcome).stdout == f"{outcome} is back\n"
    assert run("stats", "--json").json["counts"]["outcomes_count"] == 1
    run("forget", "--older-than-days", "0")
    refused = run("purge", "--retention-days", "0")
    assert (refused.returncode, "--yes" in refused.stderr) == (2, True)
    assert run("purge", "--retention-days", "0", "--yes").stdout == "1 deleted for good\n"
    assert run("restore", outcome).returncode == 4


def test_a_backup_is_restored_by_the_same_word_and_ids_stay_ids(folder: Path) -> None:
    run("remember", "kept")
    assert run("backup", "b.db").returncode == 0
    run("remember", "too much")
    refused = run("restore", "b.db")
    assert (refused.returncode, "--force" in refused.stderr) == (5, True)
    assert run("restore", "b.db", "--force").returncode == 0
    assert [m["content"] for m in run("memories", "list", "--json").json["memories"]] == ["kept"]
    # A name without a dot is a file where there is one, and an id where there is none.
    Path("b.db").rename("backup")
    assert run("restore", "backup", "other.db").returncode == 0
    assert run("restore", "backup", "--ids").returncode == 4
    assert run("restore", "nothing", "--file").returncode == 2
    assert "read as an id" in run("restore", "nothing", "--force").stderr
    assert run("restore", "./a.db", "b.db", "c.db").returncode == 2


def test_a_long_list_says_how_to_go_on(folder: Path) -> None:
    for number in range(3):
        run("remember", f"fact number {number} of many")
    shown = run("memories", "list", "--limit", "2")
    first, _, rest = shown.stdout.rpartition("more with  ")
    assert ("number 2" in first, "number 0" in first) == (True, False)
    onwards = run("memories", "list", "--limit", "2", *shlex.split(rest))
    assert ("number 0" in onwards.stdout, "more with" in onwards.stdout) == (True, False)


def test_a_softly_deleted_memory_comes_back_by_the_same_word(folder: Path) -> None:
    memory = run("remember", "kept", "--json").json["memory"]["id"]
    run("memories", "delete", memory)
    assert run("memories", "get", memory).returncode == 4
    assert run("restore", memory, memory, "--json").json == {"restored": [memory]}
    assert run("memories", "get", memory).returncode == 0


def test_a_store_of_another_model_says_how_it_is_opened(folder: Path) -> None:
    run(*LESSON)
    refused = run("retrieve", "x", "--agent", "helena", "--store", ".alma/alma.db")
    assert (refused.returncode, "mock" in refused.stderr, "--config" in refused.stderr) == (2, True, True)


def test_a_group_runs_and_an_inner_filter_is_an_option(folder: Path) -> None:
    session = run("sessions", "create", "--name", "Fix the login", "--json").json["session"]["id"]
    assert session in run("sessions", "list").stdout
    ended = run("sessions", "end", session, "--summary", "Fixed.", "--json").json["session"]
    assert ended["summary"] == "Fixed."
    memory = run("remember", "first", "--tag", "a", "--json").json["memory"]["id"]
    run("memories", "update", memory, "--title", "second", "--reason", "clearer")
    assert len(run("history", "list", memory, "--json").json["versions"]) == 2
    assert run("memories", "list", "--tag", "b", "--json").json["memories"] == []
    assert run("settings", "set", "max_memories_per_session", "500", "--json").json["value"] == 500
    learned = run(
        "learning", "learn-from-conversation", "--agent", "helena", "--user", "ana",
        "--messages", '[{"role": "user", "content": "Please always use dark mode."}]', "--json",
    )  # fmt: skip
    assert learned.returncode == 0, learned.stderr
    Path("said.json").write_text('[{"role": "user", "content": "I prefer tabs."}]')
    from_file = run("learning", "learn-from-conversation", "--agent", "helena", "--messages", "@said.json")
    assert from_file.returncode == 0, from_file.stderr


# ---------------------------------------------------------------------- which store


def test_a_store_is_chosen_the_same_way_everywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with ALMA.quickstart("named.db", embedding_provider="mock") as memory:
        memory.storage.save(make.a_heuristic(project_id="default"))
    for chosen in (["--store", "named.db"], ["--store", "sqlite:///named.db"]):
        assert run("stats", *chosen, "--json").json["counts"]["heuristics_count"] == 1
        assert run("migrate", "status", *chosen, "--json").json[0]["version"] == 1
        assert run("audit", "list", *chosen, "--json").json
    monkeypatch.setenv("ALMA_STORE", "named.db")
    assert run("stats", "--json").json["counts"]["heuristics_count"] == 1
    monkeypatch.delenv("ALMA_STORE")
    assert run("stats", "--json").json == {**run("stats", "--json").json, "project_id": "shop"}
    assert run("stats", "--project", "bank", "--json").json["project_id"] == "bank"
    monkeypatch.setenv("ALMA_CONFIG", "nowhere.yaml")
    assert run("stats").returncode == 2
    monkeypatch.delenv("ALMA_CONFIG")
    for name in ("export", "backup"):
        assert run(name, f"{name}.out", "--store", "named.db").returncode == 0
        assert run(name, "named.db", f"{name}.too").returncode == 0
    assert run("merge", "named.db", "--dry-run", "--json").json["new"] == {"heuristic": 1}


def test_looking_makes_no_store_and_writing_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["stats"], ["search", "x"], ["purge", "--yes"], ["memories", "list"], ["keys", "list"]):
        ran = run(*command)
        assert (ran.returncode, "there is no store at" in ran.stderr) == (2, True), command
    assert list(tmp_path.iterdir()) == []
    assert run("add", "x").returncode == 2
    assert run("work", "create", "Write the test").returncode == 0
    assert (tmp_path / ".alma" / "alma.db").is_file()


def test_a_server_is_a_store_too(postgres_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    user, _, rest = postgres_dsn.removeprefix("postgresql://").partition(":")
    password, _, where = rest.partition("@")
    host, _, database = where.partition("/")
    monkeypatch.setenv("ALMA_POSTGRES_PASSWORD", password)
    assert run("init", "--storage", "postgres", "--embeddings", "mock", "--agent", "helena").returncode == 0
    config = tmp_path / ".alma" / "config.yaml"
    text = config.read_text().replace("localhost", host.split(":")[0]).replace("5432", host.split(":")[1])
    config.write_text(text.replace("alma_memory", database).replace("user: alma", f"user: {user}"))
    for _ in range(3):
        assert run(*LESSON).returncode == 0
    assert run("retrieve", "Test the login form", "--agent", "helena", "--json").json["total_items"] > 0
    assert run("remember", "on a server").returncode == 0
    assert run("migrate", "status", "--json").json
    assert run("export", "all.jsonl", "--json").json["counts"]["outcome"] == 3
    told = run("doctor", "--json")
    assert [check["status"] for check in told.json["checks"]] == ["ok"] * len(told.json["checks"])
    assert password not in run("doctor").stdout
    monkeypatch.setenv("ALMA_POSTGRES_PASSWORD", "wrong")
    failed = run("doctor")
    assert failed.returncode == 1
    assert "start the server, or correct postgres" in failed.stdout


# ---------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["retrive", "x"], 2, "did you mean retrieve"),
        (["sessions", "lst"], 2, "did you mean list"),
        (["retrieve", "x"], 2, "--agent"),
        (["retrieve", "x", "--agnt", "y"], 2, "--agent"),
        (["retrieve", "x", "--agent", "a", "--top-k", "many"], 2, "--top-k"),
        (["retrieve", "x", "--agent", "a", "--top-k", "1000"], 3, "--top-k must be less than or equal to 100"),
        (["retrieve", "", "--agent", "a"], 3, "task must have at least 1 character"),
        (["learn", "x", "--agent", "a", "--outcome", "maybe", "--strategy", "s"], 3, "maybe"),
        (["search", "x", "--mode", "magic"], 2, "hybrid"),
        (["memories", "list", "--created-since", "yesterday"], 3, "--created-since must be a time like"),
        (["memories", "list", "--layer", "cellar"], 3, "cellar"),
        (["memories", "get", "no-such"], 4, "there is no memory with id 'no-such'"),
        (["memories", "delete", "no-such", "--hard"], 2, "--yes"),
        (["restore", "no-such"], 4, "no-such"),
        (["learning", "learn-from-conversation", "--agent", "a", "--messages", "{"], 3, "--messages must be JSON"),
        (["learning", "learn-from-conversation", "--agent", "a", "--messages", "@no.json"], 3, "no.json"),
        (["projects", "list"], 7, "--user"),
        (["stats", "--config", "none.yaml"], 2, "there is no configuration at none.yaml"),
        (["stats", "--store", "mongodb://x"], 2, "unknown kind of store 'mongodb'"),
        (["stats", "--store", "postgresql://u:secret@127.0.0.1:1/z"], 5, "PostgreSQL"),
        (["export", "no/such/folder/x.jsonl"], 2, "no/such/folder"),
        (["init"], 2, "--force"),
        (["bench", "--count", "0"], 2, "--count"),
    ],
)
def test_a_mistake_is_one_sentence_and_an_exit_code(folder: Path, arguments: list[str], code: int, said: str) -> None:
    ran = run(*arguments)
    assert (ran.returncode, ran.stdout) == (code, ""), ran.stderr
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "secret" not in ran.stderr


def test_an_agent_that_may_not_learn_is_refused_as_such(folder: Path) -> None:
    config = Path(".alma/config.yaml")
    rule = 'agents: {helena: {cannot_learn: ["backend"]}}'
    config.write_text(config.read_text().replace("agents: {}", rule))
    refused = run(*LESSON, "--task-type", "backend")
    assert refused.returncode == 7
    assert refused.stderr.count("\n") == 1


def test_a_damaged_store_is_one_sentence(folder: Path) -> None:
    Path(".alma/alma.db").write_bytes(b"this was a database once" * 100)
    for command in (["stats"], ["doctor"], ["migrate", "status"]):
        ran = run(*command)
        assert ran.returncode in (1, 5), ran
        assert "Traceback" not in ran.stderr


def test_no_one_expected_is_told_without_a_traceback(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("alma.cli.store_options.place_of", lambda *_: 1 / 0)
    ran = run("stats")
    assert (ran.returncode, ran.stderr) == (
        1,
        "alma: internal error, ZeroDivisionError: division by zero; set ALMA_DEBUG=1 to see where\n",
    )


@pytest.mark.parametrize("length", [10, 900_000])
def test_a_reader_that_has_seen_enough_is_not_an_error(folder: Path, length: int) -> None:
    with ALMA.from_config() as memory:
        memory.storage.save(make.a_memory(project_id="shop", content="x" * length))
    started = subprocess.Popen(
        [sys.executable, "-m", "alma", "memories", "list", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert started.stdout is not None
    assert started.stderr is not None
    started.stdout.close()
    with started.stderr as said:
        assert (started.wait(60), said.read()) == (141, b"")


def test_ctrl_c_ends_it_with_a_word(folder: Path) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "alma", "remember", "-"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell lets what runs beside it ignore Ctrl-C, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    wait_until(lambda: _reads_its_input(started.pid))
    started.send_signal(signal.SIGINT)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out, err) == (130, "", "alma: stopped\n")


def _reads_its_input(pid: int) -> bool:
    """Whether it is in a system call that reads file 0."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/syscall").read_text().split()[:2] == ["0", "0x0"]
    return False


# ---------------------------------------------------------------------- what is stored does not act


def test_what_is_stored_is_shown_and_never_acts(folder: Path) -> None:
    run("remember", EVIL, "--title", EVIL, "--tag", EVIL)
    run("learn", EVIL, "--agent", "helena", "--outcome", "failure", "--strategy", EVIL, "--error-message", EVIL)
    memory = run("memories", "list", "--json").json["memories"][0]
    assert memory["content"] == EVIL
    for command in (
        ["memories", "list"],
        ["memories", "get", memory["id"]],
        ["memories", "list", "--json"],
        ["search", "gone"],
        ["context", "gone"],
        ["retrieve", "gone", "--agent", "helena", "--explain"],
        ["learning", "list-learned", "outcome"],
        ["history", "list", memory["id"]],
        ["audit", "list"],
        ["stats", "--project", EVIL],
        ["memories", "get", EVIL],
        [EVIL],
        ["stats", f"--{EVIL}"],
        ["stats", "--store", f"x://{EVIL}"],
    ):
        ran = run(*command)
        for acting in ("\x1b", "\x9b", "\u202e", "\x07"):
            assert acting not in ran.stdout + ran.stderr, command
    assert "[red]not red[/red]" in run("memories", "get", memory["id"]).stdout


def test_text_stays_text_when_it_is_made_safe() -> None:
    assert safe("line\n\ttab é 漢 🎉\r\n") == "line\n\ttab é 漢 🎉\n"
    assert safe("\x1b[0m\x7f\ud800") == "\\x1b[0m\\x7f\\ud800"
    text = "é\x1b\x9b\u202e\u2028 漢"
    assert json.loads(safe_json(json.dumps(text, ensure_ascii=False))) == text


@pytest.mark.parametrize("columns", ["60", "80", "120", "300"])
def test_what_must_be_copied_is_whole_on_any_screen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    memory = run("remember", "word " * 100, "--title", "A title", "--tag", "tag", "--json").json["memory"]["id"]
    outcome = run(*LESSON, "--json").json["outcome"]["id"]
    monkeypatch.setenv("COLUMNS", columns)
    for shown, wanted in (
        (run("memories", "list"), memory),
        (run("memories", "get", memory), memory),
        (run("search", "word", "--mode", "keyword"), memory),
        (run("learning", "list-learned", "outcome"), outcome),
    ):
        assert wanted in shown.stdout
    assert all(len(line) <= int(columns) for line in run("memories", "list").stdout.splitlines())


# ---------------------------------------------------------------------- init, doctor, bench


def test_init_writes_what_opens_and_keeps_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / 'odd: "name" #1'
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / ".mcp.json").write_text('{"mcpServers": {"other": {"command": "x"}}, "more": 1}')
    shown = run("init", "--agent", "helena", "--agent", "a: b", "--mcp-file", ".mcp.json")
    assert shown.returncode == 0, shown.stderr
    with ALMA.from_config() as memory:
        assert memory.project_id == folder.name
        assert set(memory.scopes) == {"helena", "a: b"}
    clients = json.loads((folder / ".mcp.json").read_text())
    assert (set(clients["mcpServers"]), clients["more"]) == ({"other", "alma"}, 1)
    server = clients["mcpServers"]["alma"]
    assert [server["command"], *server["args"]] == [
        sys.executable, "-m", "alma.mcp", "--config", str(folder / ".alma" / "config.yaml"),
    ]  # fmt: skip
    before = (folder / ".alma" / "config.yaml").read_bytes()
    assert run("init").returncode == 2
    assert (folder / ".alma" / "config.yaml").read_bytes() == before
    (folder / ".mcp.json").write_text("[]")
    assert run("init", "--force", "--mcp-file", ".mcp.json").returncode == 2
    assert (folder / ".alma" / "config.yaml").read_bytes() == before
    assert run("init", "--force", "--json").json["mcp"]["mcpServers"]["alma"]
    (folder / ".alma" / "alma.db").rename(folder / "kept.db")
    for storage in ("postgres", "file"):
        assert run("init", "--force", "--storage", storage).returncode == 0


def test_the_doctor_says_what_is_wrong_and_what_to_do(folder: Path) -> None:
    assert run("doctor", "--deep").stdout.endswith("All checks passed.\n")
    with open_existing(".alma/alma.db") as storage:
        storage.save(make.a_heuristic(project_id="shop"))
    lacking = run("doctor")
    assert (lacking.returncode, "→ alma reembed" in lacking.stdout) == (0, True)
    config = Path(".alma/config.yaml")
    config.write_text(config.read_text() + "\n  retrieval: {cache: redis}\n  redis: {url: 'redis://127.0.0.1:1/0'}\n")
    assert "the Redis server does not respond" in run("doctor").stdout
    config.write_text("alma: {project_id: shop, judge: strict}")
    assert "ok    judge          strict: only equal texts are the same" in run("doctor").stdout
    config.write_text("alma: {project_id: shop, judge: llm}")
    assert (run("doctor").returncode, "llm.provider is missing" in run("doctor").stdout) == (1, True)
    config.write_text("alma: {project_id: shop, storag: sqlite}")
    wrong = run("doctor")
    assert (wrong.returncode, "did you mean storage?" in wrong.stdout) == (1, True)
    assert run("doctor", "--store", "none.db").stdout.startswith("ok    configuration  none, given by --store")
    assert not Path("none.db").exists()


def test_the_doctor_leaves_an_older_store_as_it_is(folder: Path) -> None:
    with closing(sqlite3.connect("older.db")) as connection:
        connection.execute("CREATE TABLE heuristics (id TEXT PRIMARY KEY)")
    before = Path("older.db").read_bytes()
    shown = run("doctor", "--store", "older.db")
    assert "alma migrate up" in shown.stdout
    assert Path("older.db").read_bytes() == before


def test_a_bench_measures_each_thing_and_leaves_nothing(folder: Path) -> None:
    before = sorted(folder.rglob("*"))
    results = run("bench", "--embeddings", "mock", "--count", "5", "--json").json["results"]
    assert [row["what"] for row in results] == ["remember", "learn", "retrieve", "retrieve again"]
    assert all(row["per_second"] > 0 for row in results)
    assert sorted(folder.rglob("*")) == before


# ---------------------------------------------------------------------- as it is installed


def test_the_installed_command_serves_a_newcomer(tmp_path: Path) -> None:
    assert spawn("init", cwd=tmp_path).returncode == 0
    assert spawn(*LESSON, cwd=tmp_path).returncode == 0
    found = spawn("retrieve", "Test the sign-up form", "--agent", "helena", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert "succeeded with: wait until idle" in found.stdout
