"""What follows from the settings alone: whether they can be used together, lists, addresses, budgets."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from datetime import timedelta
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from headwater.accounts import openid
from headwater.accounts.openid import OpenIdClient, WantedProvider
from headwater.accounts.scopes import SCOPES, group_of
from headwater.app.people import Welcome
from headwater.coordination.rate_limits import Limit, RatePlan
from headwater.errors import BadSetting
from headwater.fetch.guard import parse_allow
from headwater.settings.table import Settings
from headwater.store.sources.limits import Budget, MonthlyAllowance

_MINUTE = 60
_ALL = "requests"  # the limit of everything together
_PLAN_NAME = re.compile(r"[a-z][a-z0-9-]{0,29}")
_TIMES = re.compile(r"[1-9][0-9]{0,8}")


def check(settings: Settings) -> None:
    """Raises BadSetting if settings are wrong or contradict each other."""
    if settings.lease_seconds <= settings.visit_seconds:
        raise BadSetting(
            "HEADWATER_LEASE_SECONDS must be more than HEADWATER_VISIT_SECONDS, or two visits could overlap."
        )
    parse_allow(settings.allow_private_networks)
    networks(settings.trusted_proxies)
    plans(settings)
    if bool(settings.jwt_issuer) != bool(settings.jwt_keys_url):
        raise BadSetting("HEADWATER_JWT_ISSUER and HEADWATER_JWT_KEYS_URL go together: set both or none.")
    if settings.secret_key and settings.secret_key_command:
        raise BadSetting("HEADWATER_SECRET_KEY and HEADWATER_SECRET_KEY_COMMAND contradict each other: set one.")
    if bool(settings.tls_certificate) != bool(settings.tls_key):
        raise BadSetting("HEADWATER_TLS_CERTIFICATE and HEADWATER_TLS_KEY go together: set both or none.")
    if settings.tls_certificate and not is_https(settings):
        raise BadSetting("HEADWATER_PUBLIC_URL begins with http:, and HEADWATER_TLS_CERTIFICATE makes it https:.")
    _check_oidc(settings)
    if bool(settings.reddit_client_id) != bool(settings.reddit_client_secret):
        raise BadSetting("HEADWATER_REDDIT_CLIENT_ID and HEADWATER_REDDIT_CLIENT_SECRET go together: set both or none.")
    if settings.kafka_bootstrap_servers and settings.store_url().startswith("sqlite"):
        raise BadSetting("HEADWATER_KAFKA_BOOTSTRAP_SERVERS needs PostgreSQL: events reach Kafka from its log.")
    if settings.migration_database_url and settings.store_url().startswith("sqlite"):
        raise BadSetting("HEADWATER_MIGRATION_DATABASE_URL is for PostgreSQL: the store is a SQLite file.")


def _check_oidc(settings: Settings) -> None:
    issuer = settings.oidc_issuer
    if bool(issuer) != bool(settings.oidc_client_id):
        raise BadSetting("HEADWATER_OIDC_ISSUER and HEADWATER_OIDC_CLIENT_ID go together: set both or none.")
    if issuer and not openid.is_issuer(issuer):
        raise BadSetting("HEADWATER_OIDC_ISSUER must be an https address, exactly as the provider writes it.")
    if "openid" not in settings.oidc_scopes.split():
        raise BadSetting("HEADWATER_OIDC_SCOPES needs openid among its scopes.")
    wanted_providers(settings)
    if bool(settings.oidc_join_tenant) != bool(settings.oidc_domains.strip()):
        raise BadSetting(
            "HEADWATER_OIDC_JOIN_TENANT and HEADWATER_OIDC_DOMAINS go together: say which domains may join, or * for "
            "everybody who has an account at the provider."
        )


def wanted_providers(settings: Settings) -> list[WantedProvider]:
    """Returns the OpenID Connect providers at which people sign in, the main one first. Raises BadSetting."""
    try:
        found = openid.read_providers(settings.oidc_providers)
    except ValueError as error:
        raise BadSetting(
            f"HEADWATER_OIDC_PROVIDERS: {str(error)[:100]!r} is not like `google https://login.example 123 Google`,"
            " with a key and an issuer of its own."
        ) from None
    issuer, client_id = settings.oidc_issuer, settings.oidc_client_id
    if issuer is None or client_id is None:
        return found
    if any(one.issuer == issuer for one in found):
        raise BadSetting(f"HEADWATER_OIDC_PROVIDERS names {issuer}, and so does HEADWATER_OIDC_ISSUER.")
    name = settings.oidc_name or urlsplit(issuer).hostname or issuer
    return [WantedProvider("", issuer, client_id, name), *found]


def openid_clients(settings: Settings, secret: Callable[[str], Awaitable[str | None]]) -> Iterator[OpenIdClient]:
    """Yields what each provider knows of us, and we of it. `secret` takes its key."""
    for one in wanted_providers(settings):
        callback = home(settings) + openid.callback_of(one.key)
        of_this = partial(secret, one.key)
        yield OpenIdClient(one.key, one.issuer, one.name, one.client_id, of_this, settings.oidc_scopes, callback)


def scope_limits(text: str) -> dict[str, Limit]:
    """Reads limits such as `stories:write=60,sources=300`, in a minute. Raises BadSetting."""
    return _by_scope("HEADWATER_RATE_LIMITS", _items(text))


def plans(settings: Settings) -> dict[str, RatePlan]:
    """Reads the plans, the default one first. What a plan does not say is as for everybody. Raises BadSetting.

    Where there are none there is one, which has no name.
    """
    everybody = RatePlan("", Limit(_ALL, settings.rate_limit, _MINUTE), scope_limits(settings.rate_limits))
    found: dict[str, RatePlan] = {}
    for name, *limits in (item.split() for item in _items(settings.plans)):
        if not _PLAN_NAME.fullmatch(name) or name in found:
            raise BadSetting(
                f"HEADWATER_PLANS: {name[:50]!r} is not the name of a plan, or is there twice. Write a name, then its "
                "limits: free requests=120 stories=10, team requests=3000."
            )
        own = _by_scope("HEADWATER_PLANS", limits, also=_ALL)
        requests = own.pop(_ALL, everybody.requests)
        found[name] = RatePlan(name, requests, {**everybody.scopes, **own})
    return found or {everybody.name: everybody}


def _items(text: str) -> list[str]:
    return [one.strip() for one in text.split(",") if one.strip()]


def _by_scope(setting: str, pairs: Iterable[str], *, also: str | None = None) -> dict[str, Limit]:
    """Reads what may be done how often in a minute. The scopes of a group, such as all of `stories`, share a limit,
    except for one that has its own."""
    given: dict[str, Limit] = {}
    for pair in pairs:
        name, _, times = pair.partition("=")
        known = name == also or name in SCOPES or name in map(group_of, SCOPES)
        if not known or name in given or not _TIMES.fullmatch(times):
            raise BadSetting(f"{setting}: {pair[:50]!r} is not like stories:write=60.")
        given[name] = Limit(name, int(times), _MINUTE)
    by_group = {scope: given[group_of(scope)] for scope in SCOPES if group_of(scope) in given}
    return {**by_group, **{name: limit for name, limit in given.items() if name in SCOPES or name == also}}


def welcome(settings: Settings) -> Welcome:
    """Returns who may come in from the provider that nobody invited."""
    domains = frozenset(one.strip().lower().removeprefix("@") for one in settings.oidc_domains.split(","))
    return Welcome(settings.oidc_join_tenant, settings.oidc_join_role, domains - {""})


def networks(text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    """Reads addresses of proxies. Raises BadSetting."""
    try:
        return tuple(ip_network(one.strip()) for one in text.split(",") if one.strip())
    except ValueError as error:
        raise BadSetting(f"HEADWATER_TRUSTED_PROXIES: {error}. Write networks such as 10.0.0.0/8.") from None


def home(settings: Settings) -> str:
    """Returns the address of the pages: the public one, or the one on this machine."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "https" if settings.tls_certificate else "http"
    return (settings.public_url or f"{scheme}://{host}:{settings.port}").rstrip("/")


