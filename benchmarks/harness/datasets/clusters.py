"""Points for the benchmarks of NN-Descent, made by torch on the device of the run.

============  =======================================================================================================
``sift``      real SIFT descriptors of photographs (``photographs.sift_photo``), d = 128. Beyond their number
              (1.7 million), copies follow: each block of real rows is rotated about the mean by a separate random
              rotation, and every entry is moved by N(0, 4).
``mixture``   one affine cluster for every 10,000 rows, but at least 100 clusters. Each has 12 to 30 random directions
              whose strengths fall as 1/sqrt(1), 1/sqrt(2), ... and give a spread of 25 per entry. Centres are
              15 N(0, 1) per entry, so that clusters overlap; noise of N(0, 1) is added to every entry.
``gist``      filter responses in windows of photographs, as in GIST descriptors, d = 960 (``gist``)
``gaussian``  independent N(0, 1): the hardest data for approximate graphs, since no points are near each other
============  =======================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import gist, hard, photographs

KINDS = ("sift", "mixture", "gist", "gaussian")
SEED = 0
# Maximum number of values that are drawn in one block of rows.
BLOCK = 1 << 25

CLUSTER_ROWS, LEAST_CLUSTERS = 10_000, 100
INTRINSIC = (12, 30)
STRENGTH, APART, NOISE = 25.0, 15.0, 1.0
# Displacement of the copies of descriptors, per entry; near descriptors differ by about ten.
SIFT_NOISE = 4.0


def make(kind: str, n: int, d: int, dtype: str, where: str) -> Any:
    """Return points (n, d) of a kind as a floating-point tensor on the torch device `where`.

    Raises
    ------
    ValueError
        The kind is unknown, or does not support d columns.
    RuntimeError, ImportError
        The photographs are not installed.
    """
    import torch

    if kind not in KINDS:
        raise ValueError(f"data are {', '.join(KINDS)}, got {kind!r}")
    wide = {"sift": photographs.SIFT_WIDTH, "gist": gist.WIDTH}.get(kind, d)
    if d != wide:
        raise ValueError(f"{kind} has {wide} dimensions, not {d}")
    if kind == "sift":
        return _sift(n, where).to(getattr(torch, dtype))
    if kind == "gist":
        return gist.gist(n, where, SEED).to(getattr(torch, dtype))
    if kind == "gaussian":
        return hard.make(kind, n, 0, d, where).points.to(getattr(torch, dtype))
    law = mixture(max(LEAST_CLUSTERS, n // CLUSTER_ROWS), d, where)
    rows = torch.empty((n, d), dtype=getattr(torch, dtype), device=where)
    step = max(1, BLOCK // (d * INTRINSIC[1]))
    for start in range(0, n, step):
        part = rows[start : start + step]
        part.copy_(law(len(part)))
    return rows


def mixture(clusters: int, d: int, where: str) -> Callable[[int], Any]:
    """Return a function whose every call returns the next rows of affine clusters, float32."""
    import torch

    # The parameters of the clusters are few, and drawn in host memory, so that they are the same for every device.
    generator = torch.Generator().manual_seed(SEED)
    fewest, most = (min(bound, d) for bound in INTRINSIC)
    centres = APART * torch.randn((clusters, d), generator=generator)
    own = torch.randint(fewest, most + 1, (clusters, 1), generator=generator)
    axis = torch.arange(most)
    strength = torch.where(axis < own, (axis + 1.0).rsqrt(), 0.0)
    strength *= STRENGTH * d**0.5 / torch.linalg.vector_norm(strength, dim=1, keepdim=True)
    directions = torch.linalg.qr(torch.randn((clusters, d, most), generator=generator)).Q.mT * strength[:, :, None]
    centres, directions = centres.to(where), directions.to(where)
    draws = torch.Generator(where).manual_seed(SEED)

    def law(count: int) -> Any:
        member = torch.randint(clusters, (count,), generator=draws, device=where)
        place = torch.empty((count, 1, most), device=where).normal_(generator=draws)
        noise = torch.empty((count, d), device=where).normal_(generator=draws)
        return torch.baddbmm(noise[:, None] * NOISE, place, directions[member])[:, 0] + centres[member]

    return law


def _sift(n: int, where: str) -> Any:
    import torch

    try:
        return torch.from_numpy(photographs.sift_photo(n).points).to(where)
    except (RuntimeError, ValueError):  # fewer than n real descriptors exist
        return grown(torch.from_numpy(photographs.every_sift().copy()).to(where).to(torch.float32), n, where)


def grown(real: Any, n: int, where: str) -> Any:
    """Return n rows: the real rows, followed by rotated and displaced copies of them."""
    import torch

    d = real.shape[1]
    mean = real.mean(dim=0)
    rotations = torch.Generator().manual_seed(SEED)
    draws = torch.Generator(where).manual_seed(SEED)
    rows = torch.empty((n, d), dtype=torch.float32, device=where)
    rows[: len(real)] = real
    for part in rows[len(real) :].split(len(real)):
        rotation = torch.linalg.qr(torch.randn((d, d), generator=rotations, dtype=torch.float64)).Q
        part.normal_(generator=draws).mul_(SIFT_NOISE).add_(mean)
        part.addmm_(real[: len(part)] - mean, rotation.to(where, torch.float32))
    return rows
