"""Maintenance of a store: expiry, decay, cleanup, retention and cold storage; names are loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.maintenance.cold_storage import ColdSession as ColdSession
    from alma.maintenance.cold_storage import ColdStorage as ColdStorage
    from alma.maintenance.policy import MaintenancePolicy as MaintenancePolicy
    from alma.maintenance.tasks import Maintenance as Maintenance
    from alma.maintenance.tasks import Task as Task
    from alma.maintenance.tasks import TaskResult as TaskResult

_HOME_OF = {
    "ColdSession": "alma.maintenance.cold_storage",
    "ColdStorage": "alma.maintenance.cold_storage",
    "Maintenance": "alma.maintenance.tasks",
    "MaintenancePolicy": "alma.maintenance.policy",
    "Task": "alma.maintenance.tasks",
    "TaskResult": "alma.maintenance.tasks",
}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
