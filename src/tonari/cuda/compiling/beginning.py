"""Prepare the first compilation of a process in threads: compute Triton's key, a hash of its code, and load its driver.

begin_soon()      starts the threads, while the modules of a search are imported
get_ready(calls)  hashes the kernels of the search while the threads work
begin()           waits for the threads, before the first kernel is looked up in Triton's cache
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import mmap
import os
from collections.abc import Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from tonari.cuda import tuning
from tonari.cuda.compiling.effort import effort
from tonari.cuda.compiling.keys import hash_in_order
from tonari.cuda.compiling.rehearsal import Call


@functools.cache
def begin_soon() -> list[Future[Any]]:
    """Start two threads that prepare the first compilation.

    One thread hashes Triton's code, for the keys of its cache. The other loads Triton's driver and compiles a part of
    it in C. Neither holds the interpreter's lock for long.
    """
    # Imported before the threads start, since threads that import Triton's modules at once would wait for each other.
    from triton.runtime import cache, driver

    pool = ThreadPoolExecutor(2)
    try:
        return [pool.submit(_key, cache), pool.submit(lambda: driver.active.utils)]
    finally:
        pool.shutdown(wait=False)


def _key(cache: Any) -> str:
    """Return Triton's key, computed by `triton.runtime.cache`, but with Triton's large library hashed in one piece.

    Triton would hash the library of 400 MB in 400 pieces, and take the interpreter's lock twice for each. A busy thread
    gives up the lock only every 5 ms, so most of the hashing would be delayed until the search itself waits.
    """
    cache.open = _open_whole
    try:
        return str(cache.triton_key())
    finally:
        del cache.open


@contextlib.contextmanager
def _open_whole(path: Any, mode: str = "r", *more: Any, **named: Any) -> Iterator[Any]:
    """Open a file as open() does, except that the first read of a large binary file returns the whole file."""
    with open(path, mode, *more, **named) as file:
        if mode != "rb" or os.path.getsize(path) < tuning.WHOLE_BYTES:
            yield file
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            pieces = iter([whole])
            yield SimpleNamespace(read=lambda size=-1: next(pieces, b""))


def is_beginning() -> bool:
    """Whether the preparations for the first kernel have begun but are not finished."""
    return begin_soon.cache_info().currsize > 0 and not all(future.done() for future in begin_soon())


def get_ready(calls: Collection[Call]) -> None:
    """Prepare the compilation of `calls`, except for the steps that need Triton's key or driver.

    Threads prepare the key and the driver at the same time. The calling thread thus does half of the work of looking up
    kernels while it would otherwise wait.
    """
    with contextlib.suppress(ImportError):  # other versions of Triton may not have this module
        # Imported here, because Triton would import it when it is first given a tensor.
        importlib.import_module("triton.experimental.gluon.nvidia.hopper")
    for call in sorted(calls, key=effort, reverse=True):  # also caches the efforts
        hash_in_order(call)


@functools.cache
def begin() -> None:
    """Wait until the preparations for the first kernel of a process are finished."""
    from triton.runtime import driver

    for future in begin_soon():
        future.result()
    driver.active.get_current_device()
