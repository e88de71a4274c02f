"""Configuration is strict, and every mistake gets one sentence."""

from __future__ import annotations

import inspect
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from alma import ALMA, AsyncALMA, ConfigurationError, MemoryScope, UserPreference
from alma.config.loader import load_settings, settings_from
from alma.config.secrets import azure_vault
from alma.config.settings import Settings
from alma.domains import get_research_schema
from alma.storage.file_based import FileBasedStorage
from alma.storage.postgresql import PostgreSQLStorage
from alma.storage.sqlite_local import SQLiteStorage
from tests.support.documented import CONFIGURATION
from tests.support.key_vault import Credential, key_vault

DOCUMENTED = CONFIGURATION.format(storage="sqlite", provider="mock")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / ".alma" / "config.yaml"
    path.parent.mkdir()
    path.write_text(DOCUMENTED)
    return path


def test_the_documented_file_opens_a_store_in_its_project(file: Path, tmp_path: Path) -> None:
    with ALMA.from_config(file) as alma:
        assert alma.project_id == "my-project"
        assert alma.scopes["helena"] == MemoryScope(
            "helena", ["testing_strategies", "selector_patterns"], ["backend_logic"]
        )
        alma.learn("helena", "test", "success", "do it")
    assert (tmp_path / ".alma" / "alma.db").is_file()


def test_a_domain_gives_what_an_agent_does_not_say() -> None:
    agents = {
        "ada": {"domain": "research"},
        "ben": {"domain": "research", "can_learn": ["citation_practice"], "min_occurrences_for_heuristic": 5},
    }
    scopes = settings_from({"project_id": "p", "agents": agents}).scopes()
    assert scopes["ada"] == get_research_schema().scope_of("ada")
    assert scopes["ben"] == MemoryScope(
        "ben", ["citation_practice"], ["medical_advice", "legal_advice"], min_occurrences_for_heuristic=5
    )


def test_an_absolute_folder_stays_where_it_is(file: Path, tmp_path: Path) -> None:
    file.write_text(DOCUMENTED.replace("storage_dir: .alma", f"storage_dir: {tmp_path / 'elsewhere'}"))
    assert load_settings(file).storage_dir == str(tmp_path / "elsewhere")


