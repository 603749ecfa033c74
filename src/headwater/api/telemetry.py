"""`/api/telemetry`: readings of machines, in and out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import AwareDatetime

from headwater.app.fleet import telemetry
from headwater.app.fleet.telemetry import BucketJson, SeriesJson, TakenJson
from headwater.app.shapes import shaped
from headwater.http.auth import CurrentReader, needs
from headwater.http.problems import refusals
from headwater.http.routes import MAX_ID, api_router
from headwater.http.state import WithParts

router = api_router("telemetry")
USUALLY = timedelta(days=1)
_BODY: dict[str, Any] = {
    "requestBody": {"required": True, "content": {"application/json": {"schema": telemetry.BATCH_SCHEMA}}}
}


@router.post(
    "/telemetry",
    summary="Send readings of your machines",
    openapi_extra=_BODY,
    dependencies=[needs("telemetry:write")],
)
async def take_readings(parts: WithParts, reader: CurrentReader, request: Request) -> TakenJson:
    """Up to 10,000 at once. Machine and time identify a reading: sending it again changes nothing, and a late one goes
    where it belongs. If one is wrong, the answer names its position, and nothing is stored. A reading covers all
    machines of an entry together."""
    batch = telemetry.read_batch(await request.body())
    kept_for = timedelta(days=parts.settings.telemetry_days)
    return shaped(TakenJson, await parts.db.write(telemetry.take, reader, batch, kept_for, parts.now()))


@router.get(
    "/telemetry", summary="See readings over time", responses=refusals(404), dependencies=[needs("miners:read")]
)
async def show_readings(
    parts: WithParts,
    reader: CurrentReader,
    miner_id: Annotated[int, Query(ge=1, le=MAX_ID, description="the machines")],
    since: Annotated[AwareDatetime | None, Query(description="from this time on; a day before `until`")] = None,
    until: Annotated[AwareDatetime | None, Query(description="before this time; now")] = None,
    bucket: Annotated[
        Literal["5m", "10m", "1h", "1d"],
        Query(description="how long a bucket is. Of 5m and 10m, the last days are kept; hours and days stay longer"),
    ] = "1h",
) -> SeriesJson:
    """Minimum, average and maximum of each bucket, oldest first. Buckets without readings are left out."""
    end: datetime = until or parts.now()
    found = await parts.db.read(telemetry.series, reader, miner_id, since or end - USUALLY, end, bucket)
    return {"miner_id": miner_id, "bucket": bucket, "buckets": [shaped(BucketJson, one) for one in found]}
