"""Scopes: what may be done, and which roles allow it. Pure decisions over one table.

Every route names the scope that it needs. The OpenAPI document, the reference and the tests are made from this table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headwater.errors import BadInput
from headwater.model import Reader

ROLES = {
    "owner": "runs the tenant: invites people, gives them roles, removes them, and does all that an operator does",
    "operator": "does all that a member does; in the tenant that runs the instance, runs the instance as well",
    "member": "follows sources, reads, folds, and has webhooks",
    "viewer": "reads what is followed, and marks it as read or starred",
}
_EVERYBODY = ("viewer", "member", "operator", "owner")
_MEMBERS = ("member", "operator", "owner")
_OPERATORS = ("operator", "owner")
_OWNERS = ("owner",)


class Scope(NamedTuple):
    """What may be done, and by which roles. `instance`: only in the tenant that runs the instance."""

    name: str
    meaning: str
    roles: tuple[str, ...]
    instance: bool = False


SCOPES = {
    one.name: one
    for one in (
        Scope("posts:read", "read the stream, posts, versions, images and stories; follow live events", _EVERYBODY),
        Scope("posts:write", "mark posts as read or starred; choose how your stream is folded", _EVERYBODY),
        Scope("sources:read", "see what you follow and how it is doing; export it", _EVERYBODY),
        Scope("sources:write", "follow, change, visit and unfollow sources; import OPML", _MEMBERS),
        Scope("stories:write", "fold posts and undo stories", _MEMBERS),
        Scope("webhooks:read", "see your webhooks and what was sent to them", _MEMBERS),
        Scope("webhooks:write", "add, change, test and remove webhooks; send events again", _MEMBERS),
        Scope("telemetry:write", "send readings of your machines", _MEMBERS),
        Scope("market:read", "see the market's figures and the forecast", _EVERYBODY),
        Scope("miners:read", "see your machines and the catalogue of models", _EVERYBODY),
        Scope("miners:write", "add, change and remove machines", _MEMBERS),
        Scope("treasury:read", "see your trades and your portfolio", _EVERYBODY),
        Scope("treasury:write", "enter trades", _MEMBERS),
        Scope("account:read", "see your account, its tokens and its sessions", _EVERYBODY),
        Scope("account:write", "change your account; make and revoke tokens; end sessions", _EVERYBODY),
        Scope("people:read", "see the people of your tenant and who is invited", _MEMBERS),
        Scope("people:write", "invite people, change their roles, remove them", _OWNERS),
        Scope("audit:read", "see and export who changed what in your tenant", _OWNERS),
        Scope("health:read", "see how the instance is doing: health, metrics, crawling", _OPERATORS, instance=True),
        Scope("log:read", "see dead letters, which hold events of everybody", _OPERATORS, instance=True),
        Scope("log:write", "replay and skip dead letters", _OPERATORS, instance=True),
        Scope("admin", "list and add tenants; undo stories for everybody", _OPERATORS, instance=True),
    )
}


def group_of(scope: str) -> str:
    """Returns what a scope is about: `posts` of `posts:read`."""
    return scope.partition(":")[0]


def allowed(role: str, *, runs_instance: bool) -> frozenset[str]:
    """Returns the scopes of a role. A role that nobody knows has none."""
    return frozenset(
        scope.name for scope in SCOPES.values() if role in scope.roles and (runs_instance or not scope.instance)
    )


def scopes_of(reader: Reader) -> frozenset[str]:
    """Returns what a reader may do: what the role allows, and of that only what the token has."""
    by_role = allowed(reader.role, runs_instance=reader.runs_instance)
    return by_role if reader.scopes is None else by_role & reader.scopes


def may(reader: Reader, scope: str) -> bool:
    """Whether a reader may do what needs this scope."""
    needed = SCOPES[scope]
    if reader.role not in needed.roles or (needed.instance and not reader.runs_instance):
        return False
    return reader.scopes is None or scope in reader.scopes


def parse(names: Iterable[str]) -> frozenset[str]:
    """Reads names of scopes as a person or a program gave them. Raises BadInput for one that does not exist."""
    wanted = frozenset(names)
    if unknown := sorted(wanted - SCOPES.keys()):
        raise BadInput(f"There is no scope {unknown[0][:50]!r}. There are: {', '.join(SCOPES)}.")
    if not wanted:
        raise BadInput(f"Name at least one scope: {', '.join(SCOPES)}.")
    return wanted


def check_role(role: str) -> str:
    """Returns the role. Raises BadInput if there is no such role."""
    if role not in ROLES:
        raise BadInput(f"There is no role {role[:50]!r}. There are: {', '.join(ROLES)}.")
    return role