def test_the_keys_may_stand_without_the_word_alma(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("project_id: p\n")
    assert load_settings(tmp_path / "c.yaml").project_id == "p"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "project_id is missing; add it"),
        ({"project_id": "p", "storge": "sqlite"}, "storge is not known; did you mean storage?"),
        (
            {"project_id": "p", "agents": {"a": {"can_lern": []}}},
            "agents.a.can_lern is not known; did you mean can_learn?",
        ),
        (
            {"project_id": "p", "agents": {"a": {"domain": "payments"}}},
            "agents.a.domain must be coding, research, sales, general, customer_support, content_creation; for another",
        ),
        ({"projectid": "p"}, "projectid is not known; did you mean project_id?"),
        ({"ALMA": {"project_id": "p"}}, "ALMA is not known; did you mean alma?"),
        ({"project_id": "p", "postgres": {"host": ""}}, "postgres.host must have 1 to 200 characters"),
        ({"project_id": "p", "postgres": {"host": "../../x"}}, "postgres.host must be the name or address of a host"),
        ({"project_id": "p", "postgres": {"user": "a\x00b"}}, "postgres.user must not contain the NUL character"),
        ({"project_id": "p", "postgres": {"password": "a\x00b"}}, "postgres.password must not contain the NUL"),
        (
            {"project_id": "p", "postgres": {"ssl_mode": "verify_full"}},
            "postgres.ssl_mode is 'verify_full', which is not known; did you mean verify-full?",
        ),
        ({"project_id": "p", "redis": {"url": "localhost"}}, "redis.url must be like redis://"),
        ({"project_id": "p", "local": {"threads": 10**30}}, "local.threads must be 1024 at most"),
        ({"project_id": "p", "retrieval": {"min_score_threshold": float("nan")}}, "retrieval.min_score_threshold: "),
        (
            {"project_id": "p", "storage": "mongo"},
            "storage is 'mongo', which is not known; choose 'sqlite', 'local', 'postgres', 'azure' or 'file'",
        ),
        ({"project_id": "p", "embedding_provider": "cohere"}, "embedding_provider is 'cohere'"),
        ({"project_id": "p", "embedding_dim": "384"}, "embedding_dim"),
        ({"project_id": "p", "embedding_dim": 10**23}, "embedding_dim must be 16000 at most, not 1"),
        ({"project_id": "p", "learning": {"max_outcomes_per_agent": 0}}, "per_agent must be at least 1, not 0"),
        ({"project_id": "p", "retrieval": {"cache_ttl_seconds": 0}}, "cache_ttl_seconds must be above 0, not 0"),
        ({"project_id": "p", 5: "x"}, "5 must be text, in quotes if it looks like something else"),
        ({"project_id": "p", "agents": {"a": {"min_occurrences_for_heuristic": 0}}}, "min_occurrences_for_heuristic"),
        ({"project_id": "p", "postgres": {"port": 99999}}, "postgres.port"),
        (
            {"project_id": "p", "storage": "PostgreSQL"},
            "storage is 'PostgreSQL', which is not known; did you mean postgres?",
        ),
        ({"project_id": 5}, "project_id must be text, in quotes if it looks like something else, not 5"),
        ({"project_id": "p", "agents": ["helena"]}, "agents must be a section with keys"),
        ({"project_id": "p", "agents": {"a": {"can_learn": "x"}}}, "agents.a.can_learn must be a list"),
        (
            {"project_id": "p", "retrieval": {"scoring_weights": {"similarty": 1}}},
            "retrieval.scoring_weights.similarty is not known; did you mean similarity?",
        ),
        ({"project_id": "p", "retrieval": {"scoring_weights": {"recency": -1}}}, "retrieval.scoring_weights.recency"),
        (
            {"project_id": "p", "agents": {"helena": {"share_with": ["vctor"]}, "victor": {}}},
            "agents.helena.share_with names the unknown agent 'vctor'; did you mean victor?",
        ),
        (
            {"project_id": "p", "agents": {"helena": {}, "victor": {"inherit_from": ["Helana"]}}},
            "agents.victor.inherit_from names the unknown agent 'Helana'; did you mean helena?",
        ),
        ({"project_id": "p", "agents": {"helena": {}, "Helena": {}}}, "'helena' and 'Helena' are the same agent"),
        ({"project_id": 7}, "project_id"),
        ({"project_id": None}, "project_id must be text, in quotes if it looks like something else, not nothing"),
        ({"project_id": date(2024, 1, 31)}, "in quotes if it looks like something else, not 2024-01-31"),
        ({"project_id": "p", "embedding_dim": True}, "embedding_dim must be a whole number without quotes, not true"),
        ({"project_id": "  "}, "project_id must have 1 to 200 characters"),
        ({"project_id": "a\x00b"}, "project_id must not contain the NUL character"),
        ({"project_id": "p", "agents": {"x" * 201: {}}}, "a name under agents must have 1 to 200 characters"),
        ({"project_id": "p", "agents": {"": {}}}, "a name under agents must have 1 to 200 characters (got '')"),
        ({"project_id": "p", "agents": {True: {}}}, "a name under agents must be text, in quotes if it looks like"),
        ({"project_id": "p", "agents": {"a": {"can_learn": [" "]}}}, "agents.a.can_learn.0 must have 1 to 200"),
        ({"project_id": "${KEYVAULT:}"}, "project_id: ${KEYVAULT:} is not a secret name"),
        ({"project_id": "${KEYVAULT:x}", "azure": {"key_vault_url": "vault.azure.net"}}, "must begin with https://"),
        ({"project_id": "${KEYVAULT:x}", "azure": {"key_vault_url": 5}}, "set azure.key_vault_url"),
        ({"project_id": "${KEYVAULT:x}", "azure": {"key_vault_url": "${NO_SUCH}"}}, "azure.key_vault_url: the env"),
    ],
)
def test_a_mistake_is_named(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings_from(given)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("password", [20240517, 1.5, True, ["hunter2"]])
def test_a_password_that_is_not_a_text_is_not_shown(password: Any) -> None:
    with pytest.raises(ConfigurationError) as caught:
        settings_from({"project_id": "p", "postgres": {"password": password}})
    assert str(caught.value) == "the configuration: postgres.password must be text; put it in quotes"


@pytest.mark.parametrize("section", ["azure", "openai", "local", "postgres", "agents", "learning"])
def test_a_section_whose_keys_are_all_commented_out_is_as_good_as_none(section: str) -> None:
    assert settings_from({"project_id": "p", section: None}) == settings_from({"project_id": "p"})


def test_an_agent_that_is_only_named_may_learn_everything() -> None:
    settings = settings_from({"project_id": "p", "agents": {"helena": None}})
    assert settings.scopes() == {"helena": MemoryScope("helena")}


def test_an_agent_that_may_be_configured_later_is_told_of_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    settings_from({"project_id": "p", "agents": {"agent_a": {"share_with": ["agent_b", "quinn"]}}})
    assert [(record.key, record.named) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("agents.agent_a.share_with", "agent_b"),
        ("agents.agent_a.share_with", "quinn"),
    ]


def test_who_shares_is_found_whatever_the_case_of_its_name() -> None:
    agents = {"helena": {"share_with": ["Victor"]}, "victor": {"inherit_from": ["HELENA"]}}
    with ALMA.quickstart("memory://", embedding_provider="mock", agents=agents) as alma:
        alma.add_domain_knowledge("Helena", "ui", "the login form has five fields")
        found = alma.retrieve("the login form has five fields", "VICTOR")
    assert [known.fact for known in found.domain_knowledge] == ["the login form has five fields"]


def test_a_file_that_is_not_utf_8_says_so(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_bytes("# a name\nproject_id: café".encode("latin-1"))
    with pytest.raises(ConfigurationError, match=r"is not UTF-8 \(line 2\); save it as UTF-8$"):
        load_settings(tmp_path / "c.yaml")


def test_a_path_that_no_file_can_have_is_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_settings("a\0b.yaml")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "a: {b: c\n",
            "while parsing a flow mapping (line 1, column 4), expected ',' or '}', but got the end of the file",
        ),
        ("a: 'b\n", "while scanning a quoted scalar (line 1, column 4), found unexpected end of the file (line 2, col"),
        ("a: b\n---\nc: d\n", "but found another document (line 2, column 1)"),
        ("a: \0\n", "it contains an invalid character (number 4 of the file)"),
        ("a: !!python/name:os.system\n", "could not determine a constructor for the tag"),
    ],
)
def test_invalid_yaml_is_told_by_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path / "c.yaml")
    assert sentence in str(caught.value)
    assert "unicode string" not in str(caught.value)


