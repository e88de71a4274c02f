"""Events about changes of memories: callbacks in this process, and signed webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.events.delivery import WebhookConfig as WebhookConfig
    from alma.events.delivery import WebhookStats as WebhookStats
    from alma.events.delivery import sign as sign
    from alma.events.delivery import verify_signature as verify_signature
    from alma.events.emitter import EventEmitter as EventEmitter
    from alma.events.emitter import MemoryEvent as MemoryEvent
    from alma.events.emitter import MemoryEventType as MemoryEventType
    from alma.events.emitter import get_emitter as get_emitter
    from alma.events.webhooks import WebhookManager as WebhookManager

_HOME_OF = {
    "EventEmitter": "alma.events.emitter",
    "get_emitter": "alma.events.emitter",
    "MemoryEvent": "alma.events.emitter",
    "MemoryEventType": "alma.events.emitter",
    "sign": "alma.events.delivery",
    "verify_signature": "alma.events.delivery",
    "WebhookConfig": "alma.events.delivery",
    "WebhookManager": "alma.events.webhooks",
    "WebhookStats": "alma.events.delivery",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
