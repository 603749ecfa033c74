"""The composition root: reads the settings and puts the parts together. Only the ways in import it.

`parts` has what every way in works with, `clients` what asks others, `loops` what runs for good.
"""

from headwater.wire.checks import home, image_folder, instance_name, is_https, reddit_budget, redis_url, x_allowance
from headwater.wire.clients import oidc_secret, open_client, open_reddit_client, reddit_access, x_access, x_token
from headwater.wire.loops import (
    all_loops,
    ask_hubs,
    catch_up,
    crawling,
    deliver_webhooks,
    examine_cluster,
    follow_log,
    heal_images,
    hear_of_events,
    pace,
    periodic_tools,
    save_images,
    warm_up,
    watch_store,
)
from headwater.wire.parts import (
    Parts,
    open_marks,
    open_parsers,
    open_parts,
    opened_by_owner,
    prepare_store,
    present_keys,
    upgrade_schema,
    utc_now,
)
from headwater.wire.process import configure_logs, new_runner
from headwater.work.periodic import BATCH, JOBS, Job
from headwater.work.periodic import named as job_named
from headwater.work.upkeep import share_one_heap

__all__ = [
    "BATCH",
    "JOBS",
    "Job",
    "Parts",
    "all_loops",
    "ask_hubs",
    "catch_up",
    "configure_logs",
    "crawling",
    "deliver_webhooks",
    "examine_cluster",
    "follow_log",
    "heal_images",
    "hear_of_events",
    "home",
    "image_folder",
    "instance_name",
    "is_https",
    "job_named",
    "new_runner",
    "oidc_secret",
    "open_client",
    "open_marks",
    "open_parsers",
    "open_parts",
    "open_reddit_client",
    "opened_by_owner",
    "pace",
    "periodic_tools",
    "prepare_store",
    "present_keys",
    "reddit_access",
    "reddit_budget",
    "redis_url",
    "save_images",
    "share_one_heap",
    "upgrade_schema",
    "utc_now",
    "warm_up",
    "watch_store",
    "x_access",
    "x_allowance",
    "x_token",
]
