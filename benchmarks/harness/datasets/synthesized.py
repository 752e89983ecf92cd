"""Any number of rows like real SIFT descriptors, made block by block; every call gives the same rows.

The method is that of cuVS (``cuvs_bench.synthesize_dataset``). The real rows are clustered by k-means, about a hundred
rows per cluster. Each cluster is described by its share of the rows, its centre, the strongest directions of its rows
with their spread, the spread in all other directions, and 256 quantiles of the distances of its rows from the centre.
For a new row, a cluster, a difference from its centre and the length of this difference are drawn. Narrower rows are
made from principal components.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import photographs
from .data import Data

SEED = 0
BLOCK = 1 << 16  # number of rows in a block; each block has its own random seed
CLUSTER_ROWS = 100
QUANTILES = 256
# A cluster keeps this number of directions; the spread in all other directions is multiplied by BESIDE. With these two
# values, the rows have the local intrinsic dimension of real rows; with 32 directions and a factor of 1, as in cuVS, it
# would be twice as high.
DIRECTIONS, BESIDE = 8, 0.35
_ITERATIONS = 8


class Law(NamedTuple):
    """The distribution of the rows, as tensors on a device.

    Attributes
    ----------
    bounds : (c,), cumulative shares of the c clusters
    centres : (c, d), the mean row of each cluster
    directions : (c, q, d), the q strongest directions of each cluster, times their spread
    rest : (c,), spread of every entry in all other directions
    far : (c, 256), ascending quantiles of the distances of a cluster's rows from its centre
    """

    bounds: Any
    centres: Any
    directions: Any
    rest: Any
    far: Any


class Synthesized:
    """A source of rows for :func:`tonari.build_graph`, which reads ranges of them as float32 tensors.

    Parameters
    ----------
    n, d : number of rows and of columns (at most 128)
    where : device of torch
    real : real rows whose distribution is imitated, (any, 128); by default the descriptors of the photographs
    whole : imitate the first d columns of the real rows, as whole numbers (bytes), instead of d principal components
    """

    def __init__(self, n: int, d: int, where: str, real: Any = None, *, whole: bool = False) -> None:
        import torch

        self.shape, self._where, self._whole = (n, d), where, whole
        rows = torch.from_numpy(np.array(photographs.every_sift() if real is None else real)).to(where, torch.float32)
        self._law = learn(rows[:, :d].contiguous() if whole else principal(rows, d))

    def rows(self, begin: int, end: int) -> Any:
        """Return rows begin to end - 1: float32, or with `whole` uint8."""
        import torch

        first = begin // BLOCK
        blocks = [self._block(block) for block in range(first, -(-end // BLOCK))]
        if self._whole:
            blocks = [block.round_().clamp_(0, 255).to(torch.uint8) for block in blocks]
        return torch.cat(blocks)[begin - first * BLOCK : end - first * BLOCK]

    def _block(self, number: int) -> Any:
        import torch

        law, where = self._law, self._where
        draws = torch.Generator(where).manual_seed((SEED << 32) + number)
        of = torch.searchsorted(law.bounds, torch.rand(BLOCK, generator=draws, device=where)).clamp(
            max=len(law.centres) - 1
        )
        along = torch.randn((BLOCK, 1, law.directions.shape[1]), generator=draws, device=where)
        rows = torch.randn((BLOCK, self.shape[1]), generator=draws, device=where) * law.rest[of, None]
        rows += (along @ law.directions[of])[:, 0]
        place = torch.rand(BLOCK, generator=draws, device=where) * (QUANTILES - 1)
        low = place.long().clamp(max=QUANTILES - 2)
        far = law.far[of]
        near, beyond = far.gather(1, low[:, None]), far.gather(1, low[:, None] + 1)
        rows *= torch.lerp(near, beyond, (place - low)[:, None]) / rows.norm(dim=1, keepdim=True).clamp(min=1e-6)
        return rows + law.centres[of]


def whole_rows(n: int, m: int, d: int, dtype: str) -> Data:
    """Return n points and m queries of whole numbers from 0 to 255, made in host memory."""
    law = Synthesized(n + m, d, "cpu", whole=True)
    points = np.empty((n, d), dtype)
    for begin in range(0, n, BLOCK):
        points[begin : begin + BLOCK] = law.rows(begin, min(begin + BLOCK, n)).numpy()
    return Data(points, law.rows(n, n + m).numpy().astype(dtype) if m else None)


def principal(rows: Any, d: int) -> Any:
    """Return rows projected onto their d strongest principal directions."""
    import torch

    centred = (rows - rows.mean(dim=0)).double()
    directions = torch.linalg.eigh(centred.T @ centred)[1][:, -d:].flip(1)
    return (centred @ directions).float()


def learn(rows: Any) -> Law:
    """Return the distribution of real rows (n, d) as tensors on their device."""
    import torch

    count = max(1, len(rows) // CLUSTER_ROWS)
    of, centres = _clusters(rows, count)
    d = rows.shape[1]
    order = torch.argsort(of, stable=True)
    sizes = torch.bincount(of, minlength=count)
    ends = sizes.cumsum(0)
    away = rows - centres[of]
    quantiles = torch.linspace(0, 1, QUANTILES, device=rows.device)
    q = min(DIRECTIONS, d)
    directions = rows.new_zeros((count, q, d))
    rest, far = rows.new_zeros(count), rows.new_zeros((count, QUANTILES))
    for cluster, (end, size) in enumerate(zip(ends.tolist(), sizes.tolist(), strict=True)):
        if size < 2:  # a cluster of a single row could only produce copies of that row
            far[cluster] = away.norm(dim=1).median()
            rest[cluster] = 1.0
            continue
        own = away[order[end - size : end]]
        values, found = torch.linalg.eigh(own.T @ own / size)
        directions[cluster] = found[:, -q:].T * values[-q:].clamp(min=0).sqrt()[:, None]
        rest[cluster] = BESIDE * values[:-q].clamp(min=0).mean().sqrt() if d > q else 0.0
        far[cluster] = torch.quantile(own.norm(dim=1), quantiles)
    shares = sizes.double().cumsum(0) / len(rows)
    return Law(shares.float(), centres, directions, rest, far)


def _clusters(rows: Any, count: int) -> tuple[Any, Any]:
    """Return clusters by k-means: the cluster of each row, and the centres; the centre of an empty cluster stays."""
    import torch

    drawn = torch.randperm(len(rows), generator=torch.Generator().manual_seed(SEED))[:count]
    centres = rows[drawn.to(rows.device)].clone()
    step = max(1, (1 << 28) // count)
    for _ in range(_ITERATIONS):
        lengths = (centres * centres).sum(1)
        of = torch.cat([(lengths - 2 * part @ centres.T).argmin(1) for part in rows.split(step)])
        sums = torch.zeros_like(centres).index_add_(0, of, rows)
        sizes = torch.bincount(of, minlength=count)
        centres = torch.where(sizes[:, None] > 0, sums / sizes[:, None].clamp(min=1), centres)
    lengths = (centres * centres).sum(1)
    return torch.cat([(lengths - 2 * part @ centres.T).argmin(1) for part in rows.split(step)]), centres
