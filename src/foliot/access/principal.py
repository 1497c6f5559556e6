"""The caller of a request, and what it may do."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Role(StrEnum):
    """What a credential allows; each role may do what those before it may."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ADMIN = "admin"

    def covers(self, needed: "Role") -> bool:
        return _RANKS[self] >= _RANKS[needed]


_RANKS = {role: rank for rank, role in enumerate(Role)}


class CredentialKind(StrEnum):
    KEY = "key"
    JWT = "jwt"
    SESSION = "session"
    """A browser that has signed in."""
    OPERATOR = "operator"
    """FOLIOT_ADMIN_KEY."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A caller whose credential was checked."""

    credential: str
    """Identifies the credential but can't be used as one: `key:1f2e…`, `jwt:9a8b…`, `operator`.
    At most 64 characters."""
    kind: CredentialKind
    name: str
    """Display name: the name of the key, or the subject of the token."""
    role: Role
    host_id: UUID
    is_operator: bool = False
    """Whether the caller has the operator's own key: it may manage hosts and create keys for any of them."""

    def may(self, needed: Role) -> bool:
        return self.role.covers(needed)