def test_a_line_that_is_not_yaml_is_not_quoted_for_a_password_may_stand_in_it(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("project_id: p\npostgres:\n  password: correct: horse\n")
    with pytest.raises(ConfigurationError, match=r"line 3, column 20") as caught:
        load_settings(tmp_path / "c.yaml")
    assert "horse" not in str(caught.value)


def test_a_folder_in_the_place_of_a_file_is_told_in_the_system_s_words(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path)
    assert str(caught.value) == f"{tmp_path} cannot be read: Is a directory"


def test_a_reference_in_a_list_on_one_line_says_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("project_id: p\nagents:\n  helena: {can_learn: [${DOMAIN}]}\n")
    with pytest.raises(ConfigurationError, match=r"put \$\{DOMAIN\} in quotes"):
        load_settings(tmp_path / "c.yaml")


def test_a_missing_file_is_an_error_not_another_store(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there is no configuration at"):
        ALMA.from_config(tmp_path / "none.yaml")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "alma: [",
        "- a\n- b\n",
        "just words",
        "alma: {project_id: p}\nother: 1\n",
        "alma: &a {agents: *a}\n",
        "[" * 5000,
        "project_id: 2024-13-45\n",
    ],
)
def test_an_invalid_configuration_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        load_settings(tmp_path / "c.yaml")
    assert str(tmp_path / "c.yaml") in str(caught.value)


