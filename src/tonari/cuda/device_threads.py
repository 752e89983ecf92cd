"""Run work on several devices, with one thread per device, because a thread launches work on one device at a time."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from tonari.core.process.workers import Workers

R = TypeVar("R")


def a_thread_each(devices: Sequence[str]) -> Workers:
    """Return the threads for :func:`side_by_side`: one for each distinct device."""
    different = set(devices)
    if len(different) > 1:
        _linear_algebra()
    return Workers(len(different))


@functools.cache
def _linear_algebra() -> None:
    """Make torch load its linear algebra in advance, since loading it in two threads at the same time fails."""
    if torch.cuda.is_available():
        torch.linalg.inv(torch.ones((1, 1), device="cuda"))


def side_by_side(workers: Workers, devices: Sequence[str], count: int, work: Callable[[int], R]) -> list[R]:
    """Return [work(at) for at in range(count)], called side by side, each on the thread of devices[at].

    The caller's current streams are also current in these threads.
    """
    names = [name for name in devices if torch.device(name).type == "cuda"]
    streams = {name: torch.cuda.current_stream(name) for name in names}

    contexts = [contextvars.copy_context() for _ in range(count)]  # threads run in the context of the caller's search

    def there(at: int) -> R:
        with contextlib.ExitStack() as stack:
            # `devices[at]` is last, so that it becomes the current device.
            for name in sorted(streams, key=lambda name: name == devices[at]):
                stack.enter_context(torch.cuda.stream(streams[name]))
            return contexts[at].run(work, at)

    return workers.map(there, range(count))
