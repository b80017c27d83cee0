"""Threads for the compiled kernels.

Kernels are compiled with ``nogil`` and work on a range of rows; a small pool of Python threads
shares the ranges out. This is safe under joblib's thread and process backends and after a fork,
which numba's own threading layers are not on every platform.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise

_WORTH_SHARING = 200_000  # multiply-adds below which starting a thread costs more than it saves


def threads() -> int:
    """Count the threads: SIDELIGHT_THREADS, else OMP_NUM_THREADS, else the cores we may use."""
    for name in ("SIDELIGHT_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _pool(size: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(size, thread_name_prefix="sidelight")


if hasattr(os, "register_at_fork"):  # a forked child has the pool but none of its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def share(kernel: Callable[[int, int], object], size: int, work: float) -> None:
    """Call ``kernel(start, stop)`` over ``range(size)``, in several threads when ``work`` is large.

    ``work`` is the number of multiply-adds of the whole call.
    """
    count = threads()
    if count == 1 or work < _WORTH_SHARING or size < 2 * count:
        kernel(0, size)
        return
    pieces = 4 * count  # uneven rows: small pieces even the load out
    bounds = [size * i // pieces for i in range(pieces + 1)]
    for done in [_pool(count).submit(kernel, a, b) for a, b in pairwise(bounds) if b > a]:
        done.result()