def test_a_variable_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMA_TEST_PASSWORD", "s3cret$")
    settings = settings_from({"project_id": "p", "postgres": {"password": "${ALMA_TEST_PASSWORD}"}})
    assert settings.postgres.password.reveal() == "s3cret$"
    assert "s3cret" not in repr(settings)


def test_an_unset_variable_is_an_error_that_names_it_and_its_key() -> None:
    with pytest.raises(ConfigurationError, match=r"postgres\.password: the environment variable ALMA_NOT_SET"):
        settings_from({"project_id": "p", "postgres": {"password": "${ALMA_NOT_SET}"}})


def test_a_number_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMA_TEST_PORT", "5433")
    settings = settings_from({"project_id": "${ALMA_TEST_PORT}", "postgres": {"port": "${ALMA_TEST_PORT}"}})
    assert settings.postgres.port == 5433
    assert settings.project_id == "5433"


def test_a_mistake_does_not_tell_what_a_reference_stands_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMA_TEST_PASSWORD", "not for everyone")
    with pytest.raises(ConfigurationError, match=r"postgres\.port") as refused:
        settings_from({"project_id": "p", "postgres": {"port": "${ALMA_TEST_PASSWORD}"}})
    assert "not for everyone" not in str(refused.value)


def test_a_reference_that_does_not_end_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"project_id.*is not closed"):
        settings_from({"project_id": "${HOME"})


def test_a_key_that_stands_twice_is_an_error(file: Path) -> None:
    file.write_text("alma:\n  project_id: one\n  project_id: another\n")
    with pytest.raises(ConfigurationError, match=r"'project_id' is a duplicate key.*line 3"):
        ALMA.from_config(file)


def test_two_keys_that_a_reference_makes_one_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTER", "helena")
    with pytest.raises(ConfigurationError, match=r"agents: '\$\{TESTER\}' and 'helena' are the same key; remove one"):
        settings_from({"project_id": "p", "agents": {"${TESTER}": {"can_learn": ["a"]}, "helena": {}}})


