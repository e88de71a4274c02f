"""Two tenants who do everything there is to do, and then reach for what is the other's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from alma.operations import OPERATIONS

Json = dict[str, Any]
Call = Callable[[str, Json], Json]
"""Performs an operation and returns its result; a refusal is a result as well, under `error`."""


@dataclass
class Tenant:
    """A holder of a key: how it calls, a word in all that is its own, and one in all that its project shares.

    Without a `shared` word the two are the same: nothing of this tenant is meant for the other one.
    """

    name: str
    word: str
    call: Call
    names: Mapping[str, str] = field(default_factory=dict)
    shared: str | None = None
    ids: dict[str, str] = field(default_factory=dict)
    answers: list[tuple[str, str]] = field(default_factory=list)

    def do(self, operation: str, **arguments: Any) -> Json:
        answer = self.call(operation, arguments)
        self.answers.append((operation, json.dumps(answer, ensure_ascii=False)))
        return answer

    def note(self, name: str, answer: Json, *path: str) -> None:
        """Remember the id of something that was made."""
        found: Any = answer
        for key in path:
            found = found.get(key) if isinstance(found, dict) else None
        if isinstance(found, str):
            self.ids[name] = found

    def said(self, text: str) -> str:
        """Text of what is the tenant's own."""
        return f"{self.word} {text} {self.word}"

    def told(self, text: str) -> str:
        """Text of what belongs to the project."""
        word = self.shared or self.word
        return f"{word} {text} {word}"


def live(tenant: Tenant) -> None:
    """Use every operation once, in an order that makes sense, with the tenant's word in all that is stored."""
    do, said, told, names = tenant.do, tenant.said, tenant.told, tenant.names
    agent = names.get("agent", "helena")
    user = {"user_id": names["user"]} if "user" in names else {}
    session = do("create_session", name=said("session"), goal=said("goal"), agent=agent, **user)
    tenant.note("session_id", session, "session", "id")
    in_session = {"session_id": tenant.ids["session_id"]} if "session_id" in tenant.ids else {}
    for number in range(3):
        learned = do(
            "learn",
            agent=agent,
            task=told(f"Test the form {number}"),
            outcome="success",
            strategy_used=told("wait for the network"),
            feedback=told("good"),
        )
        tenant.note("outcome", learned, "outcome", "id")
        tenant.note("heuristic", learned, "heuristic", "id")
    for _ in range(3):
        do(
            "learn",
            agent=agent,
            task=told("Test the table"),
            outcome="failure",
            strategy_used=told("click at once"),
            error_message=told("timeout"),
        )
    do("add_preference", category="style", preference=said("dark mode"), **(user or {"user_id": "ana"}))
    tenant.note("knowledge", do("add_knowledge", agent=agent, domain="login", fact=told("JWT")), "knowledge", "id")
    do("import_skills", agent=agent, documents=_skills(told("form")))
    do(
        "learn_from_conversation",
        agent=agent,
        messages=[{"role": "user", "content": f"Always call it {tenant.word}."}],
        **user,
    )
    for number, about in enumerate(("row locks in PostgreSQL", "the deploy of the shop")):
        made = do(
            "create_memory",
            content=said(f"We decided about {about}"),
            title=said(about),
            memory_type="decision",
            tags=[tenant.word.lower()],
            agent=agent,
            context_json={"files": [f"{tenant.word}.py"]},
            **user,
        )
        tenant.note(("memory_id", "other_id")[number], made, "memory", "id")
    do("create_memory", content=said("a secret"), is_private=True, agent=agent, **user, **in_session)
    memory = tenant.ids.get("memory_id", "none")
    do("import_lines", lines=[{"content": said("imported"), "agent": agent, **user}])
    do("update_memory", memory_id=memory, summary=said("locks"), reason=said("shorter"), **user)
    do("relate_memories", from_id=memory, to_id=tenant.ids.get("other_id", "none"), relation="builds_on")
    do("hold_memories", memory_ids=[memory], **(in_session or {"session_id": "none"}))
    do("save_agent_state", agent=agent, state={"at": said("step")}, **in_session)
    do("create_handoff", agent=agent, last_action=said("wrote"), **(in_session or {"session_id": "none"}))
    do("initialize_project", name=said("project")[:100], **user)
    do("update_user", profile={"about": said("me")}, **user)
    item = do("create_work_item", title=told("export"), agent=agent)
    tenant.note("item_id", item, "item", "id")
    firm = f"{tenant.shared or tenant.word} Corporation"
    do("add_to_graph", text=f"{firm} uses PostgreSQL. Ana works at {firm}.")
    do("mine_patterns")


