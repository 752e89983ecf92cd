"""Ceilings: the highest rates that this machine reaches with the threads that the benchmarks use.

- ``copy_rate``: bytes per second of copying a large array, read and written bytes both counted.
- ``read_rate``: bytes per second of finding an array's maximum, the ceiling of a single query to a prepared index.
- ``gemm_rate``: FLOP/s of NumPy's float32 matrix product with the fastest OpenBLAS kernels of this machine.
- ``kernel_peak``: operations per second of the instruction that does the work of one of tonari's kernels.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Connection
from types import ModuleType

import numpy as np

from . import children

# 256 MB: eight times the largest share of a level-3 cache that a two-core guest is likely to see.
STREAM_FLOATS = 1 << 26
GEMM_SIZE = 4096


def _rate(work: Callable[[int], object], threads: int, amount: float, repeats: int = 5) -> float:
    """Run ``work(thread)`` on all threads at once, several times; return ``amount`` divided by the least seconds."""
    with ThreadPoolExecutor(threads) as pool:
        best = float("inf")
        for _ in range(repeats + 1):
            start = time.perf_counter()
            list(pool.map(work, range(threads)))
            best = min(best, time.perf_counter() - start)
    return amount / best


@functools.cache
def copy_rate(threads: int) -> float:
    """Return the bytes per second (read + written) of numpy.copyto; every thread copies its own part."""
    source = np.ones(STREAM_FLOATS, np.float32)
    target = np.zeros_like(source)
    parts = list(zip(np.array_split(target, threads), np.array_split(source, threads), strict=True))
    return _rate(lambda i: np.copyto(*parts[i]), threads, 2 * source.nbytes)


@functools.cache
def read_rate(threads: int) -> float:
    """Return the bytes per second of computing a maximum; every thread reads its own part."""
    source = np.ones(STREAM_FLOATS, np.float32)
    parts = np.array_split(source, threads)
    return _rate(lambda i: parts[i].max(), threads, source.nbytes)


def _serve_gemm(connection: Connection) -> None:
    size = connection.recv()
    a = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    out = np.empty_like(a)
    seconds = []
    for _ in range(4):
        start = time.perf_counter()
        np.matmul(a, a, out=out)
        seconds.append(time.perf_counter() - start)
    connection.send(("reply", 2 * size**3 / min(seconds)))


@functools.cache
def gemm_rate(threads: int) -> float:
    """Return the FLOP/s of a float32 product of 4096 x 4096 x 4096."""
    rates: list[float] = []
    for core in children.blas_cores():
        child = children.Child(_serve_gemm, variables=children.blas_environment(threads, core))
        rates.append(child.ask(GEMM_SIZE))
        child.close()
    return max(rates)


@functools.cache
def kernel_peak(native: ModuleType, kernel: str, threads: int) -> float:
    """Return the total FLOP/s of all threads, measured by ``native.peak_rate`` on all of them at the same time."""
    with ThreadPoolExecutor(threads) as pool:
        return float(sum(pool.map(lambda _: native.peak_rate(kernel, 0.5), range(threads))))


def describe(threads: int) -> str:
    """Return the ceilings of the CPU as one line of text, which is printed above the results."""
    return (
        f"{threads} of {os.cpu_count()} processors: copy {copy_rate(threads) / 1e9:.1f} GB/s, "
        f"read {read_rate(threads) / 1e9:.1f} GB/s, float32 GEMM {gemm_rate(threads) / 1e9:.0f} GFLOP/s"
    )
