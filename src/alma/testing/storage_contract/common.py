"""What the parts of the storage contract share."""

from __future__ import annotations

from datetime import UTC, datetime

from alma.model.scope import Scope

DIMS = 4
EVERYWHERE = Scope.everywhere()
SHOP = Scope(project_id="shop")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Oops(Exception):
    """Thrown by tests in the middle of a transaction."""
