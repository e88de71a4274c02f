"""The options of a relay."""

from __future__ import annotations

from dataclasses import dataclass, fields

from alma.errors import ValidationError


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """How much a relay takes at once, and when it tries again.

    A batch belongs to one relay for `lease_seconds`. A record that the engine refuses is parked at once, one that fails
    while the engine answers after `park_after` attempts.
    """

    batch_size: int = 200
    lease_seconds: float = 60.0
    park_after: int = 5
    poll_seconds: float = 1.0

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise ValidationError("relay", each.name, value, "must be a number above 0")
