"""A small typed client of the REST service: the same operations, from another process or another machine."""

from alma.client.asynchronous import AsyncClient
from alma.client.client import Client
from alma.client.errors import ServiceError, ServiceUnreachable

__all__ = ["AsyncClient", "Client", "ServiceError", "ServiceUnreachable"]
