"""How the cost of something grows with its size: a ratio of CPU times, so that a slow machine changes nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

TOO_SHORT = 0.02  # seconds of CPU; less than this says nothing, and is no trouble either


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least of three attempts: what others do on the machine only ever adds."""
    times = []
    for _ in range(3):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def assert_cost_is_linear(work: Callable[[int], object], size: int) -> None:
    """Four times the size may cost eight times as much. Quadratic work would cost sixteen times as much."""
    small, large = cpu_seconds(lambda: work(size)), cpu_seconds(lambda: work(4 * size))
    assert large <= 8 * max(small, TOO_SHORT), f"{size}: {small:.3f} s, {4 * size}: {large:.3f} s"
