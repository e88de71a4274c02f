"""Access control: rights, grants, and the scope that every request of a caller stays inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from alma.core import ALMA
from alma.errors import PermissionDeniedError
from alma.model.governance import Attribution
from alma.model.memory import Memory
from alma.model.scope import Scope

ANYONE = "*"
"""The user of a grant that is limited to a project or an agent but may name any user."""

Progress = Callable[[int, int], None]


class Right(StrEnum):
    """A right of a caller; no right includes another."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    ADMIN = "admin"


EVERYTHING = frozenset(Right)


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of a caller, and the user, project and agent it is limited to.

    Data shared by user alone (preferences, profiles, knowledge across projects) is closed to a limited grant without a
    user; `*` as the user opens it for all users.
    """

    rights: frozenset[Right] = EVERYTHING
    user_id: str | None = None
    project_id: str | None = None
    agent: str | None = None
    key_id: str | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the grant is limited to a user, project or agent."""
        return any((self.user_id, self.project_id, self.agent))


OWNER = Grant()
"""Full access, for callers that hold the store's file or password."""


class Caller:
    """A caller of one memory: turns the names in a request into scopes that stay inside the caller's grant."""

    def __init__(
        self,
        alma: ALMA,
        grant: Grant = OWNER,
        *,
        ip_address: str | None = None,
        user_agent: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._alma = alma
        self.grant = grant
        self.progress = progress
        self._ip_address, self._user_agent = ip_address, user_agent

    def require(self, right: Right) -> None:
        """Raise PermissionDeniedError unless the grant has the right."""
        if right not in self.grant.rights:
            held = ", ".join(sorted(self.grant.rights)) or "nothing"
            raise PermissionDeniedError(f"this needs the right to {right}, and this key allows {held}")

    @property
    def is_local(self) -> bool:
        """Whether the caller runs on this machine and not over a network connection."""
        return self._ip_address is None

    def may_see(self, memory: Memory, user_id: str | None = None) -> bool:
        """Whether a memory is not private, or belongs to the caller."""
        return not memory.is_private or (memory.user_id in (user_id, self._one_user) and memory.user_id is not None)

    def require_unlimited(self, what: str) -> None:
        """Raise PermissionDeniedError if the grant is limited."""
        if self.grant.is_limited:
            raise PermissionDeniedError(f"{what} concerns the whole store, and this key is limited to {self._limits}")

    # ------------------------------------------------------------------ names inside the grant

    def project(self, requested: str | None = None) -> str:
        """The project of a request: the named one, the key's, or the configured one."""
        return self._inside("project", requested, self.grant.project_id) or self._alma.project_id

    def agent(self, requested: str) -> str:
        """The agent of a request."""
        return self._inside("agent", requested, self.grant.agent) or requested

    def any_agent(self, requested: str | None = None) -> str | None:
        """The agent of a request, or None for all agents that the key can see."""
        return self._inside("agent", requested, self.grant.agent)

    def user(self, requested: str | None = None) -> str | None:
        """The user of a request: the named one, or the key's."""
        if requested is not None and self.grant.user_id is None and self.grant.is_limited:
            raise PermissionDeniedError(
                f"what belongs to a user needs a key for that user, and this one is limited to {self._limits}: "
                f"make one with  alma keys create --user {requested}"
            )
        return self._inside("user", requested, self._one_user)

    def required_user(self, requested: str | None = None) -> str:
        """The user of a request that needs one."""
        user = self.user(requested)
        if user is None:
            raise PermissionDeniedError("this is about one user: name it with user_id, or use a key for that user")
        return user

    # ------------------------------------------------------------------ scopes

    @property
    def store(self) -> ALMA:
        """The memory as configured, for data without a project."""
        return self._alma

    def memory(self, project_id: str | None = None) -> ALMA:
        """The memory of a project, for what its agents learn and share."""
        if self.grant.user_id not in (None, ANYONE) and self.grant.project_id is None:
            raise PermissionDeniedError(
                f"what agents learn belongs to a project, and this key is limited to {self._limits}: "
                "use a key that names a project too"
            )
        return self._alma.for_project(self.project(project_id))

    def scope(self, project_id: str | None = None, *, session_id: str | None = None, agent: str | None = None) -> Scope:
        """The scope of general memories and sessions: the project, limited to the key's user and agent."""
        return Scope(
            project_id=self.project(project_id),
            user_id=self._one_user,
            session_id=session_id,
            agent=self.any_agent(agent),
            sealed=bool(self.grant.project_id or self.grant.agent),
        )

    def visible(self, project_id: str | None = None) -> Scope:
        """The general memories and sessions that the key can see: all, unless it is limited to a user or agent."""
        is_all = self._one_user is None and self.grant.agent is None
        return Scope.everywhere() if is_all else self.scope(project_id)

    def session(self, session_id: str | None, project_id: str | None = None) -> str | None:
        """The session of a request; a limited key must own it."""
        if session_id is not None and self.grant.is_limited:
            self._alma.sessions.require(session_id, self.scope(project_id))
        return session_id

    def project_scope(self, project_id: str | None = None, agent: str | None = None) -> Scope:
        """The scope that agents share in a project; the agent is found in any case, unless the key names one."""
        memory, named = self.memory(project_id), self.any_agent(agent)
        if named is not None and self.grant.agent is None:
            named = memory.agent_named(named)
        return Scope(project_id=memory.project_id, agent=named)

    def by(self, *, user_id: str | None = None, agent: str | None = None, session_id: str | None = None) -> Attribution:
        """The attribution of changes made by the caller."""
        return Attribution(
            user_id=self.user(user_id),
            agent=self.any_agent(agent),
            session_id=session_id,
            ip_address=self._ip_address,
            user_agent=self._user_agent,
        )

    # ------------------------------------------------------------------ checks

    @cached_property
    def _one_user(self) -> str | None:
        return None if self.grant.user_id == ANYONE else self.grant.user_id

    def _inside(self, what: str, requested: str | None, limit: str | None) -> str | None:
        if limit is None or requested is None or requested == limit:
            return requested or limit
        raise PermissionDeniedError(
            f"this key is limited to {self._limits}, and the {what} {requested!r} is outside of it"
        )

    @property
    def _limits(self) -> str:
        named = (("user", self.grant.user_id), ("project", self.grant.project_id), ("agent", self.grant.agent))
        return " and ".join(f"the {what} {name!r}" for what, name in named if name not in (None, ANYONE))
