"""What a webhook's receiver gets, and what happens when it does not answer as it should."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import format_datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alma import ALMA
from alma.bootstrap import open_storage
from alma.clock import now
from alma.errors import ALMAError, ConfigurationError, ValidationError
from alma.events import (
    EventEmitter,
    MemoryEvent,
    MemoryEventType,
    WebhookConfig,
    WebhookManager,
    WebhookStats,
    delivery,
    sign,
    verify_signature,
)
from alma.model.governance import Attribution
from alma.model.learning import Heuristic
from alma.operations import operation_named
from alma.operations.access import Caller
from alma.storage.base import StorageBackend
from alma.testing import builders as make
from tests.extensions.conftest import on_each_database
from tests.support.postgres import wait_until
from tests.support.webhook_server import Answer, Delivery, WebhookServer

SECRET = "a secret both sides know"
Manage = Callable[..., WebhookManager]


@pytest.fixture
def server() -> Iterator[WebhookServer]:
    with WebhookServer() as running:
        yield running


@pytest.fixture
def emitter() -> Iterator[EventEmitter]:
    with EventEmitter() as made:
        yield made


@pytest.fixture
def webhook(server: WebhookServer, emitter: EventEmitter) -> Iterator[Manage]:
    """Makes a manager that sends to the server."""
    made: list[WebhookManager] = []

    def manage(queue_size: int = 1_000, **options: Any) -> WebhookManager:
        manager = WebhookManager(emitter, queue_size=queue_size)
        manager.add_webhook(WebhookConfig(**{"url": server.url, "backoff_seconds": 0.01, **options}))
        made.append(manager)
        return manager

    yield manage
    server.released.set()
    for manager in made:
        manager.close()


def an_event(memory_id: str = "h1", **values: Any) -> MemoryEvent:
    return MemoryEvent(**{"event_type": "created", "memory_type": "heuristic", "memory_id": memory_id, **values})


def is_ours(delivery: Delivery, secret: str = SECRET) -> bool:
    headers = delivery.headers
    return verify_signature(secret, delivery.body, headers.get("x-alma-signature"), headers.get("x-alma-timestamp"))


# ---------------------------------------------------------------------- what is sent


@on_each_database
def test_a_commit_reaches_the_receiver_signed(
    store: StorageBackend, emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    emitter.watch(store)
    manager = webhook(secret=SECRET)
    store.save(make.a_heuristic(id="h1"))
    assert manager.drain()
    (delivery,) = server.received
    body = json.loads(delivery.body)
    assert (body["event_type"], body["memory_type"], body["memory_id"]) == ("created", "heuristic", "h1")
    assert delivery.headers["x-alma-event"] == "created"
    assert delivery.headers["x-alma-delivery"] == body["id"]
    assert delivery.headers["content-type"] == "application/json"
    assert is_ours(delivery)
    assert not is_ours(delivery, "another secret")


def test_a_service_sends_changes_to_the_webhooks_of_its_configuration(
    server: WebhookServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", SECRET)
    hook = {"url": server.url, "secret": "${OUR_SECRET}", "name": "mirror", "memory_types": ["user_preference"]}
    place = tmp_path / "alma.db"
    with ALMA.quickstart(place, "shop", embedding_provider="mock", webhooks=[hook]) as alma:
        alma.add_user_preference("ana", "style", "short")
        assert server.received == []
        alma.start_background()
        first = alma.add_user_preference("ana", "units", "metric")
        wait_until(lambda: len(server.received) == 1)
        assert alma.maintenance.run(["outbox"])[0].count == 0
    with ALMA.quickstart(place, "shop", embedding_provider="mock") as alma:
        second = alma.add_user_preference("ana", "tone", "formal")
    with ALMA.quickstart(place, "shop", embedding_provider="mock", webhooks=[hook]) as alma:
        alma.start_background()
        wait_until(lambda: len(server.received) == 2)
    assert [json.loads(each.body)["memory_id"] for each in server.received] == [first.id, second.id]
    assert all(map(is_ours, server.received))


def test_a_webhook_that_is_added_while_a_service_runs_receives_changes_until_it_is_removed(
    server: WebhookServer, tmp_path: Path
) -> None:
    def do(operation: str, **given: Any) -> Any:
        return operation_named(operation).perform(Caller(alma), given)

    hook = {"url": server.url, "name": "mirror", "memory_types": ["user_preference"]}
    place = tmp_path / "alma.db"
    with ALMA.quickstart(place, "shop", embedding_provider="mock", webhooks=[hook]) as alma:
        alma.start_background()
        secret = do("add_webhook", name="deploys", url=server.url, memory_types=["memory"], events=["created"]).secret
        for name, url, said in (
            ("deploys", server.url, "must be unique"),
            ("mirror", server.url, "must be unique"),
            ("other", "http://169.254.169.254/", "link-local"),
        ):
            with pytest.raises(ALMAError, match=said):
                do("add_webhook", name=name, url=url)
        first = alma.remember("The cart was rewritten.")
    with ALMA.quickstart(place, "shop", embedding_provider="mock", webhooks=[hook]) as alma:
        alma.start_background()
        wait_until(lambda: len(server.received) == 1)
        listed = {each.name: (each.is_configured, each.host) for each in do("list_webhooks").webhooks}
        assert listed == {"deploys": (False, "127.0.0.1"), "mirror": (True, None)}
        with pytest.raises(ALMAError, match="take it out there"):
            do("remove_webhook", name="mirror")
        assert do("remove_webhook", name="deploys").removed
        assert not do("remove_webhook", name="deploys").removed
        alma.remember("The search was rewritten.")
        assert alma.storage.pending("webhook.deploys") == []
    assert [json.loads(each.body)["memory_id"] for each in server.received] == [first.id]
    assert is_ours(server.received[0], secret)


def test_a_description_of_a_webhook_shows_nothing_that_lets_others_send() -> None:
    described = repr(WebhookConfig("https://hooks.example/services/T01/hunter2", secret="s3cr3t" * 4))
    assert "hunter2" not in described
    assert "s3cr3t" not in described


def test_only_what_was_asked_for_is_sent(emitter: EventEmitter, server: WebhookServer, webhook: Manage) -> None:
    manager = webhook(events=["deleted"], memory_types=["heuristic"], project_id="shop")
    emitter.emit(an_event("1", event_type="deleted", project_id="shop"))
    emitter.emit(an_event("2", event_type="created", project_id="shop"))
    emitter.emit(an_event("3", event_type="deleted", project_id="bank"))
    emitter.emit(an_event("4", event_type="deleted", project_id="shop", memory_type="outcome"))
    assert manager.drain()
    assert [json.loads(delivery.body)["memory_id"] for delivery in server.received] == ["1"]


def test_without_a_secret_there_is_no_signature_and_own_headers_are_sent(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    manager = webhook(headers={"Authorization": "Bearer abc"})
    emitter.emit(an_event())
    assert manager.drain()
    (delivery,) = server.received
    assert "x-alma-signature" not in delivery.headers
    assert delivery.headers["authorization"] == "Bearer abc"


def test_events_arrive_in_order_and_closing_sends_all_that_wait(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    manager = webhook()
    for number in range(20):
        emitter.emit(an_event(str(number)))
    manager.close()
    assert [json.loads(delivery.body)["memory_id"] for delivery in server.received] == [str(n) for n in range(20)]
    emitter.emit(an_event("late"))
    assert len(server.received) == 20


# ---------------------------------------------------------------------- when it fails


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_a_failure_that_may_pass_is_tried_again_with_the_same_delivery_id(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage, status: int
) -> None:
    server.script.extend([Answer(status), Answer(status)])
    manager = webhook(secret=SECRET)
    emitter.emit(an_event())
    assert manager.drain()
    assert len({delivery.headers["x-alma-delivery"] for delivery in server.received}) == 1
    assert [is_ours(delivery) for delivery in server.received] == [True] * 3
    assert manager.get_stats() == WebhookStats(delivered=1)


@pytest.mark.parametrize("answer", [Answer(400), Answer(404), Answer(302, {"Location": "http://127.0.0.1:9/"})])
def test_a_refusal_is_not_tried_again_and_no_redirect_is_followed(
    emitter: EventEmitter,
    server: WebhookServer,
    webhook: Manage,
    caplog: pytest.LogCaptureFixture,
    answer: Answer,
) -> None:
    server.script.append(answer)
    manager = webhook()
    emitter.emit(an_event())
    assert manager.drain()
    assert len(server.received) == 1
    assert manager.get_stats() == WebhookStats(failed=1)
    assert "an event could not be delivered" in caplog.text


def test_after_the_last_try_the_event_is_given_up_and_the_next_one_sent(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    server.script.extend([Answer(500)] * 3)
    manager = webhook(retry_count=2)
    emitter.emit(an_event("1"))
    emitter.emit(an_event("2"))
    assert manager.drain()
    assert [json.loads(delivery.body)["memory_id"] for delivery in server.received] == ["1", "1", "1", "2"]
    assert manager.get_stats() == WebhookStats(delivered=1, failed=1)


def test_the_wait_the_receiver_asks_for_is_kept(emitter: EventEmitter, server: WebhookServer, webhook: Manage) -> None:
    server.script.append(Answer(429, {"Retry-After": "0.2"}))
    manager = webhook(backoff_seconds=0)
    started = time.monotonic()
    emitter.emit(an_event())
    assert manager.drain()
    assert time.monotonic() - started >= 0.2
    assert manager.get_stats().delivered == 1


def test_a_receiver_that_does_not_answer_in_time_is_tried_again(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    server.script.append(Answer(200, hang=True))
    manager = webhook(timeout_seconds=0.2)
    emitter.emit(an_event())
    assert manager.drain()
    assert manager.get_stats() == WebhookStats(delivered=1)


def test_a_date_to_wait_for_is_kept_as_well(emitter: EventEmitter, server: WebhookServer, webhook: Manage) -> None:
    server.script.append(Answer(503, {"Retry-After": format_datetime(now() + timedelta(seconds=2), usegmt=True)}))
    manager = webhook(backoff_seconds=0)
    started = time.monotonic()
    emitter.emit(an_event())
    assert manager.drain()
    # Dates have no fractions of a second.
    assert time.monotonic() - started >= 0.9
    assert manager.get_stats().delivered == 1


def test_the_time_out_holds_for_an_answer_that_comes_a_byte_at_a_time(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    server.script.append(Answer(200, drip=True))
    manager = webhook(timeout_seconds=0.3)
    emitter.emit(an_event())
    assert manager.drain(5)
    assert manager.get_stats() == WebhookStats(delivered=1)


def test_an_address_may_have_spaces_and_letters_of_any_script(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    manager = webhook(url=f"{server.url}/grün und gut%20/?q=ü&a=1")
    emitter.emit(an_event())
    assert manager.drain()
    (delivery,) = server.received
    assert delivery.path == "/hook/gr%C3%BCn%20und%20gut%20/?q=%C3%BC&a=1"


def test_an_event_is_sent_whatever_its_payload_holds(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    manager = webhook()
    emitter.emit(an_event(payload={"at": now(), "where": Path("/tmp")}))
    assert manager.drain()
    (delivery,) = server.received
    assert json.loads(delivery.body)["payload"]["where"] == "/tmp"


def test_what_was_received_is_an_event_again(emitter: EventEmitter, server: WebhookServer, webhook: Manage) -> None:
    manager = webhook()
    sent = an_event(project_id="shop", payload={"n": 1})
    emitter.emit(sent)
    assert manager.drain()
    (delivery,) = server.received
    assert MemoryEvent.from_dict(json.loads(delivery.body)) == sent


@pytest.mark.parametrize("wrong", [{"event_type": None}, {"timestamp": "soon"}, {"event_type": "vanished"}])
def test_an_invalid_event_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=f"event.{next(iter(wrong))}"):
        MemoryEvent.from_dict({**an_event().to_dict(), **wrong})


def test_a_dead_receiver_does_not_hold_up_another_nor_the_writer(emitter: EventEmitter, server: WebhookServer) -> None:
    with WebhookManager(emitter) as manager:
        manager.add_webhook(WebhookConfig("http://127.0.0.1:9/nobody", backoff_seconds=60))
        manager.add_webhook(WebhookConfig(server.url))
        emitter.emit(an_event())
        assert not manager.drain(0.5)
        assert len(server.received) == 1
        manager.close(0.1)


def test_closing_ends_in_time_whatever_waits(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage, caplog: pytest.LogCaptureFixture
) -> None:
    server.script.append(Answer(500))
    manager = webhook(backoff_seconds=60)
    emitter.emit(an_event())
    emitter.emit(an_event())
    started = time.monotonic()
    manager.close(0.2)
    assert time.monotonic() - started < 5
    assert "events were not delivered before the end" in caplog.text


def test_events_beyond_the_queue_are_dropped_and_counted(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage
) -> None:
    server.script.append(Answer(200, hang=True))
    manager = webhook(queue_size=1)
    emitter.emit(an_event())
    deadline = time.monotonic() + 10
    while not server.received and time.monotonic() < deadline:
        server.released.wait(0.01)
    for _ in range(3):
        emitter.emit(an_event())
    server.released.set()
    assert manager.drain()
    assert manager.get_stats().dropped == 2


def test_a_removed_webhook_gets_nothing_more(emitter: EventEmitter, server: WebhookServer, webhook: Manage) -> None:
    manager = webhook()
    emitter.emit(an_event("1"))
    assert manager.remove_webhook(server.url)
    assert not manager.remove_webhook(server.url)
    emitter.emit(an_event("2"))
    assert [json.loads(delivery.body)["memory_id"] for delivery in server.received] == ["1"]
    assert manager.webhooks == ()


# ---------------------------------------------------------------------- kept in a store


def sent(server: WebhookServer) -> list[tuple[str, str, str]]:
    bodies = [json.loads(delivery.body) for delivery in server.received]
    return [(body["event_type"], body["memory_type"], body["memory_id"]) for body in bodies]


@on_each_database
def test_with_storage_what_was_not_sent_is_sent_by_the_next_process(
    store: StorageBackend, place: str, server: WebhookServer
) -> None:
    config = WebhookConfig(server.url, secret=SECRET, retry_count=0, backoff_seconds=0)
    server.script.append(Answer(503))
    with WebhookManager(storage=store) as manager:
        manager.add_webhook(config)
        store.save(make.a_heuristic(id="h1"), Attribution(agent="helena", reason="learned"))
        manager.close(0.5)
    store.save(make.a_heuristic(id="h2"))
    store.delete_heuristic("h2")
    server.script.clear()
    server.received.clear()
    with open_storage(place) as another, WebhookManager(storage=another) as manager:
        manager.add_webhook(config)
        assert manager.drain()
    assert sorted(sent(server)) == [("created", "heuristic", "h1"), ("deleted", "heuristic", "h2")]
    assert all(is_ours(delivery) for delivery in server.received)
    body = next(json.loads(each.body) for each in server.received if b"h1" in each.body)
    assert (body["project_id"], body["agent"], body["author"], body["reason"]) == (
        "shop",
        "helena",
        "helena",
        "learned",
    )


def test_with_storage_what_another_object_writes_is_sent_too(
    store: StorageBackend, place: str, server: WebhookServer
) -> None:
    with open_storage(place) as another, WebhookManager(storage=store, poll_seconds=0.05) as manager:
        manager.add_webhook(WebhookConfig(server.url))
        assert manager.drain()
        another.save(make.a_heuristic(id="h1"))
        another.update_heuristic("h1", {"confidence": 0.5})
        deadline = time.monotonic() + 10
        while not server.received and time.monotonic() < deadline:
            server.released.wait(0.01)
        assert manager.drain()
    assert sent(server)[-1] == ("updated", "heuristic", "h1")


def test_with_storage_the_same_change_has_the_same_delivery_id_in_each_process(
    store: StorageBackend, place: str, server: WebhookServer
) -> None:
    server.script.append(Answer(500))
    config = WebhookConfig(server.url, retry_count=0)
    with WebhookManager(storage=store) as manager:
        manager.add_webhook(config)
        store.save(make.a_heuristic(id="h1"))
        manager.close(0.3)
    with open_storage(place) as another, WebhookManager(storage=another) as manager:
        manager.add_webhook(config)
        assert manager.drain()
    assert len(server.received) >= 2
    assert len({delivery.headers["x-alma-delivery"] for delivery in server.received}) == 1


@on_each_database
def test_with_storage_what_a_killed_process_was_sending_is_not_told_as_sent(
    store: StorageBackend, server: WebhookServer
) -> None:
    store.register_projection("webhook.billing", [Heuristic])
    store.save(make.a_heuristic(id="h1"))
    (mark,) = store.claim("webhook.billing", 1, lease_seconds=3600)
    with WebhookManager(storage=store) as manager:
        manager.add_webhook(WebhookConfig(server.url, name="billing"))
        assert not manager.drain(0.2)
        store.fail(mark, "given back")
        assert manager.drain()
    assert sent(server) == [("created", "heuristic", "h1")]


def test_with_storage_what_a_killed_process_was_sending_is_sent_when_its_lease_ends(
    store: StorageBackend, server: WebhookServer
) -> None:
    store.register_projection("webhook.billing", [Heuristic])
    store.save(make.a_heuristic(id="h1"))
    store.claim("webhook.billing", 1, lease_seconds=0.5)
    with WebhookManager(storage=store, poll_seconds=3600) as manager:
        manager.add_webhook(WebhookConfig(server.url, name="billing"))
        assert manager.drain()
    assert sent(server) == [("created", "heuristic", "h1")]


def test_with_storage_what_is_refused_is_parked_with_its_error(store: StorageBackend, server: WebhookServer) -> None:
    server.script.append(Answer(400))
    with WebhookManager(storage=store) as manager:
        manager.add_webhook(WebhookConfig(server.url, name="billing"))
        store.save(make.a_heuristic(id="h1"))
        store.save(make.a_heuristic(id="h2"))
        assert manager.drain()
        assert manager.get_stats() == WebhookStats(delivered=1, failed=1)
    (mark,) = store.pending("webhook.billing")
    assert (mark.record_id, mark.parked, mark.error) == ("h1", True, "answered 400")


def test_with_storage_only_what_was_asked_for_is_sent(store: StorageBackend, server: WebhookServer) -> None:
    with WebhookManager(storage=store) as manager:
        manager.add_webhook(WebhookConfig(server.url, events=["deleted"], memory_types=["heuristic"]))
        store.save(make.a_heuristic(id="h1"))
        store.save(make.an_outcome())
        assert manager.drain()
        store.delete_heuristic("h1")
        assert manager.drain()
    assert sent(server) == [("deleted", "heuristic", "h1")]


def test_with_storage_a_removed_webhook_leaves_nothing_behind(store: StorageBackend, server: WebhookServer) -> None:
    with WebhookManager(storage=store) as manager:
        manager.add_webhook(WebhookConfig(server.url, name="billing"))
        with pytest.raises(ConfigurationError, match="has a webhook already"):
            manager.add_webhook(WebhookConfig(server.url, name="billing"))
        assert manager.remove_webhook(server.url)
        store.save(make.a_heuristic())
    assert store.pending("webhook.billing") == []


def test_with_storage_a_store_that_was_closed_is_logged(
    tmp_path: Path, server: WebhookServer, caplog: pytest.LogCaptureFixture
) -> None:
    store = open_storage(str(tmp_path / "closed.db"))
    manager = WebhookManager(storage=store)
    manager.add_webhook(WebhookConfig(server.url))
    assert manager.drain()
    store.close()
    manager.close(0.2)
    assert "events stay in the outbox for the next process" in caplog.text


# ---------------------------------------------------------------------- configuration


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "ftp://example.com"}, "must begin with https://"),
        ({"url": "https://"}, "name a host"),
        ({"secret": ""}, "secret must be a text that is not empty"),
        ({"timeout_seconds": 0}, "timeout_seconds must be a number of at least"),
        ({"timeout_seconds": float("nan")}, "timeout_seconds must be a number of at least"),
        ({"retry_count": -1}, "retry_count must be a number of at least 0"),
        ({"headers": {"X": "a\r\nY: b"}}, "must be one line"),
        ({"headers": {"X": "12 €"}}, "letters that HTTP can send"),
        ({"headers": {"X Y:": "a"}}, "is not a valid header name"),
        ({"url": "https://ana:secret@example.com"}, "must have no user and password"),
        ({"headers": {"x-alma-signature": "mine"}}, "is written by ALMA"),
    ],
)
def test_a_wrong_configuration_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        WebhookConfig(**{"url": "https://example.com", **options})


def test_an_unknown_event_or_kind_is_refused() -> None:
    with pytest.raises(ValidationError, match="must be one of created"):
        WebhookConfig("https://example.com", events=["vanished"])
    with pytest.raises(ValidationError, match="must be one of heuristic"):
        WebhookConfig("https://example.com", memory_types=["heuristics"])


def _standing_for(address: str) -> list[str]:
    """The IPv6 addresses that stand for an IPv4 address."""
    packed = ip_address(address).packed
    high, low = packed[:2].hex(), packed[2:].hex()
    teredo = bytes(255 - byte for byte in packed).hex()
    return [
        f"::ffff:{address}",
        *([] if address == "0.0.0.0" else [f"::{address}"]),
        f"64:ff9b::{address}",
        f"64:ff9b:1::{address}",
        f"2002:{high}:{low}::1",
        f"2001:0:4136:e378:8000:63bf:{teredo[:4]}:{teredo[4:]}",
    ]


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "169.254.169.254:80",
        "2852039166",
        "0xA9FEA9FE",
        "[fe80::1]",
        "[::ffff:169.254.169.254]",
        "[fd00:ec2::254]",
        *(
            f"[{form}]"
            for address in ("169.254.169.254", "127.0.0.1", "10.0.0.1", "192.168.1.1", "100.100.100.200", "0.0.0.0")
            for form in _standing_for(address)
        ),
        "[64:ff9b:1:a9fe:a9:fe00::]",
    ],
)
def test_where_clouds_hand_out_credentials_nothing_is_sent(host: str) -> None:
    with pytest.raises(ConfigurationError, match="link-local"):
        WebhookConfig(f"http://{host}/latest/meta-data")
    assert WebhookConfig(f"http://{host}/hook", allow_link_local=True).allow_link_local


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "10.0.0.1", "[64:ff9b::8.8.8.8]", "[2002:808:808::1]"])
def test_receivers_inside_a_network_and_public_ones_behind_nat64_are_allowed(host: str) -> None:
    assert WebhookConfig(f"http://{host}/hook")


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_a_proxy_that_the_environment_names_gets_nothing(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with WebhookServer() as proxy:
        monkeypatch.setenv(name, proxy.url.removesuffix("/hook"))
        for other in ("no_proxy", "NO_PROXY"):
            monkeypatch.delenv(other, raising=False)
        manager = webhook(url=server.url)
        emitter.emit(MemoryEvent(MemoryEventType.CREATED, "heuristic", "h1"))
        manager.drain()
        assert (len(server.received), proxy.received) == (1, [])


def test_a_name_that_leads_to_a_refused_address_gets_nothing(
    emitter: EventEmitter, server: WebhookServer, webhook: Manage, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = webhook(url=server.url.replace("127.0.0.1", "localhost"))
    monkeypatch.setattr(delivery, "_ALSO_METADATA", {ip_address("127.0.0.1"), ip_address("::1")})
    emitter.emit(MemoryEvent(MemoryEventType.CREATED, "heuristic", "h1"))
    manager.drain()
    assert server.received == []
    assert manager.get_stats().failed == 1


def test_the_secret_is_not_shown() -> None:
    shown = repr(WebhookConfig("https://example.com", secret=SECRET, headers={"Authorization": "Bearer of-news"}))
    assert SECRET not in shown
    assert "of-news" not in shown


def test_a_closed_manager_takes_no_webhook(emitter: EventEmitter) -> None:
    manager = WebhookManager(emitter)
    manager.close()
    with pytest.raises(ConfigurationError, match="is closed"):
        manager.add_webhook(WebhookConfig("https://example.com"))


# ---------------------------------------------------------------------- signatures


@given(body=st.binary(), secret=st.text(min_size=1).filter(str.strip), other=st.binary())
def test_a_signature_fits_its_body_and_no_other(body: bytes, secret: str, other: bytes) -> None:
    moment = int(time.time())
    signature = sign(secret, moment, body)
    assert verify_signature(secret, body, signature, str(moment))
    assert verify_signature(secret, other, signature, moment) == (other == body)
    assert not verify_signature(secret, body, signature, moment + 1)


def test_an_old_request_is_refused_and_the_window_can_be_chosen() -> None:
    old = int(time.time()) - 600
    signature = sign(SECRET, old, b"{}")
    assert not verify_signature(SECRET, b"{}", signature, old)
    assert verify_signature(SECRET, b"{}", signature, old, tolerance_seconds=3600)
    ahead = int(time.time()) + 600
    assert not verify_signature(SECRET, b"{}", sign(SECRET, ahead, b"{}"), ahead)


@pytest.mark.parametrize(
    ("signature", "moment"), [(None, "1"), ("", "1"), ("sha256=é", "1"), ("x", None), ("x", "soon")]
)
def test_an_invalid_signature_is_false(signature: str | None, moment: str | None) -> None:
    assert not verify_signature(SECRET, b"{}", signature, moment)


def test_an_empty_secret_verifies_nothing() -> None:
    moment = int(time.time())
    assert not verify_signature("", b"{}", sign("", moment, b"{}"), moment)


def test_types_of_events_are_texts() -> None:
    assert [str(each) for each in MemoryEventType] == [
        "created",
        "updated",
        "deleted",
        "archived",
        "restored",
        "consolidated",
    ]
