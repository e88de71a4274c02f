"""The six domains that come with ALMA."""

from __future__ import annotations

from alma.domains.schema import DomainSchema, EntityType, RelationshipType


def get_coding_schema() -> DomainSchema:
    """Writing and testing software."""
    return DomainSchema(
        name="coding",
        description="Writing, testing and reviewing software",
        entity_types=(
            EntityType("component", "A part of the system that can be named", ("path", "language", "owner")),
            EntityType("endpoint", "An address the system answers at", ("method", "path", "auth")),
            EntityType("test", "A check that runs", ("framework", "type", "is_flaky")),
            EntityType("bug", "Something that does not work as it should", ("severity", "status", "cause")),
            EntityType("dependency", "Code of others that is used", ("version", "purpose")),
        ),
        relationship_types=(
            RelationshipType("depends_on", "component", "component"),
            RelationshipType("uses", "component", "dependency"),
            RelationshipType("serves", "component", "endpoint"),
            RelationshipType("tests", "test", "component"),
            RelationshipType("found_in", "bug", "component"),
            RelationshipType("caught_by", "bug", "test"),
        ),
        learning_categories=(
            "testing_strategies",
            "selector_patterns",
            "ui_component_patterns",
            "api_patterns",
            "api_testing_patterns",
            "database_queries",
            "database_validation",
            "error_handling_patterns",
            "debugging_strategies",
            "code_review",
            "refactoring",
            "build_and_deployment",
        ),
    )


def get_research_schema() -> DomainSchema:
    """Finding, judging and joining what is known."""
    return DomainSchema(
        name="research",
        description="Finding sources, judging them and joining what they say",
        entity_types=(
            EntityType("paper", "A published work", ("authors", "year", "venue", "url")),
            EntityType("source", "Any other place that knowledge comes from", ("type", "url", "reliability")),
            EntityType("hypothesis", "What is to be shown or refuted", ("statement", "status")),
            EntityType("finding", "What was found out", ("statement", "strength")),
            EntityType("dataset", "Data that can be looked at", ("size", "licence", "url")),
            EntityType("method", "How something is found out", ("assumptions", "limits")),
        ),
        relationship_types=(
            RelationshipType("cites", "paper", "paper"),
            RelationshipType("reports", "paper", "finding"),
            RelationshipType("states", "source", "finding"),
            RelationshipType("supports", "finding", "hypothesis"),
            RelationshipType("contradicts", "finding", "hypothesis"),
            RelationshipType("applied_to", "method", "dataset"),
        ),
        learning_categories=(
            "search_strategies",
            "source_evaluation",
            "synthesis_methods",
            "hypothesis_testing",
            "data_analysis",
            "citation_practice",
            "methodology",
        ),
        excluded_categories=("medical_advice", "legal_advice"),
    )


def get_sales_schema() -> DomainSchema:
    """From a first contact to a signed contract."""
    return DomainSchema(
        name="sales",
        description="Finding customers, understanding them and closing with them",
        entity_types=(
            EntityType("lead", "Somebody who may buy", ("stage", "value", "origin")),
            EntityType("account", "A company one deals with", ("industry", "size", "region")),
            EntityType("contact", "A person at a company", ("role", "influence")),
            EntityType("objection", "A reason not to buy", ("type", "response")),
            EntityType("competitor", "Whoever else could be bought from", ("strengths", "weaknesses")),
        ),
        relationship_types=(
            RelationshipType("works_at", "contact", "account"),
            RelationshipType("belongs_to", "lead", "account"),
            RelationshipType("raised", "lead", "objection"),
            RelationshipType("considers", "lead", "competitor"),
        ),
        learning_categories=(
            "objection_handling",
            "closing_techniques",
            "qualification_patterns",
            "outreach_patterns",
            "pricing_conversations",
            "follow_up_timing",
        ),
        excluded_categories=("contract_law", "personal_data"),
    )


def get_general_schema() -> DomainSchema:
    """Whatever fits no other domain: every category may be learned."""
    return DomainSchema(
        name="general",
        description="Work of any kind",
        entity_types=(
            EntityType("person", "Somebody", ("role",)),
            EntityType("organization", "A company, team or institution", ("type",)),
            EntityType("task", "Something to be done", ("status", "deadline")),
            EntityType("document", "Something written", ("type", "location")),
            EntityType("topic", "What things are about", ()),
        ),
        relationship_types=(
            RelationshipType("member_of", "person", "organization"),
            RelationshipType("assigned_to", "task", "person"),
            RelationshipType("wrote", "person", "document"),
            RelationshipType("about", "document", "topic"),
        ),
    )


def get_customer_support_schema() -> DomainSchema:
    """Helping those who use a product."""
    return DomainSchema(
        name="customer_support",
        description="Answering questions and solving the problems of those who use a product",
        entity_types=(
            EntityType("customer", "Somebody who uses the product", ("plan", "since", "mood")),
            EntityType("ticket", "A request for help", ("priority", "status", "channel")),
            EntityType("product", "What is used", ("version", "platform")),
            EntityType("issue", "A problem that can be named", ("cause", "workaround")),
            EntityType("article", "Help that is written down", ("url", "last_checked")),
        ),
        relationship_types=(
            RelationshipType("opened", "customer", "ticket"),
            RelationshipType("concerns", "ticket", "product"),
            RelationshipType("caused_by", "ticket", "issue"),
            RelationshipType("solved_by", "issue", "article"),
        ),
        learning_categories=(
            "issue_resolution",
            "escalation_patterns",
            "communication_style",
            "troubleshooting_steps",
            "customer_sentiment",
        ),
        excluded_categories=("payment_details", "personal_data"),
    )


def get_content_creation_schema() -> DomainSchema:
    """Writing for readers."""
    return DomainSchema(
        name="content_creation",
        description="Writing, editing and publishing for readers",
        entity_types=(
            EntityType("article", "A piece of writing", ("format", "status", "length")),
            EntityType("audience", "Whom it is for", ("knowledge", "interests")),
            EntityType("campaign", "Pieces that belong together", ("goal", "period")),
            EntityType("channel", "Where it appears", ("tone", "limits")),
            EntityType("style_guide", "Rules of writing", ("voice", "terms")),
        ),
        relationship_types=(
            RelationshipType("written_for", "article", "audience"),
            RelationshipType("part_of", "article", "campaign"),
            RelationshipType("published_on", "article", "channel"),
            RelationshipType("follows", "article", "style_guide"),
        ),
        learning_categories=(
            "headline_patterns",
            "tone_and_voice",
            "structure",
            "audience_engagement",
            "editing_practice",
            "search_visibility",
            "documentation_patterns",
        ),
        excluded_categories=("legal_claims",),
    )


PREBUILT = {
    schema.name: schema
    for schema in (
        get_coding_schema(),
        get_research_schema(),
        get_sales_schema(),
        get_general_schema(),
        get_customer_support_schema(),
        get_content_creation_schema(),
    )
}
