"""API keys for access over the network."""

from alma.access.keys import ApiKeys

__all__ = ["ApiKeys"]
