"""Azure Cosmos DB throttles, fails, loses answers and outlives its writers: nothing acknowledged is lost."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from alma.errors import ConfigurationError, ConflictError, StorageError
from alma.model.governance import AuditEvent
from alma.model.learning import Heuristic
from alma.model.memory import Memory, MemoryVersion
from alma.storage.azure_cosmos import AzureCosmosStorage
from alma.storage.cosmos.account import Account, Charges
from alma.storage.cosmos.log import CommitLog
from alma.testing import builders as make
from alma.testing.builders import DIMS, EVERYWHERE, SHOP
from tests.support.cosmos import empty_database
from tests.support.cosmos_server import KEY, CosmosServer, Request

Open = Callable[..., AzureCosmosStorage]
_WRITES = ("create", "replace", "batch")


@pytest.fixture
def database(cosmos: CosmosServer) -> Iterator[str]:
    yield empty_database(cosmos, DIMS)
    cosmos.failures.clear()
    cosmos.executed = lambda request: None


@pytest.fixture
def opener(cosmos: CosmosServer, database: str) -> Open:
    return partial(AzureCosmosStorage, cosmos.url, KEY, database, embedding_dim=DIMS, lease_seconds=0.4)


@pytest.fixture
def storage(opener: Open) -> Iterator[AzureCosmosStorage]:
    with opener() as store:
        yield store


def writing(container: str) -> Callable[[Request], bool]:
    return lambda request: request.what in _WRITES and request.container == container


def test_throttled_requests_are_repeated_and_their_charges_logged(
    cosmos: CosmosServer, storage: AzureCosmosStorage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="alma.storage.azure_cosmos")
    for container in ("alma-heuristics", "alma-journal", "alma-audit-log"):
        cosmos.fail(429, 3, when=writing(container), headers={"x-ms-retry-after-ms": "1"})
    storage.save(make.a_heuristic(id="h"))
    assert storage.count(Heuristic, SHOP) == 1
    assert any("request units: create in alma-heuristics" in message for message in caplog.messages)
    (total,) = (record for record in caplog.records if record.message.startswith("a transaction used"))
    assert total.__dict__["request_units"] > 5


def test_a_commit_that_stays_throttled_is_an_error_and_nothing_is_stored(
    cosmos: CosmosServer, storage: AzureCosmosStorage
) -> None:
    cosmos.fail(
        429, 100, when=lambda r: writing("alma-journal")(r) and r.what == "create", headers={"x-ms-retry-after-ms": "1"}
    )
    with pytest.raises(StorageError, match=r"throttles \(429\).*more request units.*nothing of this transaction was"):
        storage.save(make.a_heuristic(id="h"))
    cosmos.failures.clear()
    assert storage.count(Heuristic, EVERYWHERE) == storage.count(MemoryVersion, EVERYWHERE) == 0
    storage.save(make.a_heuristic(id="h"))
    assert storage.count(Heuristic, EVERYWHERE) == 1


@pytest.mark.parametrize("container", ["alma-journal", "alma-heuristics", "alma-memory-versions"])
def test_a_lost_answer_neither_loses_nor_repeats_a_write(
    cosmos: CosmosServer, storage: AzureCosmosStorage, container: str
) -> None:
    storage.save(make.a_heuristic(id="h", success_count=1))
    for what in ("create", "replace"):
        cosmos.fail(503, 4, when=lambda r, what=what: writing(container)(r) and r.what == what, executes=True)
    counted = storage.increment(Heuristic, "h", {"success_count": 1}, SHOP)
    assert counted is not None
    cosmos.failures.clear()
    assert storage.require(Heuristic, "h", SHOP).success_count == counted.success_count == 2
    assert [row.version_number for row in storage.history(Heuristic, "h", SHOP)] == [1, 2]


def test_an_acknowledged_write_is_seen_before_and_after_its_documents_could_be_written(
    cosmos: CosmosServer, storage: AzureCosmosStorage, opener: Open, database: str
) -> None:
    old = make.a_heuristic(id="old", embedding=[0, 1, 0, 0])
    storage.save(old)
    cosmos.fail(503, 10_000, when=lambda r: r.what in _WRITES and r.container not in ("alma-journal", None))
    with storage.transaction() as tx:
        tx.save(make.a_heuristic(id="new", embedding=[1, 0, 0, 0]), make.a_memory(id="m", content="needle"))
        tx.delete(Heuristic, ["old"], SHOP)
    assert [each["id"] for each in cosmos.documents(database, "alma-heuristics")] == ["old"]
    with opener() as another:
        for store in (storage, another):
            assert [each.id for each in store.find(Heuristic, SHOP)] == ["new"]
            assert [hit.record.id for hit in store.search_vector(Heuristic, [1, 1, 0, 0], SHOP)] == ["new"]
            assert [hit.record.id for hit in store.search_text(Memory, "needle", EVERYWHERE)] == ["m"]
            assert store.count(AuditEvent, EVERYWHERE) == 4
        cosmos.failures.clear()
        another.save(make.a_heuristic(id="third"))
    assert {each["id"] for each in cosmos.documents(database, "alma-heuristics")} == {"new", "third"}
    assert [each.id for each in storage.find(Heuristic, SHOP)] == ["new", "third"]


def test_a_writer_may_be_killed_after_any_request(
    cosmos: CosmosServer, opener: Open, storage: AzureCosmosStorage
) -> None:
    kept = 0
    killed_after = 0
    while True:
        killed_after += 1
        child = _killed_after(cosmos, killed_after, opener, kept)
        storage.save(make.a_memory(id=f"after {killed_after}"))
        whole = {record.id for record in storage.find(Heuristic, SHOP)}
        assert len(whole) % 3 == 0
        kept = len(whole)
        versions = storage.find(MemoryVersion, EVERYWHERE)
        assert {row.memory_id for row in versions if row.kind == "heuristic"} == whole
        if child == 0:
            break
    assert killed_after > 10
    assert kept >= 3
    events = storage.find(AuditEvent, EVERYWHERE)
    assert [event.chain_position for event in events] == list(range(1, len(events) + 1))


def _killed_after(cosmos: CosmosServer, requests: int, opener: Open, kept: int) -> int:
    """The status of a process that saves three records, and is killed after this many requests."""
    ready, go = multiprocessing.get_context("fork").Pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            with opener() as store:
                ready.recv()
                store.save_many([make.a_heuristic(id=f"{kept + number}") for number in range(3)])
            os._exit(0)
        finally:
            os._exit(1)
    counted = iter(range(1, 10_000))

    def executed(request: Request) -> None:
        if next(counted) == requests:
            os.kill(child, signal.SIGKILL)

    time.sleep(0.1)
    cosmos.executed = executed
    go.send("go")
    status = os.waitpid(child, 0)[1]
    cosmos.executed = lambda request: None
    assert status in (0, signal.SIGKILL)
    return status


def test_two_processes_count_exactly(storage: AzureCosmosStorage, opener: Open) -> None:
    storage.save(make.a_heuristic(id="h", success_count=0))
    children = [_counting(opener, 5) for _ in range(2)]
    with opener(lease_seconds=20.0) as patient:
        for _ in range(5):
            patient.increment(Heuristic, "h", {"success_count": 1}, SHOP)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert storage.require(Heuristic, "h", SHOP).success_count == 15


def _counting(opener: Open, times: int) -> int:
    child = os.fork()
    if child:
        return child
    signal.alarm(30)
    try:
        with opener(lease_seconds=20.0) as store:
            for _ in range(times):
                store.increment(Heuristic, "h", {"success_count": 1}, SHOP)
        os._exit(0)
    finally:
        os._exit(1)


def test_a_writer_that_was_silent_for_too_long_stores_nothing(storage: AzureCosmosStorage, opener: Open) -> None:
    def overtake() -> None:
        with opener() as another:
            another.save(make.a_heuristic(id="second"))

    with pytest.raises(ConflictError, match="nothing of this transaction was stored"), storage.transaction() as tx:
        tx.save(make.a_heuristic(id="first"))
        writer = threading.Thread(target=overtake)
        writer.start()
        writer.join(timeout=20)
    assert [record.id for record in storage.find(Heuristic, SHOP)] == ["second"]


def test_a_delayed_write_does_not_bring_a_deleted_document_back(
    cosmos: CosmosServer, storage: AzureCosmosStorage, database: str
) -> None:
    storage.save(make.a_heuristic(id="h"))
    storage.delete(Heuristic, ["h"], SHOP)
    account, charges = Account(cosmos.url, KEY, database, {}), Charges()
    log = CommitLog(account, 1.0)
    for entry in log.after(0, charges):
        log.apply(entry, charges, None)
    account.close()
    assert storage.find(Heuristic, SHOP) == []
    assert cosmos.documents(database, "alma-heuristics") == []


def test_a_snapshot_that_began_earlier_is_unchanged_by_changes_deletions_and_new_records(
    storage: AzureCosmosStorage, opener: Open
) -> None:
    storage.save_many([make.a_heuristic(id=f"h{number}", confidence=number / 10) for number in range(4)])
    with opener() as another, storage.snapshot() as tx:
        before = tx.find(Heuristic, SHOP)
        another.save(make.a_heuristic(id="h9", confidence=0.95))
        another.delete(Heuristic, ["h0", "h1"], SHOP)
        another.update(Heuristic, "h3", {"confidence": 0.0}, SHOP)
        assert tx.find(Heuristic, SHOP) == before
        assert tx.find(Heuristic, SHOP, limit=2) == before[:2]
        assert tx.count(Heuristic, SHOP) == 4
        assert tx.search_text(Heuristic, "form", SHOP, limit=9) != []
    assert [each.id for each in storage.find(Heuristic, SHOP)] == ["h2", "h3", "h9"]


def test_a_scrubbed_store_keeps_nothing_of_what_was_deleted(
    cosmos: CosmosServer, storage: AzureCosmosStorage, database: str
) -> None:
    storage.save(make.a_memory(id="m", content="the launch code"))
    storage.delete(Memory, ["m"], EVERYWHERE)
    storage.scrub()
    assert len(cosmos.documents(database, "alma-journal")) == 2
    assert [each.content for each in storage.find(Memory, EVERYWHERE)] == []
    storage.save(make.a_memory(id="another"))
    assert storage.count(Memory, EVERYWHERE) == 1


def test_a_document_that_the_service_would_refuse_is_refused_before_the_commit(storage: AzureCosmosStorage) -> None:
    with pytest.raises(StorageError, match=r"[\d,]+ bytes.*at most 2,000,000.*nothing of this transaction"):
        storage.save_many([make.a_memory(id="short"), make.a_memory(id="long", content="長い" * 400_000)])
    assert storage.count(Memory, EVERYWHERE) == 0


def test_a_large_transaction_is_committed_in_parts_and_read_from_them(
    storage: AzureCosmosStorage, opener: Open
) -> None:
    memories = [make.a_memory(id=f"m{number}", content=os.urandom(300_000).hex()) for number in range(6)]
    with opener() as another, another.snapshot() as tx:
        assert tx.count(Memory, EVERYWHERE) == 0
        storage.save_many(memories)
        assert tx.count(Memory, EVERYWHERE) == 0
    assert {each.id for each in storage.find(Memory, EVERYWHERE)} == {each.id for each in memories}


@pytest.mark.parametrize(
    ("endpoint", "key", "said"),
    [
        (None, "d3Jvbmc=", r"refuses the key \(401\): check azure.key"),
        (None, "not base64", "azure.endpoint or azure.key is not valid"),
        ("http://127.0.0.1:1/", KEY, "does not answer at http://127.0.0.1:1/"),
        ("", KEY, "azure.endpoint is missing"),
        (None, "", "azure.key is missing"),
    ],
)
def test_an_account_that_cannot_be_opened_is_one_sentence(
    cosmos: CosmosServer, endpoint: str | None, key: str, said: str
) -> None:
    where = cosmos.url if endpoint is None else endpoint
    with pytest.raises((StorageError, ConfigurationError), match=said) as caught:
        AzureCosmosStorage(where, key, client_options={"retry_total": 1, "retry_connect": 0})
    assert "\n" not in str(caught.value)


def test_a_database_that_is_not_to_be_made_must_exist(cosmos: CosmosServer, database: str) -> None:
    with pytest.raises(StorageError, match=r"'nowhere'.*does not exist.*create_if_not_exists=True"):
        AzureCosmosStorage(cosmos.url, KEY, "nowhere", create_if_not_exists=False)
    del cosmos.databases[database]["alma-outcomes"]
    with pytest.raises(ConfigurationError, match=r"lacks 1 containers \(alma-outcomes"):
        AzureCosmosStorage(cosmos.url, KEY, database, create_if_not_exists=False)


def test_without_its_package_the_store_names_the_extra() -> None:
    script = (
        "import sys\nsys.modules['azure.cosmos'] = None\nfrom alma import open_storage\n"
        "try:\n    open_storage('azure://a.documents.azure.com/x')\nexcept Exception as exc:\n    print(exc)"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "azure-cosmos is not installed: run  pip install 'alma-agent-memory[azure]'\n"
