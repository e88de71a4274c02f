"""The domains of the harness, whose settings and agents are data (`domains.toml`)."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar

from alma.errors import ConfigurationError, shown
from alma.harness.base import Agent, MemorySchema, Setting, Tool
from alma.harness.runner import Harness
from alma.model.slice import DEFAULT_PROMPT_TOKENS

if TYPE_CHECKING:
    from alma.core import ALMA


@cache
def _described() -> dict[str, Any]:
    return tomllib.loads(files("alma.harness").joinpath("domains.toml").read_text("utf-8"))


def _setting(domain: str) -> Setting:
    described = _described()[domain]
    return Setting(
        domain, described["description"], [Tool(**tool) for tool in described["tools"]], described["constraints"]
    )


def _agents(domain: str) -> dict[str, Agent]:
    return {name: _agent(name, domain, described) for name, described in _described()[domain]["agents"].items()}


def _agent(name: str, domain: str, described: Mapping[str, Any]) -> Agent:
    schema = MemorySchema(domain, described["learnable"], described["forbidden"], described["learns"])
    return Agent(name, described["role"], described["description"], schema)


class Domain:
    """A setting and the agents that work in it."""

    name: ClassVar[str]
    setting: ClassVar[Setting]
    agents: ClassVar[Mapping[str, Agent]]

    @classmethod
    def agent(cls, agent_type: str) -> Agent:
        """The agent of this type."""
        known = cls.agents.get(agent_type.casefold()) if isinstance(agent_type, str) else None
        if known is None:
            raise ConfigurationError(
                f"{shown(agent_type)} is not an agent of {cls.name}; choose {', '.join(cls.agents)}"
            )
        return known

    @classmethod
    def create_harness(
        cls,
        agent_type: str,
        alma: ALMA,
        *,
        tools: Iterable[Tool] = (),
        constraints: Iterable[str] = (),
        agent_name: str | None = None,
        top_k: int = 5,
        max_memory_tokens: int = DEFAULT_PROMPT_TOKENS,
    ) -> Harness:
        """A harness for an agent of this domain, with additional tools and constraints; see `create_harness`."""
        given = Setting(cls.name, tools=tools, constraints=constraints)  # type: ignore[arg-type]
        setting = replace(
            cls.setting,
            tools=(*cls.setting.tools, *given.tools),
            constraints=(*cls.setting.constraints, *given.constraints),
        )
        agent = cls.agent(agent_type)
        named = agent if agent_name is None else replace(agent, name=agent_name)
        return Harness(setting, named, alma, top_k=top_k, max_memory_tokens=max_memory_tokens)


class CodingDomain(Domain):
    """Software testing: Helena tests user interfaces, Victor backends."""

    name = "coding"
    setting, agents = _setting(name), _agents(name)

    @classmethod
    def create_helena(cls, alma: ALMA) -> Harness:
        """A harness for Helena; see `create_harness`."""
        return cls.create_harness("helena", alma)

    @classmethod
    def create_victor(cls, alma: ALMA) -> Harness:
        """A harness for Victor; see `create_harness`."""
        return cls.create_harness("victor", alma)


class ResearchDomain(Domain):
    """Research: find, evaluate and combine sources."""

    name = "research"
    setting, agents = _setting(name), _agents(name)

    @classmethod
    def create_researcher(cls, alma: ALMA, focus: str = "") -> Harness:
        """A harness for the researcher; see `create_harness`."""
        return cls.create_harness("researcher", alma, constraints=[f"Focus on {focus}."] if focus else ())


class ContentDomain(Domain):
    """Writing: the copywriter attracts readers, the documenter explains."""

    name = "content"
    setting, agents = _setting(name), _agents(name)

    @classmethod
    def create_copywriter(cls, alma: ALMA) -> Harness:
        """A harness for the copywriter; see `create_harness`."""
        return cls.create_harness("copywriter", alma)

    @classmethod
    def create_documenter(cls, alma: ALMA) -> Harness:
        """A harness for the documenter; see `create_harness`."""
        return cls.create_harness("documenter", alma)


class OperationsDomain(Domain):
    """Operations: customer support."""

    name = "operations"
    setting, agents = _setting(name), _agents(name)

    @classmethod
    def create_support_agent(cls, alma: ALMA) -> Harness:
        """A harness for support; see `create_harness`."""
        return cls.create_harness("support", alma)


_DOMAINS: Mapping[str, type[Domain]] = {
    domain.name: domain for domain in (CodingDomain, ResearchDomain, ContentDomain, OperationsDomain)
}


def create_harness(
    domain: str,
    agent_type: str,
    alma: ALMA,
    *,
    tools: Iterable[Tool] = (),
    constraints: Iterable[str] = (),
    agent_name: str | None = None,
    top_k: int = 5,
    max_memory_tokens: int = DEFAULT_PROMPT_TOKENS,
) -> Harness:
    """A harness for an agent of a domain.

    coding has helena and victor, research has researcher, content has copywriter and documenter, operations has
    support. `tools` and `constraints` add to those of the domain; `agent_name` replaces the name under which the agent
    remembers.
    """
    chosen = _DOMAINS.get(domain.casefold()) if isinstance(domain, str) else None
    if chosen is None:
        raise ConfigurationError(f"{shown(domain)} is not a domain of the harness; choose {', '.join(_DOMAINS)}")
    return chosen.create_harness(
        agent_type,
        alma,
        tools=tools,
        constraints=constraints,
        agent_name=agent_name,
        top_k=top_k,
        max_memory_tokens=max_memory_tokens,
    )