def is_https(settings: Settings) -> bool:
    """Whether people reach the pages by TLS, ours or that of a proxy."""
    return home(settings).startswith("https:")


def instance_name(settings: Settings) -> str:
    """Returns the name of this instance in the events that it sends."""
    return settings.public_url.rstrip("/") if settings.public_url else "headwater"


def image_folder(settings: Settings) -> Path:
    return settings.data_dir / "images"


def redis_url(settings: Settings) -> str | None:
    """Returns the address of the Redis that processes share: the one in the settings, or the broker if that is one."""
    for given in (settings.redis_url, settings.celery_broker_url):
        if given and given.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            return given.get_secret_value()
    return None


def reddit_budget(settings: Settings) -> Budget:
    """Returns how much may be asked of Reddit: of its API with credentials, of its feeds without."""
    if settings.reddit_client_id:
        window = timedelta(seconds=settings.reddit_rate_limit_window_seconds)
        return Budget("reddit api", settings.reddit_rate_limit, window)
    gap = timedelta(seconds=settings.reddit_feed_gap_seconds)
    return Budget("reddit feeds", 1 if gap else 0, gap)


def x_allowance(settings: Settings) -> MonthlyAllowance:
    """Returns how much may be asked of X in a month."""
    return MonthlyAllowance(settings.x_monthly_requests, settings.x_monthly_posts)
