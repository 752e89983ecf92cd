"""Thresholds from a sample of the points: size of the sample, rank, and length of the lists.

In matsumoto2015 (section V-A), the threshold of a query is a sampled distance. Its rank in the sample is chosen so that
k points almost surely lie below it. Here every `stride`-th point is screened first, and the `rank`-th smallest group
minimum becomes the row's threshold. Let `wanted` be the number of points that must be below the threshold: the k
nearest, and all points that the errors of the screen cannot separate from the k nearest. For any data, about
Poisson(wanted / stride) of these points are in the sample, and about stride * Gamma(rank) points are below the sample's
rank-th smallest minimum. So both kinds of failure have known probabilities:

    P(Poisson(wanted / stride) >= rank) <= ODDS         the threshold is too low
    P(Poisson(capacity / stride) < rank) <= ODDS        the list is too short

A row that fails is not proved, and is searched again with the minima of all groups. A failure therefore costs time, but
never correctness.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import NamedTuple

from tonari.core.process.caches import cached
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.groups import group_count


@dataclass(frozen=True)
class Sample:
    """The parameters of a sampled threshold.

    Attributes
    ----------
    stride : int
        Every stride-th point is in the sample.
    rank : int
        The threshold is the rank-th smallest group minimum of the sample, counted from 1.
    capacity : int
        Slots in a row's list.
    least_slots : int
        The smallest total number of slots in a list, over all of its segments.
    """

    stride: int
    rank: int
    capacity: int
    least_slots: int = 0


class FirstAttempt(NamedTuple):
    """The sample of a first attempt, and the sizes on which its launches depend.

    Attributes
    ----------
    n : int
        The number of points that the sample is drawn from.
    sample : Sample
    slots : int
        The number of slots in a row's list.
    """

    n: int
    sample: Sample
    slots: int


@cached(maxsize=1024)
def sample_for(n: int, wanted: int, group: int, slot_cost: float | None = None) -> Sample | None:
    """Return the cheapest sample for a threshold that keeps `wanted` of n points; None if no sample is suitable.

    >>> sample_for(1_000_000, 10, 8), sample_for(1_000_000, 10, 8, tuning.NOTED_COST)
    (Sample(stride=64, rank=4, capacity=1024, least_slots=0), Sample(stride=32, rank=5, capacity=576, least_slots=0))
    >>> sample_for(10_000, 10, 8) is None
    True
    """
    of_slot = tuning.SLOT_COST if slot_cost is None else slot_cost
    best: tuple[float, Sample] | None = None
    stride = tuning.LEAST_STRIDE
    while stride * tuning.LARGEST_MEAN < wanted:
        stride *= 2
    while n // stride >= tuning.LEAST_SAMPLE:
        sample = _sample_at(stride, wanted)
        cost = tuning.SCREEN_COST * n / stride + of_slot * sample.capacity
        if _fits(sample, n, group) and (best is None or cost < best[0]):
            best = cost, sample
        stride *= 2
    return None if best is None else best[1]


def sample_for_codes(n: int, m: int, width: int, group: int) -> Sample | None:
    """Return the sample for m queries among n coded points; its thresholds keep the groups of `width` points per row.

    None if thresholds are not used, because the minima of all groups are written.

    >>> sample_for_codes(10**7, 2048, 128, 32)
    Sample(stride=256, rank=14, capacity=8320, least_slots=0)
    >>> sample_for_codes(10**7, 1, 128, 32) is None, sample_for_codes(5 * 10**8, 1, 128, 32) is None
    (True, False)
    """
    if m < tuning.LEAST_ROWS and n < tuning.CODED_LISTED:
        return None
    return sample_for(n, tuning.CODED_GROUPS * width, group)


@cached(maxsize=1024)
def sample_like(n: int, wanted: int, group: int, whole: FirstAttempt) -> Sample | None:
    """Return a sample for a subset of n points that needs no kernels beyond those of the first attempt at all points.

    None if n is too small for a sample, or if the sample would contain all points. Selection kernels are compiled for
    powers of two. To reuse them, this sample has nearly as many points as the sample of all points, and its lists have
    more slots than the power of two below the length of the lists for all points.

    >>> whole = FirstAttempt(1_000_000, sample_for(1_000_000, 10, 8), 2652)
    >>> sample_like(50_000, 10, 8, whole)
    Sample(stride=4, rank=11, capacity=128, least_slots=2049)
    >>> sample_like(2_000, 10, 8, whole) is None
    True
    """
    size = -(-whole.n // whole.sample.stride)
    stride = -(-n // size)
    sample = _sample_at(stride, wanted)
    if stride == 1 or not _fits(sample, n, group):
        return None
    return dataclasses.replace(sample, least_slots=(1 << (whole.slots - 1).bit_length() - 1) + 1)


def sample_within(n: int, wanted: int, group: int, sample: Sample, slots: int) -> Sample | None:
    """Return `sample`, or the smallest larger sample, with lists of at most `slots` slots; None if there is none.

    >>> usual = sample_for(1_000_000, 64, 8)
    >>> sample_within(1_000_000, 64, 8, usual, 1408) == usual, sample_within(1_000_000, 64, 8, usual, 1000)
    (True, Sample(stride=32, rank=10, capacity=896, least_slots=0))
    >>> sample_within(1_000_000, 64, 8, usual, 100) is None
    True
    """
    while sample.capacity > slots and sample.stride > tuning.LEAST_STRIDE:
        sample = _sample_at(sample.stride // 2, wanted)
    return sample if sample.capacity <= slots and _fits(sample, n, group) else None


def _sample_at(stride: int, wanted: int) -> Sample:
    """Return the sample of every stride-th point whose threshold almost surely keeps `wanted` points."""
    rank = _rank(wanted / stride)
    return Sample(stride, rank, -(-math.ceil(stride * _upper(rank)) // 64) * 64)


def _fits(sample: Sample, n: int, group: int) -> bool:
    """Whether the points below a threshold are unlikely to share groups, among all points and in the sample."""
    groups, sampled = group_count(n, group), group_count(n // sample.stride, group)
    return sample.capacity <= groups // 4 and sample.rank <= sampled // 4


@cached(maxsize=1024)
def _rank(mean: float) -> int:
    """Return the smallest r with P(Poisson(mean) >= r) <= ODDS."""
    rank, term, tail = 0, math.exp(-mean), 1.0
    while tail > tuning.ODDS:
        tail -= term
        rank += 1
        term *= mean / rank
    return max(1, rank)


@cached(maxsize=1024)
def _upper(rank: int) -> float:
    """Return approximately the smallest c with P(Poisson(c) < rank) <= ODDS."""
    mean = float(rank)
    while _below(mean, rank) > tuning.ODDS:
        mean += 1 / 64 + math.sqrt(rank) / 64
    return mean


def _below(mean: float, rank: int) -> float:
    log_term, total = -mean, 0.0
    for count in range(rank):
        total += math.exp(log_term)
        log_term += math.log(mean / (count + 1))
    return total
