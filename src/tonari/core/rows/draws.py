"""Random numbers: an independent stream for each purpose.

Two generators with the same seed draw the same rows. If a method were fitted to the very rows that later measure its
recall, the measured recall would be too high. Therefore each seed is combined with the purpose of the draw. Only the
random start of NN-Descent, which must be the same on every device, uses a hash instead
(:mod:`tonari.nn_descent.entries`).
"""

from __future__ import annotations

import enum

import numpy as np


class Purpose(enum.IntEnum):
    """The purpose of a draw. The number of a purpose never changes, so that a seed always draws the same rows."""

    CLUSTERS = 1  # rows that train k-means in NN-Descent, and the first centres
    MEASURED = 2  # rows that measure the recall of a run of NN-Descent
    CHECKED = 3  # rows that measure the recall of a finished graph
    SHARD_CENTRES = 4  # the first centres of the clusters that assign rows to shards
    SHARD_OVERLAP = 5  # rows that choose the overlap of shards
    SHARDS_MEASURED = 6  # rows that measure the recall of a build in shards
    SHARD = 7  # the seed of each shard's graph
    SHARD_MERGE = 8  # the seed of merges of shards
    MAP = 9  # the points that a map of a graph draws, and the start of its eigensolver
    LISTS = 10  # rows of a graph whose distances are recomputed from the points
    DIRECTIONS = 11  # the start of the search for principal directions
    PROBE = 12  # operands of the test of matrix units
    VERIFIED = 13  # rows of an answer that are compared with the exact answer
    CODES = 14  # the rotation of the directions of codes
    START = 15  # rows whose true neighbours decide how a run of NN-Descent starts


def generator(seed: int, purpose: Purpose) -> np.random.Generator:
    """Return the random generator of NumPy for a seed and a purpose.

    >>> from tonari.core.rows.draws import Purpose, generator
    >>> rows = [generator(0, purpose).choice(1000, 3) for purpose in (Purpose.CLUSTERS, Purpose.MEASURED)]
    >>> bool((rows[0] == rows[1]).any())
    False
    """
    return np.random.default_rng([seed, purpose])


def derived_seed(seed: int, purpose: Purpose, part: int = 0) -> int:
    """Return an unsigned 32-bit seed for generators outside NumPy, from a seed, a purpose and the index of a part."""
    return int(np.random.SeedSequence([seed, purpose, part]).generate_state(1)[0])
