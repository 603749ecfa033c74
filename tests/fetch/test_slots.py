"""Slots: a limited number at once, first those that may overtake, and none is ever lost."""

from __future__ import annotations

import asyncio

from headwater.waiting import Slots


async def test_who_comes_first_overtakes_those_who_wait() -> None:  # D12
    slots, order = Slots(1), []

    async def work(name: str, first: bool = False) -> None:
        async with slots.taken(first=first):
            order.append(name)
            await asyncio.sleep(0)

    async with slots.taken():
        tasks = [asyncio.create_task(work(name)) for name in ("a", "b")]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(work("urgent", first=True)))
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == ["urgent", "a", "b"]


async def test_a_slot_survives_those_who_stop_waiting_for_it() -> None:
    slots = Slots(1)

    async def work() -> None:
        async with slots.taken():
            await asyncio.sleep(0)

    for cancelled_after in range(4):
        async with slots.taken():
            waiting = [asyncio.create_task(work()) for _ in range(3)]
            await asyncio.sleep(0)
            if cancelled_after == 0:
                waiting[0].cancel()
        for _ in range(cancelled_after):
            await asyncio.sleep(0)
        waiting[1].cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with asyncio.timeout(60), slots.taken():
            pass
