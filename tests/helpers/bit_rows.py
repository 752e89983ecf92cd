"""Rows of bits with many ties, or at the ends of their range, for tests of searches."""

from __future__ import annotations

import numpy as np

from tests.helpers.checks import Array


def noise(n: int, d: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (n, d), dtype=np.uint8)


def sparse(n: int, d: int, seed: int = 0) -> Array:
    """Make rows with one bit in 32: most pairs share no bit."""
    return np.packbits(np.random.default_rng(seed).random((n, 8 * d)) < 1 / 32, axis=1)


def few(n: int, d: int, seed: int = 0) -> Array:
    """Make rows of which there are only three different ones, so nearly all distances tie."""
    return noise(3, d, 7)[np.random.default_rng(seed).integers(0, 3, n)]


def ends(n: int, d: int, seed: int = 0) -> Array:
    """Make rows with no bit set, with all bits set, and with each single bit."""
    rows = np.zeros((n, d), np.uint8)
    rows[1::3] = 255
    rows[2::3, seed % d] = 1 << np.arange(len(rows[2::3])) % 8
    return rows


MAKERS = {made.__name__: made for made in (noise, sparse, few, ends)}
