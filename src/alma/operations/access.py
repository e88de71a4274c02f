"""Access: who asks, what they may do, and the part of the store that every one of their requests stays inside."""

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
"""The user of a grant that is limited to a project or an agent and yet may name any user."""

Progress = Callable[[int, int], None]


class Right(StrEnum):
    """What a caller may do; none includes another."""

    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    ADMIN = "admin"


EVERYTHING = frozenset(Right)


@dataclass(frozen=True, slots=True)
class Grant:
    """What a caller may do, and to which user, project and agent it is limited.

    What the store shares by user alone (preferences, profiles, what is carried from project to project) is closed to
    a grant that is limited but names no user; `*` as its user opens it for all.
    """

    rights: frozenset[Right] = EVERYTHING
    user_id: str | None = None
    project_id: str | None = None
    agent: str | None = None
    key_id: str | None = None

    @property
    def is_limited(self) -> bool:
        """Whether some part of the store is closed to this caller."""
        return any((self.user_id, self.project_id, self.agent))


OWNER = Grant()
"""Whoever has the store's file or password has all of it."""


class Caller:
    """One caller at one memory: turns what a request names into scopes that never leave the caller's grant."""

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
        """Refuse what the grant does not allow."""
        if right not in self.grant.rights:
            held = ", ".join(sorted(self.grant.rights)) or "nothing"
            raise PermissionDeniedError(f"this needs the right to {right}, and this key allows {held}")

    @property
    def is_local(self) -> bool:
        """Whether the caller sits at this machine, and not behind a connection."""
        return self._ip_address is None

    def may_see(self, memory: Memory, user_id: str | None = None) -> bool:
        """Whether a memory is nobody's secret, or the caller's own."""
        return not memory.is_private or (memory.user_id in (user_id, self._one_user) and memory.user_id is not None)

    def require_unlimited(self, what: str) -> None:
        """Refuse a limited key what concerns the whole store."""
        if self.grant.is_limited:
            raise PermissionDeniedError(f"{what} concerns the whole store, and this key is limited to {self._limits}")

    # ------------------------------------------------------------------ names inside the grant

    def project(self, asked: str | None = None) -> str:
        """The project a request is about: the one it names, the key's, or the configured one."""
        return self._inside("project", asked, self.grant.project_id) or self._alma.project_id

    def agent(self, asked: str) -> str:
        """The agent a request is about."""
        return self._inside("agent", asked, self.grant.agent) or asked

    def any_agent(self, asked: str | None = None) -> str | None:
        """The agent a request is about, or none when it is about all that the key may see."""
        return self._inside("agent", asked, self.grant.agent)

    def user(self, asked: str | None = None) -> str | None:
        """The user a request is made for, if it names one or the key belongs to one."""
        if asked is not None and self.grant.user_id is None and self.grant.is_limited:
            raise PermissionDeniedError(
                f"what belongs to a user needs a key for that user, and this one is limited to {self._limits}: "
                f"make one with  alma keys create --user {asked}"
            )
        return self._inside("user", asked, self._one_user)

    def required_user(self, asked: str | None = None) -> str:
        """The user a request is about, where it must be about one."""
        user = self.user(asked)
        if user is None:
            raise PermissionDeniedError("this is about one user: name it with user_id, or use a key for that user")
        return user

    # ------------------------------------------------------------------ what is inside

    @property
    def store(self) -> ALMA:
        """The memory as it is configured, for what has no project."""
        return self._alma

    def memory(self, asked_project: str | None = None) -> ALMA:
        """The memory of a project, for what its agents learn and share."""
        if self.grant.user_id not in (None, ANYONE) and self.grant.project_id is None:
            raise PermissionDeniedError(
                f"what agents learn belongs to a project, and this key is limited to {self._limits}: "
                "use a key that names a project too"
            )
        return self._alma.for_project(self.project(asked_project))

    def scope(
        self, asked_project: str | None = None, *, session_id: str | None = None, agent: str | None = None
    ) -> Scope:
        """Where general memories and sessions are looked for: in the project, and of the key's user and agent alone."""
        return Scope(
            project_id=self.project(asked_project),
            user_id=self._one_user,
            session_id=session_id,
            agent=self.any_agent(agent),
            sealed=bool(self.grant.project_id or self.grant.agent),
        )

    def visible(self, asked_project: str | None = None) -> Scope:
        """The general memories and sessions that this key may know of: all, unless it is limited to a user or agent."""
        is_all = self._one_user is None and self.grant.agent is None
        return Scope.everywhere() if is_all else self.scope(asked_project)

    def session(self, session_id: str | None, asked_project: str | None = None) -> str | None:
        """The session a request is made in; a limited key reaches its own alone."""
        if session_id is not None and self.grant.is_limited:
            self._alma.sessions.require(session_id, self.scope(asked_project))
        return session_id

    def project_scope(self, asked_project: str | None = None, agent: str | None = None) -> Scope:
        """Where what agents share in a project is looked for."""
        return Scope(project_id=self.memory(asked_project).project_id, agent=self.any_agent(agent))

    def by(self, *, user_id: str | None = None, agent: str | None = None, session_id: str | None = None) -> Attribution:
        """Whom what is done is attributed to."""
        return Attribution(
            user_id=self.user(user_id),
            agent=self.any_agent(agent),
            session_id=session_id,
            ip_address=self._ip_address,
            user_agent=self._user_agent,
        )

    # ------------------------------------------------------------------ inside of it

    @cached_property
    def _one_user(self) -> str | None:
        return None if self.grant.user_id == ANYONE else self.grant.user_id

    def _inside(self, what: str, asked: str | None, limit: str | None) -> str | None:
        if limit is None or asked is None or asked == limit:
            return asked or limit
        raise PermissionDeniedError(f"this key is limited to {self._limits}, and the {what} {asked!r} is outside of it")

    @property
    def _limits(self) -> str:
        named = (("user", self.grant.user_id), ("project", self.grant.project_id), ("agent", self.grant.agent))
        return " and ".join(f"the {what} {name!r}" for what, name in named if name not in (None, ANYONE))
