"""Domains: schemas of fields of work, and memories set up for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alma.lazy import loader

if TYPE_CHECKING:
    from alma.domains.factory import DomainMemoryFactory as DomainMemoryFactory
    from alma.domains.schema import DomainSchema as DomainSchema
    from alma.domains.schema import EntityType as EntityType
    from alma.domains.schema import RelationshipType as RelationshipType
    from alma.domains.schema import get_coding_schema as get_coding_schema
    from alma.domains.schema import get_content_creation_schema as get_content_creation_schema
    from alma.domains.schema import get_customer_support_schema as get_customer_support_schema
    from alma.domains.schema import get_general_schema as get_general_schema
    from alma.domains.schema import get_research_schema as get_research_schema
    from alma.domains.schema import get_sales_schema as get_sales_schema

_HOMES = {
    "alma.domains.factory": ("DomainMemoryFactory",),
    "alma.domains.schema": (
        "DomainSchema",
        "EntityType",
        "RelationshipType",
        "get_coding_schema",
        "get_research_schema",
        "get_sales_schema",
        "get_general_schema",
        "get_customer_support_schema",
        "get_content_creation_schema",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]

__getattr__ = loader(__name__, _HOME_OF)
