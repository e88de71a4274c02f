"""Access over the network: API keys, and the rights and limits they grant."""

from __future__ import annotations

from alma.operations.access import Caller, Grant, Right
from alma.operations.api_keys import ApiKeys

__all__ = ["ApiKeys", "Caller", "Grant", "Right"]