def read(tenant: Tenant, ids: Mapping[str, str] | None = None, like: str | None = None) -> None:
    """Read and change whatever can be named: with the tenant's own ids, or with another's."""
    do, names, ids = tenant.do, tenant.names, tenant.ids if ids is None else ids
    agent, word = names.get("agent", "helena"), like or tenant.word
    user = {"user_id": names["user"]} if "user" in names else {}
    memory, other = ids.get("memory_id", "none"), ids.get("other_id", "none")
    session = ids.get("session_id", "none")
    heuristic = ids.get("heuristic", "none")
    asks: list[tuple[str, Json]] = [
        ("retrieve", {"task": f"{word} Test the form", "agent": agent, "explain": True, "why_not": memory, **user}),
        ("retrieve", {"task": f"{word} Test the form", "agent": agent, "session_id": session}),
        ("recommend", {"task": f"{word} Test the form", "agent": agent}),
        ("assess_strategies", {"strategies": ["wait"], "context": f"{word} form", "agent": agent}),
        ("not_the_same", {"heuristic_id": heuristic, "strategy": "wait", "agent": agent}),
        ("list_preferences", user),
        *(("list_learned", {"kind": kind}) for kind in ("heuristic", "outcome", "domain_knowledge", "anti_pattern")),
        ("get_learned", {"kind": "heuristic", "id": heuristic}),
        ("forget", {"older_than_days": 0, "below_confidence": 1.0, "dry_run": True}),
        ("list_archived", {}),
        ("restore", {"ids": [heuristic, memory]}),
        ("consolidate", {"dry_run": True}),
        ("stats", {}),
        ("memory_health", {}),
        ("health", {}),
        ("get_memory", {"memory_id": memory}),
        ("list_memories", {"ids": [memory, other]}),
        ("list_memories", {"limit": 100}),
        ("list_memories", {"where": {"tags": [word.lower()]}}),
        *(
            ("search_memories", {"query": f"{word} decided locks", "mode": mode, "why_not": memory})
            for mode in ("hybrid", "semantic", "keyword")
        ),
        ("search_memories", {"query": f"{word} secret", "session_id": session}),
        ("bulk_delete", {"where": {"types": ["decision"]}, "dry_run": True}),
        ("summarize", {}),
        ("summarize", {"session_id": session}),
        ("get_context", {"activity": f"{word} locks", "files": [f"{word}.py"], "session_id": session}),
        ("get_context", {"activity": f"{word} locks", "files": [f"{word}.py"]}),
        ("promote_memories", {"memory_ids": [memory]}),
        ("get_memory_analytics", {}),
        ("process_memory_decay", {"dry_run": True, "min_strength": 1.0}),
        ("reindex_memories", {}),
        ("get_session", {"session_id": session}),
        ("list_sessions", {"archived": None}),
        ("switch_session", {"session_id": session}),
        ("working_set", {"session_id": session}),
        ("latest_handoff", {"agent": agent}),
        ("load_agent_state", {"agent": agent, "session_id": session}),
        ("load_agent_state", {"agent": agent}),
        ("list_projects", user),
        ("get_project_stats", {}),
        ("get_user", user),
        ("list_settings", user),
        ("list_work_items", {}),
        ("next_work_item", {}),
        ("progress_summary", {}),
        ("related_memories", {"memory_id": memory}),
        ("find_paths", {"from_id": memory, "to_id": other}),
        ("detect_relations", {"memory_id": memory}),
        ("memory_relations", {"memory_id": memory}),
        ("query_graph", {"names": [f"{word} Corporation"], "max_hops": 2}),
        ("query_graph", {}),
        ("find_similar_patterns", {"pattern": f"{word} decided"}),
        ("get_cross_project_insights", user),
        ("suggest_context_gaps", {"activity": f"{word} locks"}),
        ("list_versions", {"id": memory}),
        ("list_versions", {"id": heuristic, "kind": "heuristic"}),
        ("compare_versions", {"id": memory, "first": 1, "second": 2}),
        ("search_as_of", {"query": f"{word} locks"}),
        ("list_audit", {"limit": 100}),
        ("whoami", {}),
        ("list_facets", {}),
        *(("browse_memories", {"kind": kind}) for kind in _KINDS),
        *(("browse_memories", {"kind": kind, "words": f"{word} decided form locks"}) for kind in _KINDS),
        *(("browse_memories", {"kind": "memory", "state": state}) for state in ("deleted", "archived", "forgotten")),
        ("read_record", {"kind": "memory", "id": memory}),
        ("read_record", {"kind": "heuristic", "id": heuristic}),
        ("count_over_time", {**_ALWAYS, "buckets": 4}),
        ("timeline", {"limit": 100}),
        ("changes_between", {**_ALWAYS, "limit": 100}),
        ("lesson_history", {"heuristic_id": heuristic}),
        ("learning_curve", {**_ALWAYS, "buckets": 4}),
        ("list_contradictions", {}),
        ("export_skills", {"least": "provisional"}),
        ("diff_skills", {"documents": _skills("a form"), "agent": agent, "least": "provisional"}),
        ("benefit_report", {"signals": True}),
        ("memory_usage", {"kind": "memory", "id": memory}),
        ("memory_usage", {"kind": "heuristic", "id": heuristic}),
        ("review_inbox", {"below_confidence": 1.0, "min_similarity": 0.0}),
        ("neighbourhood", {"kind": "memory", "id": memory}),
        ("neighbourhood", {"kind": "heuristic", "id": heuristic}),
        ("find_nodes", {"words": f"{word} decided form Corporation"}),
        ("find_connection", {"from_kind": "memory", "from_id": memory, "to_kind": "memory", "to_id": other}),
        ("retrieve", {"task": f"{word} Test the form", "agent": agent, "as_of": "2100-01-01T00:00:00Z"}),
        ("list_keys", {}),
        ("list_backups", {}),
        ("list_webhooks", {}),
        ("verify_audit", {}),
        ("sync_status", {}),
        ("sync_verify", {}),
        ("maintenance_status", {}),
        ("list_cold_sessions", {}),
    ]
    for operation, arguments in asks:
        do(operation, **arguments)


