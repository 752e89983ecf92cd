"""Random numbers: an independent stream for each purpose.

Two generators with the same seed draw the same rows. If a method were fitted to the rows that later measure its recall,
the recall would be too high. Therefore each seed is combined with the purpose of the draw. The random start of
NN-Descent, which must be the same on every device, uses a hash instead (:mod:`tonari.nn_descent.entries`).
"""

from __future__ import annotations

import enum

import numpy as np


class Purpose(enum.IntEnum):
    """The purpose of a draw. The values never change their meaning, so that a seed always gives the same numbers."""

    CLUSTERS = 1  # of NN-Descent: the rows that k-means is trained on, and its first centres
    MEASURED = 2  # rows on which a run of NN-Descent measures its recall
    CHECKED = 3  # rows on which a finished graph is measured
    SHARD_CENTRES = 4  # the first centres by which rows are dealt to shards
    SHARD_OVERLAP = 5  # rows by which the overlap of shards is chosen
    SHARDS_MEASURED = 6  # rows on which a build of shards measures its recall
    SHARD = 7  # the seed of each shard's graph
    SHARD_MERGE = 8  # the seed of merges of shards
    MAP = 9  # points of a map of a graph, and the start of its eigensolver
    LISTS = 10  # rows of a graph whose distances are compared with the points
    DIRECTIONS = 11  # the start of the search for principal directions
    PROBE = 12  # operands of the test of matrix units
    VERIFIED = 13  # rows of an answer that is compared with the exact one
    CODES = 14  # the rotation of the directions of codes
    START = 15  # rows by whose true neighbours a run of NN-Descent chooses its start


def generator(seed: int, purpose: Purpose) -> np.random.Generator:
    """Return a random generator for a seed and a purpose.

    >>> from tonari.core.draws import Purpose, generator
    >>> rows = [generator(0, purpose).choice(1000, 3) for purpose in (Purpose.CLUSTERS, Purpose.MEASURED)]
    >>> bool((rows[0] == rows[1]).any())
    False
    """
    return np.random.default_rng([seed, purpose])


def derived_seed(seed: int, purpose: Purpose, part: int = 0) -> int:
    """Return an unsigned 32-bit seed, derived from a seed, a purpose and a part of it, for generators outside NumPy."""
    return int(np.random.SeedSequence([seed, purpose, part]).generate_state(1)[0])
