"""A memory on Azure Cosmos DB from the command line, and secrets in its configuration."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from alma.core import ALMA
from alma.errors import ConfigurationError
from alma.storage import AzureCosmosStorage
from tests.support.command_line import run
from tests.support.cosmos_server import KEY, CosmosServer

LESSON = ["learn", "Test the login form", "--agent", "helena", "--outcome", "success", "--strategy", "wait until idle"]


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cosmos: CosmosServer) -> Path:
    """A configuration written by `alma init`, with the address of the server."""
    monkeypatch.chdir(tmp_path)
    for name in ("ALMA_STORE", "ALMA_CONFIG", "ALMA_PROJECT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AZURE_COSMOS_KEY", KEY)
    assert run("init", "--storage", "azure", "--embeddings", "mock", "--project", "shop").returncode == 0
    file = Path(".alma/config.yaml")
    text = file.read_text().replace("https://my-account.documents.azure.com:443/", cosmos.url)
    file.write_text(text.replace("database: alma-memory", f"database: {tmp_path.name.replace('_', '-')}"))
    return file


def test_a_configured_memory_is_kept_in_cosmos_db(config: Path) -> None:
    before = run("doctor")
    assert (before.returncode, "does not exist" in before.stdout) == (1, True)
    assert run(*LESSON).returncode == 0
    assert "wait until idle" in run("retrieve", "Test the login form", "--agent", "helena").stdout
    after = run("doctor")
    assert after.returncode == 0, after.stdout
    assert "Cosmos DB has no transactions across partitions" in after.stdout
    assert KEY not in after.stdout
    assert "as plain text" not in after.stdout
    with ALMA.from_config(config) as alma:
        assert isinstance(alma.storage, AzureCosmosStorage)


def test_the_doctor_names_plain_secrets_and_the_lines_to_write(config: Path) -> None:
    text = config.read_text().replace("${AZURE_COSMOS_KEY}", KEY)
    config.write_text(
        f"{text}  openai: {{api_key: sk-plain}}\n  redis: {{url: 'redis://:secret@127.0.0.1:1/0'}}\n"
        f"  webhooks: [{{url: 'http://127.0.0.1:1', secret: hook-plain}}]\n"
    )
    shown = run("doctor", "--json")
    checks = [check for check in json.loads(shown.stdout)["checks"] if check["what"] == "secrets"]
    assert [check["said"].split()[0] for check in checks] == [
        "azure.key",
        "openai.api_key",
        "redis.url",
        "webhooks.0.secret",
    ]
    assert "key: ${ALMA_AZURE_KEY}" in checks[0]["to_do"]
    assert "key: ${KEYVAULT:alma-azure-key}" in checks[0]["to_do"]
    assert "secret: ${ALMA_WEBHOOKS_0_SECRET}" in checks[3]["to_do"]
    assert {check["status"] for check in checks} == {"warn"}
    assert not any(secret in shown.stdout for secret in (KEY, "sk-plain", ":secret@", "hook-plain"))


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("{}", "azure.endpoint must be the address of the account"),
        ("{endpoint: my-account, key: x}", "azure.endpoint must be the address of the account"),
        ("{endpoint: 'https://a.documents.azure.com'}", "azure.key is missing: write"),
        ("{endpoint: 'https://a.documents.azure.com', key: 'not a key'}", "azure.key is not valid"),
    ],
)
def test_a_configuration_that_lacks_something_says_what(tmp_path: Path, section: str, said: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(f"alma: {{project_id: shop, storage: azure, embedding_provider: mock, azure: {section}}}")
    with pytest.raises(ConfigurationError, match=said):
        ALMA.from_config(file)