def damage(tenant: Tenant, ids: Mapping[str, str]) -> None:
    """Try to change what these ids name."""
    do, agent = tenant.do, tenant.names.get("agent", "helena")
    memory, other = ids.get("memory_id", "none"), ids.get("other_id", "none")
    session, item = ids.get("session_id", "none"), ids.get("item_id", "none")
    do("update_memory", memory_id=memory, title="taken over")
    do("mark_helpful", memory_id=memory)
    do("demote_memory", memory_id=memory)
    do("relate_memories", from_id=memory, to_id=other, relation="contradicts")
    do("unrelate_memories", from_id=memory, to_id=other, relation="builds_on")
    do("distinguish_memories", memory_id=memory, other_id=other)
    do("correct", id=memory, correction="taken over")
    for key in ("memory_id", "other_id", "heuristic", "outcome", "knowledge"):
        do("forget_one", id=ids.get(key, "none"))
    do("compare_memories", kind="memory")
    do("hold_memories", session_id=session, memory_ids=[memory])
    do("release_memories", session_id=session, memory_ids=[memory])
    do("save_agent_state", agent=agent, session_id=session, state={"at": "taken over"})
    do("clear_agent_state", agent=agent, session_id=session)
    do("create_handoff", agent=agent, session_id=session, last_action="taken over")
    do("create_memory", content="put into a session of another", session_id=session)
    do("end_session", session_id=session, summary="taken over")
    do("update_work_item", item_id=item, status="failed")
    do("pin_records", kind="memory", ids=[memory])
    do("pin_records", kind="heuristic", ids=[ids.get("heuristic", "none")])
    do("correct_record", kind="memory", id=memory, text="taken over")
    do("correct_record", kind="heuristic", id=ids.get("heuristic", "none"), text="taken over")
    do("supersede_record", kind="memory", id=memory, text="taken over")
    do("merge_records", kind="memory", keep_id=memory, merge_ids=[other])
    do("quarantine_records", kind="memory", ids=[memory])
    do("reject_records", kind="memory", ids=[memory], archive_ids=[memory])
    do("allow_records", archive_ids=[memory])
    do("forget_records", kind="heuristic", ids=[ids.get("heuristic", "none")])
    do("observe_outcome", signal="thanks", success=True, agent=agent, task="taken over")
    do("demote_harmful")
    do("reinstate_memories", kind="heuristic", ids=[ids.get("heuristic", "none")])
    do("create_key", name="mallory", rights=["read"])
    do("revoke_key", key_id=memory)
    do("create_backup")
    do("retry_webhook", name="deploys")
    do("add_webhook", name="mallory", url="https://mallory.example/")
    do("remove_webhook", name="deploys")
    do("forget_learned", kind="heuristic", id=ids.get("heuristic", "none"))
    do("restore_version", id=memory, number=1, reason="taken over")
    do("restore_memory", memory_id=memory)
    do("set_setting", key="max_memories_per_session", value=1)
    do("create_user", username="mallory")
    do("delete_user", user_id="ana")
    do("delete_project", project_id="atlantis")
    do("purge", retention_days=0)
    do("delete_memory", memory_id=memory)
    do("delete_session", session_id=session)
    do("bulk_delete", older_than_days=0)
    do("sync_memory", memory_id=memory)
    do("sync_drop", engine="qdrant")
    do("sync_rebuild", engine="qdrant")
    do("store_session", session_id=session)
    do("restore_session", session_id=session)
    for operation in ("sync_run", "sync_repair", "sync_retry_parked", "maintain"):
        do(operation)


def _skills(about: str) -> list[Json]:
    text = f"---\nname: a-form\ndescription: {about}\n---\nAsk about {about} first."
    return [{"path": "a-form/SKILL.md", "text": text}]


def done_by(*tenants: Tenant) -> set[str]:
    """The operations that were used."""
    return {operation for tenant in tenants for operation, _ in tenant.answers}


_ALWAYS = {"since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"}
_KINDS = ("memory", "heuristic", "outcome", "domain_knowledge", "anti_pattern", "user_preference")
EVERY_OPERATION = {operation.name for operation in OPERATIONS}