def test_a_tab_is_answered_by_what_to_write(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("alma:\n\tproject_id: p\n")
    with pytest.raises(ConfigurationError, match=r"line 2.*replace the tab by spaces$"):
        load_settings(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("keys", "sentence"),
    [
        ({"embedding_provider": "openai"}, "set OPENAI_API_KEY or give openai.api_key"),
        (
            {"embedding_provider": "openai", "openai": {"api_key": "k", "base_url": "host"}},
            "openai.base_url must begin",
        ),
        (
            {"embedding_provider": "openai", "openai": {"api_key": "k", "model": "m"}},
            r"length of its vectors \(embedding_dim\)",
        ),
        ({"embedding_provider": "azure", "azure": {"key": "k"}}, "give azure.openai_endpoint"),
        ({"embedding_provider": "local", "local": {"model_name": "m"}}, r"tokenizer.json \(local.folder\)"),
    ],
)
def test_a_provider_names_the_keys_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], sentence: str
) -> None:
    for name in ("OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "c.yaml").write_text(json.dumps({"project_id": "p", **keys}))
    with pytest.raises(ConfigurationError, match=f"embedding_provider is {keys['embedding_provider']}: .*{sentence}"):
        ALMA.from_config(tmp_path / "c.yaml")


def test_a_dollar_sign_is_written_twice() -> None:
    assert settings_from({"project_id": "a$${b}"}).project_id == "a${b}"


def test_a_secret_comes_from_the_vault() -> None:
    asked: list[str] = []

    def vault(name: str) -> str:
        asked.append(name)
        return "from the vault"

    settings = settings_from({"project_id": "p", "postgres": {"password": "${KEYVAULT:db-password}"}}, vault=vault)
    assert settings.postgres.password.reveal() == "from the vault"
    assert asked == ["db-password"]


def test_the_address_of_the_vault_may_stand_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMA_TEST_VAULT", "not-there")
    with pytest.raises(ConfigurationError, match="must begin with https://, unlike 'not-there'"):
        settings_from({"project_id": "${KEYVAULT:x}", "azure": {"key_vault_url": "${ALMA_TEST_VAULT}"}})


def test_a_yes_or_no_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALMA_TEST_READS", "True")
    assert settings_from({"project_id": "p", "audit": {"log_reads": "${ALMA_TEST_READS}"}}).audit.log_reads is True


def test_a_cache_that_is_switched_off_is_written_as_the_defaults_show_it(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("project_id: p\nretrieval:\n  cache: null\n")
    assert load_settings(tmp_path / "c.yaml").retrieval.cache == "null"


def test_a_file_may_be_named_from_ones_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "c.yaml").write_text("project_id: p\n")
    assert load_settings("~/c.yaml").storage_dir == str(tmp_path / ".alma")


class TestQuickstart:
    @pytest.fixture(autouse=True)
    def at_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "home").mkdir()
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize(
        ("place", "file"),
        [
            (None, ".alma/alma.db"),
            ("~/mine.db", "home/mine.db"),
            ("home", "home/alma.db"),
            (Path("home"), "home/alma.db"),
            ("new/", "new/alma.db"),
            ("new/mine.db", "new/mine.db"),
            ("sqlite:///new/mine.db", "new/mine.db"),
        ],
    )
    def test_the_store_is_where_it_was_asked_for(self, tmp_path: Path, place: str | Path | None, file: str) -> None:
        ALMA.quickstart(place, embedding_provider="mock").close()
        assert [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.db")] == [file]
        assert not (tmp_path / "~").exists()

    def test_the_keys_of_a_configuration_choose_the_store(self, tmp_path: Path) -> None:
        ALMA.quickstart(embedding_provider="mock", storage="file", storage_dir="kept").close()
        assert (tmp_path / "kept").is_dir()
        assert not (tmp_path / ".alma").exists()

    def test_a_store_that_is_named_twice_is_an_error(self) -> None:
        with pytest.raises(ConfigurationError, match="path and storage both say where the store is"):
            ALMA.quickstart("a.db", embedding_provider="mock", storage="file")

    @pytest.mark.parametrize("place", [5, b"a.db", ["a.db"], ""])
    def test_what_names_no_place_is_an_error(self, tmp_path: Path, place: Any) -> None:
        with pytest.raises(ConfigurationError, match="the store must"):
            ALMA.quickstart(place, embedding_provider="mock")
        assert [each.name for each in tmp_path.iterdir()] == ["home"]


def test_a_vault_without_an_address_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_KEY_VAULT_URL", raising=False)
    with pytest.raises(ConfigurationError, match=r"postgres\.password: .*azure\.key_vault_url"):
        settings_from({"project_id": "p", "postgres": {"password": "${KEYVAULT:db-password}"}})


def test_a_dimension_that_the_model_does_not_make_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="set it to 384 or leave it out"):
        ALMA.quickstart(tmp_path / "a.db", embedding_provider="local", embedding_dim=512)


def test_a_mock_of_another_dimension_is_fine(tmp_path: Path) -> None:
    with ALMA.quickstart(tmp_path / "a.db", embedding_provider="mock", embedding_dim=16) as alma:
        assert alma.storage.embedding_dim == 16


@pytest.mark.parametrize("word", ["Azure", "cosmos"])
def test_another_name_of_cosmos_is_told_the_right_one(file: Path, word: str) -> None:
    file.write_text(DOCUMENTED.replace("storage: sqlite", f"storage: {word}"))
    with pytest.raises(ConfigurationError) as caught:
        ALMA.from_config(file)
    said = "storage is Azure Cosmos DB by another name; write  storage: azure"
    assert str(caught.value) == f"{file}: {said}"


@pytest.mark.parametrize("path", ["", "  "])
def test_a_configuration_without_a_name_is_told(path: str) -> None:
    with pytest.raises(ConfigurationError, match="must be given as a path, not as"):
        ALMA.from_config(path)


