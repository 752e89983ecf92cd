"""Rows for k-selection, made on the device that searches them; a seed gives the same rows each time on a device.

==============  ====================================================================================================
``random``      N(0, 1) for floats, every whole number equally likely for integers
``uniform``     [0, 1)
``exponential`` floats with density exp(-x)
``leading``     float32 whose first 20 bits are equal and whose last 12 are random: hard for radix methods
``ascending``   every row 0, 1, 2, ..., with repeats if the type has fewer values than the row
``descending``  the same in reverse: each value is at most all values before it
``equal``       the same value everywhere
``repeated``    16 values, each equally likely
``sift``        euclidean distances between real SIFT descriptors, disjoint queries and points
==============  ====================================================================================================
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..machine import ROOT
from . import photographs

EXAMPLE = ROOT / "examples" / "sift-photo-10k.bvecs"
KINDS = ("random", "uniform", "exponential", "leading", "ascending", "descending", "equal", "repeated", "sift")
# Kinds with independent values: an array of a smaller shape can be a part of a larger array.
POOLED = ("random", "uniform", "exponential", "repeated")
REPEATED_VALUES = 16
LEADING_BITS = 20
# Number of successive whole numbers, from 0, that each dtype represents exactly.
LEVELS = {"uint8": 2**8, "float16": 2**11, "bfloat16": 2**8, "float32": 2**24, "float64": 2**53, "int32": 2**31}


def make(kind: str, rows: int, n: int, dtype: str, device: str) -> Any:
    """Return a contiguous tensor (rows, n) of values of one kind.

    Raises
    ------
    ValueError
        The kind is unknown, or not available in this dtype or size.
    """
    import torch

    wanted = getattr(torch, dtype)
    where = torch.device(device)
    generator = torch.Generator(where).manual_seed(0)
    if kind == "sift":
        return sift_distances(rows, n, device).to(wanted)
    if kind == "leading":
        if dtype != "float32":
            raise ValueError(f"equal leading bits come as float32, got {dtype!r}")
        low = torch.randint(1 << (32 - LEADING_BITS), (rows, n), generator=generator, dtype=torch.int32, device=where)
        return (low | 0x3F800000).view(torch.float32)
    values = torch.empty((rows, n), dtype=wanted, device=where)
    if kind == "random" and wanted.is_floating_point:
        return values.normal_(generator=generator)
    if kind == "random":
        limits = torch.iinfo(wanted)
        return values.random_(limits.min, limits.max + 1, generator=generator)
    if kind == "uniform":
        return values.uniform_(generator=generator)
    if kind == "exponential":
        return values.exponential_(generator=generator)
    if kind == "repeated":
        return values.random_(0, REPEATED_VALUES, generator=generator)
    if kind in ("ascending", "descending"):
        line = torch.arange(n, device=where) * min(n, LEVELS[dtype]) // n
        return values.copy_((line if kind == "ascending" else line.flip(0)).expand(rows, n))
    if kind == "equal":
        return values.fill_(1)
    raise ValueError(f"data are {', '.join(KINDS)}, got {kind!r}")


class Pool:
    """One array of independent values, whose first values serve as arrays of any smaller shape."""

    def __init__(self, count: int, dtype: str, device: str, kind: str = "random") -> None:
        self.count = count
        self._flat = make(kind, 1, count, dtype, device)[0]

    def view(self, rows: int, n: int) -> Any:
        """Return a view of the first rows * n values with shape (rows, n)."""
        return self._flat[: rows * n].view(rows, n)


def sift_rows(count: int) -> np.ndarray:
    """Return real descriptors (count, 128), uint8, from a source of ``sift_photo`` or else from the example file.

    Raises
    ------
    ValueError
        No available file has `count` descriptors.
    """
    at_hand = any((directory / "sift-photo-100k.bvecs").exists() for directory in photographs.SIFT_DIRECTORIES)
    if os.environ.get("TONARI_SIFT") or (at_hand and count <= 100_000):
        return photographs.sift_photo(count, "uint8").points
    rows = photographs.read_bvecs(EXAMPLE)
    if len(rows) < count:
        raise ValueError(f"{EXAMPLE} holds {len(rows)} descriptors, {count} were asked for")
    return np.ascontiguousarray(rows[:count])


def sift_size(rows: int, n: int) -> tuple[int, int]:
    """Return (rows, n), reduced if only the example file exists.

    The reduced shape is the file's largest with four points per query.
    """
    try:
        sift_rows(rows + n)
    except ValueError:
        available = len(photographs.read_bvecs(EXAMPLE))
        return min(rows, available // 5), min(n, available - available // 5)
    return rows, n


def sift_distances(rows: int, n: int, device: str) -> Any:
    """Return distances (rows, n), float32; |q|² + |x|² - 2 q.x is exact for these rows, whose entries are integers."""
    import torch

    found = torch.from_numpy(sift_rows(rows + n)).to(device).float()
    points, queries = found[:n], found[n:]
    squares = (queries**2).sum(1, keepdim=True) + (points**2).sum(1) - 2 * (queries @ points.T)
    return squares.clamp_(min=0).sqrt_()
