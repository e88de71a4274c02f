"""A typed client of the REST service: the same operations, from another process or machine."""

from alma.client.client import AsyncClient, Client
from alma.client.transport import ServiceError, ServiceUnreachable

__all__ = ["AsyncClient", "Client", "ServiceError", "ServiceUnreachable"]
