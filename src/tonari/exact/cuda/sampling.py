"""Thresholds from a sample of the points: how large a sample, which rank, and how long the lists become.

matsumoto2015, section V-A, samples the distances of every query and takes a rank that almost surely lets k of them
through. Here every `stride`-th point is screened first, and the `rank`-th smallest group minimum becomes the row's
threshold. Of the `wanted` nearest points (the k nearest, and what the screen's error cannot tell from them) a sample
holds about Poisson(wanted / stride), and below the sample's rank-th there are
about stride * Gamma(rank) points, whatever the data, so that both ways to fail have known odds:

    P(Poisson(wanted / stride) >= rank) <= ODDS         the threshold is too low
    P(Poisson(capacity / stride) < rank) <= ODDS        the list is too short

A row that fails is not proved and is searched again with all its minima: odds cost time, never truth.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from tonari.exact.cuda.groups import group_count

ODDS = 1e-4
LEAST_ROWS = 512  # with fewer queries all minima are soon written, and the lists' kernel has too few programs
LEAST_SAMPLE = 4096
LEAST_STRIDE = 8  # below, the sample itself is too much of the work
LARGEST_MEAN = 100.0  # of the k nearest in the sample: more make the threshold no better, and sums below underflow
# Relative costs, from timings on an H100: to screen one more point, to pass over one more slot of a list.
SCREEN_COST, SLOT_COST = 1.0, 12.0


@dataclass(frozen=True)
class Sample:
    """How rows are sampled.

    Attributes
    ----------
    stride : int
        Every stride-th point is in the sample.
    rank : int
        Which of the sample's group minima, counted from 1, is the threshold.
    capacity : int
        Slots of a row's list.
    """

    stride: int
    rank: int
    capacity: int


@functools.lru_cache(maxsize=1024)
def sample_for(n: int, wanted: int, group: int) -> Sample | None:
    """The cheapest sample for a threshold that `wanted` of n points do not exceed; None where all minima cost no more.

    >>> sample_for(1_000_000, 10, 8)
    Sample(stride=64, rank=4, capacity=1024)
    >>> sample_for(10_000, 10, 8) is None
    True
    """
    best: tuple[float, Sample] | None = None
    stride = LEAST_STRIDE
    while stride * LARGEST_MEAN < wanted:
        stride *= 2
    while n // stride >= LEAST_SAMPLE:
        rank = _rank(wanted / stride)
        capacity = -(-math.ceil(stride * _upper(rank)) // 64) * 64
        sample = Sample(stride, rank, capacity)
        cost = SCREEN_COST * n / stride + SLOT_COST * capacity
        fits = capacity <= group_count(n, group) // 4 and rank <= group_count(n // stride, group) // 4
        if fits and (best is None or cost < best[0]):
            best = cost, sample
        stride *= 2
    return None if best is None else best[1]


def _rank(mean: float) -> int:
    """The least r with P(Poisson(mean) >= r) <= ODDS."""
    rank, term, tail = 0, math.exp(-mean), 1.0
    while tail > ODDS:
        tail -= term
        rank += 1
        term *= mean / rank
    return max(1, rank)


def _upper(rank: int) -> float:
    """The least c, to a 64th, with P(Poisson(c) < rank) <= ODDS."""
    mean = float(rank)
    while _below(mean, rank) > ODDS:
        mean += 1 / 64 + math.sqrt(rank) / 64
    return mean


def _below(mean: float, rank: int) -> float:
    log_term, total = -mean, 0.0
    for count in range(rank):
        total += math.exp(log_term)
        log_term += math.log(mean / (count + 1))
    return total
