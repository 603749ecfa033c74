"""The composition root: reads the settings and puts the parts together. Only the ways in import it.

`parts` has what every way in works with, `loops` what runs for good.
"""

from headwater.wire.loops import (
    all_loops,
    ask_hubs,
    catch_up,
    crawling,
    deliver_webhooks,
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
    home,
    image_folder,
    instance_name,
    open_client,
    open_parsers,
    open_parts,
    open_reddit_client,
    prepare_store,
    present_key,
    reddit_access,
    reddit_budget,
    utc_now,
    x_access,
    x_allowance,
    x_token,
)
from headwater.work.periodic import JOBS, Job
from headwater.work.periodic import named as job_named
from headwater.work.upkeep import share_one_heap

__all__ = [
    "JOBS",
    "Job",
    "Parts",
    "all_loops",
    "ask_hubs",
    "catch_up",
    "crawling",
    "deliver_webhooks",
    "follow_log",
    "heal_images",
    "hear_of_events",
    "home",
    "image_folder",
    "instance_name",
    "job_named",
    "open_client",
    "open_parsers",
    "open_parts",
    "open_reddit_client",
    "pace",
    "periodic_tools",
    "prepare_store",
    "present_key",
    "reddit_access",
    "reddit_budget",
    "save_images",
    "share_one_heap",
    "utc_now",
    "warm_up",
    "watch_store",
    "x_access",
    "x_allowance",
    "x_token",
]
