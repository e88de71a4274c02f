"""The four domains of the harness, with their settings and agents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from alma.errors import ConfigurationError, shown
from alma.harness.base import Agent, MemorySchema, Setting, Tool, ToolType
from alma.harness.runner import Harness
from alma.model.slice import DEFAULT_PROMPT_TOKENS

if TYPE_CHECKING:
    from alma.core import ALMA


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
    setting = Setting(
        name="coding",
        description="A software project whose code, tests and running system can be looked at.",
        tools=(
            Tool("browser", "Open pages, fill in forms, look at what is shown", ToolType.EXECUTE),
            Tool("api_client", "Send requests to the system's interfaces", ToolType.EXECUTE),
            Tool("database", "Look at what is stored", ToolType.READ, ("Read only.",)),
            Tool("code_search", "Find code, tests and their history", ToolType.SEARCH),
            Tool("test_runner", "Run the tests of the project", ToolType.EXECUTE),
        ),
        constraints=(
            "Report what was seen, with the steps that lead to it again.",
            "Leave data and settings as they were found.",
        ),
    )
    agents: ClassVar[Mapping[str, Agent]] = {
        "helena": Agent(
            name="helena",
            role="a tester of user interfaces",
            description="You test what people see and use: pages, forms, components and how they behave.",
            memory_schema=MemorySchema(
                domain="coding",
                learnable=("testing_strategies", "selector_patterns", "ui_component_patterns"),
                forbidden=("backend_logic", "database_queries", "database_operations"),
                description="How user interfaces are tested",
            ),
        ),
        "victor": Agent(
            name="victor",
            role="a tester of backends",
            description="You test backends: interfaces, data, errors and how they are handled.",
            memory_schema=MemorySchema(
                domain="coding",
                learnable=(
                    "api_patterns",
                    "api_testing_patterns",
                    "database_queries",
                    "database_validation",
                    "error_handling_patterns",
                ),
                forbidden=("frontend_selectors", "frontend_logic", "ui_testing"),
                description="How interfaces and data are tested",
            ),
        ),
    }


class ResearchDomain(Domain):
    """Research: find, evaluate and combine sources."""

    name = "research"
    setting = Setting(
        name="research",
        description="Questions that are answered from sources.",
        tools=(
            Tool("web_search", "Find pages and papers", ToolType.SEARCH),
            Tool("reader", "Read a source as a whole", ToolType.READ),
            Tool("data_analysis", "Compute with data", ToolType.ANALYZE),
            Tool("notes", "Write down findings with their sources", ToolType.WRITE),
        ),
        constraints=(
            "Name the source of every statement.",
            "Tell what was found from what is concluded.",
        ),
    )
    agents: ClassVar[Mapping[str, Agent]] = {
        "researcher": Agent(
            name="researcher",
            role="a researcher",
            description="You find sources, judge how far they can be trusted, and join what they say.",
            memory_schema=MemorySchema(
                domain="research",
                learnable=(
                    "search_strategies",
                    "source_evaluation",
                    "synthesis_methods",
                    "hypothesis_testing",
                    "data_analysis",
                    "citation_practice",
                    "methodology",
                ),
                forbidden=("medical_advice", "legal_advice"),
                description="How questions are answered from sources",
            ),
        ),
    }


class ContentDomain(Domain):
    """Writing: the copywriter attracts readers, the documenter explains."""

    name = "content"
    setting = Setting(
        name="content",
        description="Texts for readers, from the first idea to what is published.",
        tools=(
            Tool("style_guide", "Look up voice, terms and rules of writing", ToolType.READ),
            Tool("editor", "Write and change drafts", ToolType.WRITE),
            Tool("web_search", "Look up facts and examples", ToolType.SEARCH),
            Tool("readability_check", "Measure how hard a text is to read", ToolType.ANALYZE),
        ),
        constraints=(
            "Say nothing that is not known to be true.",
            "Write for the reader who was named.",
        ),
    )
    agents: ClassVar[Mapping[str, Agent]] = {
        "copywriter": Agent(
            name="copywriter",
            role="a copywriter",
            description="You write what makes readers care: headlines, pages, mails, posts.",
            memory_schema=MemorySchema(
                domain="content",
                learnable=(
                    "headline_patterns",
                    "tone_and_voice",
                    "structure",
                    "audience_engagement",
                    "search_visibility",
                ),
                forbidden=("legal_claims", "technical_specifications"),
                description="What works with readers",
            ),
        ),
        "documenter": Agent(
            name="documenter",
            role="a technical writer",
            description="You write what lets readers do something: guides, references, explanations.",
            memory_schema=MemorySchema(
                domain="content",
                learnable=("documentation_patterns", "structure", "code_examples", "editing_practice", "terminology"),
                forbidden=("marketing_claims", "legal_claims"),
                description="What helps readers to do something",
            ),
        ),
    }


class OperationsDomain(Domain):
    """Operations: customer support."""

    name = "operations"
    setting = Setting(
        name="operations",
        description="A service that people use, and those who keep it going for them.",
        tools=(
            Tool("tickets", "Read and answer requests for help", ToolType.COMMUNICATE),
            Tool("knowledge_base", "Find what is known about a problem", ToolType.SEARCH),
            Tool("logs", "Look at what the service did", ToolType.READ),
            Tool("escalation", "Hand a case to those who can solve it", ToolType.COMMUNICATE),
        ),
        constraints=(
            "Promise nothing that is not certain.",
            "Never show a customer the data of another one.",
        ),
    )
    agents: ClassVar[Mapping[str, Agent]] = {
        "support": Agent(
            name="support",
            role="a support engineer",
            description="You find out what the problem of a customer is, solve it or escalate it, and report back.",
            memory_schema=MemorySchema(
                domain="operations",
                learnable=(
                    "issue_resolution",
                    "escalation_patterns",
                    "communication_style",
                    "troubleshooting_steps",
                    "customer_sentiment",
                ),
                forbidden=("payment_details", "personal_data", "code_changes"),
                description="How problems are solved",
            ),
        ),
    }


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
    support. `tools` and `constraints` add to those of the domain; `agent_name` is the name under which the agent
    remembers, where it is another one.
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
