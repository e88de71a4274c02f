"""Webhooks in the store: added and removed while services run, which look for them every few seconds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from alma.errors import ALMAError, UniquenessError
from alma.events.delivery import WebhookConfig
from alma.events.webhooks import WebhookManager, kinds_for
from alma.model.common import checked_name
from alma.model.governance import ANONYMOUS, Attribution, StoredWebhook
from alma.model.query import Order
from alma.model.scope import Scope
from alma.model.secret import Secret
from alma.storage.base import StorageBackend, Transaction

_EVERYWHERE = Scope.everywhere()
_log = logging.getLogger("alma.events")


class StoredWebhooks:
    """The webhooks that are kept in a store."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage

    def add(self, config: WebhookConfig, by: Attribution = ANONYMOUS) -> StoredWebhook:
        """Keep a webhook, which must have a name; changes wait for it from now on."""
        made = StoredWebhook(
            name=checked_name("webhook", "name", config.name),
            url=config.url,
            secret=None if config.secret is None else Secret(config.secret).reveal(),
            events=tuple(map(str, config.events)),
            memory_types=tuple(config.memory_types),
            only_project=config.project_id,
            created_by=by.author,
        )

        def add(tx: Transaction) -> None:
            if tx.lock(StoredWebhook, [made.name], _EVERYWHERE):
                raise UniquenessError("webhook", ("name",), (made.name,))
            tx.save(made)

        self._storage.write(add, by)
        self._storage.register_projection(config.projection, kinds_for(config))
        return made

    def remove(self, name: str, by: Attribution = ANONYMOUS) -> bool:
        """Remove a webhook, with what waits for it; returns whether it was kept here."""
        removed = self._storage.write(lambda tx: tx.delete(StoredWebhook, [name], _EVERYWHERE), by)
        self._storage.drop_projection(f"webhook.{name}")
        return bool(removed)

    def list_all(self) -> list[StoredWebhook]:
        """The webhooks by name."""
        return self._storage.find(StoredWebhook, _EVERYWHERE, order=(Order("name"),))

    def configs(self) -> list[WebhookConfig]:
        """How each of them is delivered."""
        return [config_of(each) for each in self.list_all()]


def config_of(kept: StoredWebhook) -> WebhookConfig:
    """How a kept webhook is delivered."""
    return WebhookConfig(
        kept.url,
        events=kept.events,
        secret=kept.secret,
        memory_types=kept.memory_types,
        project_id=kept.only_project,
        name=kept.name,
    )


class WebhookService:
    """Delivers changes to the webhooks of a configuration and to those in the store, in threads."""

    def __init__(
        self, storage: StorageBackend, configured: Sequence[WebhookConfig] = (), poll_seconds: float = 5.0
    ) -> None:
        self._stored = StoredWebhooks(storage)
        self._configured = configured
        self._poll_seconds = poll_seconds
        self._manager = WebhookManager(storage=storage)
        self._wake = threading.Event()
        self._is_ended = False
        self._unsubscribe: Callable[[], None] = storage.subscribe(self._noticed)
        # Before the first write: changes wait for a webhook from here on.
        self._follow()
        self._thread = threading.Thread(target=self._run, name="alma-webhooks", daemon=True)
        self._thread.start()

    def close(self, timeout_seconds: float) -> None:
        """Deliver what waits, until the timeout; the rest stays in the store."""
        self._unsubscribe()
        self._is_ended = True
        self._wake.set()
        self._thread.join(timeout_seconds)
        self._manager.close(timeout_seconds)

    def _noticed(self, changes: Sequence[object]) -> None:
        if any(getattr(each, "kind", None) == StoredWebhook.spec.kind for each in changes):
            self._wake.set()

    def _follow(self) -> None:
        self._manager.follow([*self._configured, *self._stored.configs()])

    def _run(self) -> None:
        while True:
            self._wake.wait(self._poll_seconds)
            self._wake.clear()
            if self._is_ended:
                return
            try:
                self._follow()
            except ALMAError as exc:
                _log.warning("the webhooks of the store cannot be read", extra={"error": str(exc)})
