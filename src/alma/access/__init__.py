"""Access over the network: the keys that programs identify themselves with."""

from alma.access.keys import ApiKeys

__all__ = ["ApiKeys"]
