"""Synthetic rows; queries are drawn from the distribution of the points."""

from __future__ import annotations

import numpy as np

from .data import Data, split


def gaussian(n: int, m: int, d: int, *, dtype: str = "float32", seed: int = 0) -> Data:
    """Return points and queries with independent N(0, 1) entries."""
    rng = np.random.default_rng(seed)
    return split(rng.standard_normal((n + m, d), dtype=np.float32).astype(dtype, copy=False), n)


def clustered(
    n: int, m: int, d: int, *, intrinsic: int = 12, clusters: int = 100, noise: float = 1.0, seed: int = 0
) -> Data:
    """Return affine clusters of dimension ``intrinsic`` in d columns, with the spread of 8-bit images; float32.

    A row is mean brightness 100 + its cluster's centre (45 grey levels per entry) + a combination of the cluster's
    ``intrinsic`` directions whose strength falls as 1/sqrt(1), 1/sqrt(2), ... (25 grey levels per entry in all)
    + ``noise`` grey levels per entry. Cluster sizes are uneven: the largest is some ten times the smallest.
    """
    if intrinsic > d:
        raise ValueError(f"clusters of dimension {intrinsic} do not fit into width {d}")
    rng = np.random.default_rng(seed)
    centres = 100 + 45 * rng.standard_normal((clusters, d))
    strength = 1 / np.sqrt(np.arange(1, intrinsic + 1))
    strength *= 25 * np.sqrt(d) / np.linalg.norm(strength)
    share = rng.uniform(0.1, 1, clusters)
    members = rng.choice(clusters, n + m, p=share / share.sum())
    rows = np.empty((n + m, d), np.float32)
    for cluster, centre in enumerate(centres):
        inside = np.flatnonzero(members == cluster)
        directions = np.linalg.qr(rng.standard_normal((d, intrinsic)))[0].T
        place = rng.standard_normal((len(inside), intrinsic)) * strength
        rows[inside] = centre + place @ directions + noise * rng.standard_normal((len(inside), d))
    return split(rows, n)


def half_zeros(n: int, m: int, d: int, *, seed: int = 0) -> Data:
    """Return Gaussian float32 rows, about half of which are zero, as if their measurements were missing."""
    rows = np.random.default_rng(seed).standard_normal((n + m, d), dtype=np.float32)
    rows[np.random.default_rng(seed + 1).random(n + m) < 0.5] = 0
    return split(rows, n)


def uniform(n: int, m: int, d: int, *, seed: int = 0) -> Data:
    """Return points and queries with independent entries, uniform from 0 to 1; float32."""
    return split(np.random.default_rng(seed).random((n + m, d), dtype=np.float32), n)
