"""The names of agents: one agent in any case, and a hint for a name that is nearly that of a known one."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from alma.model.common import same_name, spellings
from alma.model.learning import AntiPattern, DomainKnowledge, Heuristic, Outcome
from alma.model.query import In, Order
from alma.model.record import Record
from alma.model.scope import Scope
from alma.storage.base import StorageBackend

_OWNED: Sequence[type[Record]] = (Outcome, Heuristic, DomainKnowledge, AntiPattern)
# The number of newest outcomes and facts that are searched for names.
_LOOKED_AT = 1_000
_CLOSE = 0.75


class AgentNames:
    """The agents that a store knows; the first spelling of a name is its spelling."""

    def __init__(self, storage: StorageBackend) -> None:
        self._storage = storage
        self._stored: dict[tuple[str, str], str] = {}

    def stored(self, name: str, project_id: str) -> str | None:
        """The spelling in which a project has memories of this agent, None if it has none."""
        key = project_id, same_name(name)
        if key not in self._stored:
            found = self._owner(name, project_id)
            if found is None:
                return None
            self._stored[key] = found
        return self._stored[key]

    def hint(self, name: str, project_id: str) -> str:
        """For an agent without memories: the known agent that is probably meant; otherwise empty."""
        if self.stored(name, project_id) is not None:
            return ""
        known = {same_name(each): each for each in self._known(project_id)}
        close = difflib.get_close_matches(same_name(name), list(known), n=1, cutoff=_CLOSE)
        return f"{name} has no memories yet; did you mean {known[close[0]]}?" if close else ""

    def _owner(self, name: str, project_id: str) -> str | None:
        scope, where = Scope(project_id=project_id), In("agent", (name, *spellings(name)))
        for cls in _OWNED:
            found = {agent for (agent,) in self._storage.values(cls, ("agent",), scope, where, limit=_LOOKED_AT)}
            if found:
                return name if name in found else min(found)
        return next((each for each in self._known(project_id) if same_name(each) == same_name(name)), None)

    def _known(self, project_id: str) -> list[str]:
        """The agents of the newest outcomes and facts."""
        scope, newest = Scope(project_id=project_id), (Order("id", "desc"),)
        rows = (self._storage.values(cls, ("agent",), scope, order=newest, limit=_LOOKED_AT) for cls in _OWNED)
        return sorted({agent for found in rows for (agent,) in found})