def test_a_folder_of_files_is_a_store(file: Path, tmp_path: Path) -> None:
    file.write_text(DOCUMENTED.replace("storage: sqlite", "storage: file"))
    with ALMA.from_config(file) as alma:
        alma.add_user_preference("ana", "style", "short answers")
    assert any((tmp_path / ".alma").glob("*.json"))


def test_postgres_is_opened_by_its_section(file: Path, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = conninfo_to_dict(postgres_dsn)
    monkeypatch.setenv("ALMA_TEST_PASSWORD", str(parts["password"]))
    file.write_text(
        DOCUMENTED.replace("storage: sqlite", "storage: postgres")
        + f"""
  postgres:
    host: {parts["host"]}
    port: {parts.get("port", 5432)}
    database: {parts["dbname"]}
    user: {parts["user"]}
    password: ${{ALMA_TEST_PASSWORD}}
"""
    )
    with ALMA.from_config(file) as alma:
        assert alma.learn("helena", "test", "success", "do it")
        assert alma.get_stats()["outcomes_count"] == 1


def test_the_official_client_reads_a_secret_from_a_vault(tmp_path: Path) -> None:
    with key_vault(tmp_path, {"db-password": "from the vault"}) as (address, certificate):
        vault = azure_vault(
            address, credential=Credential(), connection_verify=str(certificate), verify_challenge_resource=False
        )
        settings = settings_from({"project_id": "p", "postgres": {"password": "${KEYVAULT:db-password}"}}, vault=vault)
        assert settings.postgres.password.reveal() == "from the vault"
        with pytest.raises(ConfigurationError, match="'no-such' could not be read"):
            settings_from({"project_id": "${KEYVAULT:no-such}"}, vault=vault)


STORES: list[type[SQLiteStorage | FileBasedStorage | PostgreSQLStorage]] = [
    SQLiteStorage,
    FileBasedStorage,
    PostgreSQLStorage,
]


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"db_nam": "a.db"}, "db_nam is not known; did you mean db_name?"),
        ({"postgres": {"hots": "x"}}, "postgres.hots is not known; did you mean host?"),
        ({"postgres": {"password": "${ALMA_NO_SUCH_PASSWORD}"}}, "the environment variable ALMA_NO_SUCH_PASSWORD is"),
        ({"storage_dir": None}, "storage_dir must be text"),
        ({"embedding_dim": "384"}, "embedding_dim must be a whole number"),
        (None, "must be a dict of its keys, not None"),
    ],
)
def test_a_store_reads_its_keys_as_strictly_as_a_file_is_read(
    store: type[SQLiteStorage | FileBasedStorage | PostgreSQLStorage], given: Any, sentence: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        store.from_config(given)
    assert sentence in str(caught.value)


def test_a_store_is_opened_by_the_keys_of_a_whole_configuration(
    tmp_path: Path, postgres_dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALMA_TEST_FOLDER", str(tmp_path / "here"))
    parts = conninfo_to_dict(postgres_dsn)
    section = {
        "host": parts["host"],
        "port": int(parts["port"] or 5432),
        "database": parts["dbname"],
        "user": parts["user"],
        "password": parts["password"],
    }
    given = {"project_id": "shop", "storage_dir": "${ALMA_TEST_FOLDER}", "db_name": "x.db", "postgres": section}
    for store in STORES:
        with store.from_config({**given, "embedding_dim": 8, "agents": {"helena": None}}) as opened:
            assert opened.embedding_dim == 8
            opened.save_user_preference(UserPreference(user_id="ana", category="style", preference="short"))
    assert (tmp_path / "here" / "x.db").is_file()
    assert (tmp_path / "here" / "preferences.json").is_file()


@pytest.mark.parametrize("facade", [ALMA, AsyncALMA])
def test_quickstart_names_every_key_of_a_configuration(facade: type) -> None:
    named = inspect.signature(facade.quickstart).parameters  # type: ignore[attr-defined]
    assert set(Settings.model_fields) <= set(named)
    assert not any(each.kind is each.VAR_KEYWORD for each in named.values())
