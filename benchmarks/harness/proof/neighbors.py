"""Proof of exact neighbours before they are timed: a sample of rows, bit for bit, and the order of all rows.

``check_reference`` uses tonari.metrics.reference.brute, for any metric and for arrays of NumPy. ``truth`` does the same
in torch, on the device and thousands of times faster: it computes the same float64 sums in the same order, one torch
operation per step, so that nothing is fused. A run compares the two before it uses either (``self_check``); the tests
compare them bit by bit on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from .rows import WrongAnswer, check_rows, first

PROVED_ROWS = 256
# Half of the verified rows are among the first FIRST_ROWS queries, because a slow peer is timed on the first queries
# only.
FIRST_ROWS = 8192
# Number of pairs whose distances are computed in one step; each pair has 16 partial sums of 8 bytes.
PAIRS = 1 << 24
# Pairs x dimensions for which the NumPy reference computes distances in one case; this takes some seconds.
REFERENCE_WORK = 10**9
REFERENCE_ROWS = 64
PROOF = "bits of tonari.metrics.reference"
_LAST = 2**63 - 1


class Answer(NamedTuple):
    """Distances and indices (m, k) as tensors on the device of the run."""

    distances: Any
    indices: Any


def as_answer(found: Any, where: str) -> Answer:
    """Return a result (Neighbors or KNNGraph, of tensors or arrays) as tensors on `where`."""
    import torch

    return Answer(torch.as_tensor(found.distances, device=where), torch.as_tensor(found.indices, device=where))


def sample_rows(m: int, count: int = PROVED_ROWS) -> Any:
    """Return the ascending row numbers of `count` rows to verify; all m rows if there are fewer.

    Half of them are below FIRST_ROWS.
    """
    if m <= count:
        return np.arange(m)
    rng = np.random.default_rng(0)
    first = rng.choice(min(m, FIRST_ROWS), count // 2, replace=False)
    later = rng.permutation(np.setdiff1d(rng.choice(m, 2 * count, replace=m < 2 * count), first))
    return np.sort(np.concatenate([first, later[: count - len(first)]]))


def lane_sum(term: Callable[[int], Any], d: int) -> Any:
    """Return term(0) + ... + term(d - 1), added in the reference's order: in 16 partial sums, then these in pairs."""
    import torch

    first = term(0)
    lanes = torch.zeros((16, *first.shape), dtype=torch.float64, device=first.device)
    lanes[0] += first
    for i in range(1, d):
        lanes[i % 16] += term(i)
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = lanes[:half] + lanes[half:]
    return lanes[0]


def squares_of(queries: Any, points: Any) -> Any:
    """Return squared distances between float64 rows.

    The columns are the first axis, (d, ...), and arguments are broadcast.
    """

    def term(i: int) -> Any:
        difference = queries[i] - points[i]
        return difference.mul_(difference)

    return lane_sum(term, len(queries))


def distances_of(queries: Any, points: Any) -> Any:
    """Return distances rounded to float32, as in results."""
    import torch

    return squares_of(queries, points).sqrt_().to(torch.float32)


def truth(queries: Any, points: Any, k: int, where: str, *, own: Any = None) -> Answer:
    """Return the k nearest points of every query, by computing and ordering all distances.

    Parameters
    ----------
    queries, points : tensors of shape (m, d) and (n, d), on any device
    where : device that computes
    own : tensor of shape (m,), optional
        If the queries are points, the row number of each query among the points; this point is left out of the query's
        list.

    Returns
    -------
    Answer of float32 and int32, ordered by (distance, index)
    """
    import torch

    rows = _columns_first(queries, where)[:, :, None]
    m, n = len(queries), len(points)
    own = None if own is None else own.to(where)
    step = max(k, PAIRS // m)
    best = None
    for start in range(0, n, step):
        slab = _columns_first(points[start : start + step], where)[:, None, :]
        width = slab.shape[2]
        # Distances are not negative, so their bits have the order of their values; the index in the lower bits orders
        # equal distances.
        keys = distances_of(rows, slab).view(torch.int32).to(torch.int64) << 32
        keys |= torch.arange(start, start + width, device=where)
        if own is not None:
            inside = (own >= start) & (own < start + width)
            keys[inside, own[inside] - start] = _LAST
        part = keys.topk(min(k, width), dim=1, largest=False, sorted=True).values
        best = part if best is None else torch.cat([best, part], dim=1)
        best = best.topk(min(k, best.shape[1]), dim=1, largest=False, sorted=True).values
    assert best is not None
    return Answer((best >> 32).to(torch.int32).view(torch.float32), (best & 0xFFFFFFFF).to(torch.int32))


def _columns_first(rows: Any, where: str) -> Any:
    import torch

    return rows.to(where).to(torch.float64).T.contiguous()


def self_check(reference: ModuleType, where: str) -> None:
    """Raise WrongAnswer unless squared distances and ``truth`` have tonari.metrics.reference's bits on this device."""
    import torch

    rng = np.random.default_rng(0)
    for d in (1, 19, 128):
        points = rng.standard_normal((700, d), dtype=np.float32)
        points[600:] = points[:100]  # whole numbers, which cause ties
        own = np.arange(0, 700, 70)
        rows = torch.from_numpy(points)
        asked = rows[torch.from_numpy(own)]
        squares = squares_of(_columns_first(asked, where)[:, :, None], _columns_first(rows, where)[:, None, :])
        found = squares, *truth(asked, rows, 40, where, own=torch.from_numpy(own))
        expected = (
            reference.pairwise(points[own], points, "sqeuclidean"),
            *reference.brute(points[own], points, 40, self_ids=own),
        )
        for ours, true in zip(found, expected, strict=True):
            if not np.array_equal(ours.cpu().numpy(), true):
                raise WrongAnswer(f"the proof itself differs from tonari.metrics.reference at d = {d}")


class Proof:
    """The true neighbours of a sample of queries, with which the answer of a search is compared.

    Attributes
    ----------
    rows : int64 array, the ascending row numbers of the sampled queries
    distances, indices : tensors (len(rows), k) on the device `where`, the true neighbours
    """

    def __init__(self, queries: Any, points: Any, k: int, where: str, *, graph: bool, count: int = PROVED_ROWS) -> None:
        import torch

        self.where, self.k, self.graph = where, k, graph
        self.m, self.n = len(queries), len(points)
        self.points = points
        self.rows = sample_rows(self.m, count)
        chosen = torch.from_numpy(self.rows)
        self.queries = queries[chosen.to(queries.device)]
        own = chosen if graph else None
        self.distances, self.indices = truth(self.queries, points, k, where, own=own)

    def check(self, found: Answer, k: int) -> int:
        """Raise WrongAnswer unless rows are in order and sampled rows have the true bits; return the sample size."""
        import torch

        check_rows(*found, self.m, self.n, k, graph=self.graph)
        if found.distances.dtype != torch.float32 or found.indices.dtype != torch.int32:
            raise WrongAnswer(f"types {found.distances.dtype} and {found.indices.dtype}")
        chosen = torch.from_numpy(self.rows).to(self.where)
        for name, ours, true in (
            ("index", found.indices[chosen], self.indices[:, :k]),
            ("distance", found.distances[chosen], self.distances[:, :k]),
        ):
            wrong = (ours != true).any(dim=1)
            if bool(wrong.any()):
                row = int(wrong.int().argmax())
                column = int((ours[row] != true[row]).int().argmax())
                raise WrongAnswer(
                    f"{name} {column} of row {self.rows[row]} is {ours[row, column].item()}, "
                    f"the reference has {true[row, column].item()}; {int(wrong.sum())} of {len(wrong)} rows differ"
                )
        return len(self.rows)

    def recall(self, indices: Any, k: int) -> tuple[float, int]:
        """Return the share of a peer's points within the true k-th distance, and the number of compared rows.

        `indices` has the peer's lists for the first queries. Points are compared by distance, so ties may be broken in
        any way; duplicates count once.
        """
        import torch

        seen = int(np.searchsorted(self.rows, len(indices)))
        chosen = torch.from_numpy(self.rows[:seen]).to(indices.device)
        ids = indices[chosen].to(torch.int64).sort(dim=1).values
        valid = (ids >= 0) & (ids < self.n)
        valid[:, 1:] &= ids[:, 1:] != ids[:, :-1]
        if self.graph:
            valid &= ids != chosen[:, None]
        places = torch.where(valid, ids, 0).to(self.points.device)
        right = 0
        block = max(1, PAIRS // (k * self.points.shape[1]))
        for start in range(0, seen, block):
            here = slice(start, min(start + block, seen))
            listed = self.points[places[here]].to(self.where).to(torch.float64).movedim(2, 0).contiguous()
            values = distances_of(_columns_first(self.queries[here], self.where)[:, :, None], listed)
            right += int((valid[here].to(self.where) & (values <= self.distances[here, k - 1 : k])).sum())
        return right / (seen * k), seen


def check_reference(
    reference: ModuleType, found: Any, queries: Any, points: Any, k: int, metric: str, *, graph: bool
) -> int:
    """Compare a sample of rows bit for bit with the NumPy float64 reference; return the sample size."""
    count = int(np.clip(REFERENCE_WORK // points.size, 4, REFERENCE_ROWS))
    chosen = np.random.default_rng(0).permutation(len(queries))[:count]
    own = chosen.astype(np.int64) if graph else None
    if reference.get_metric(metric).changed:  # for such a metric, tonari transforms the rows and returns float64
        queries, points = queries.astype(np.float64), points.astype(np.float64)
    truth = reference.brute(queries[chosen], points, k, metric, self_ids=own)
    for name, ours, true in (
        ("index", found.indices[chosen], truth.indices),
        ("distance", found.distances[chosen], truth.distances),
    ):
        wrong = (ours != true).any(axis=1)
        if wrong.any() or ours.dtype != true.dtype:
            row = int(np.argmax(wrong))
            raise WrongAnswer(
                f"{name} of row {chosen[row]} differs from the reference: "
                f"{ours[row][:5]} {ours.dtype}, expected {true[row][:5]} {true.dtype}"
            )
    return len(chosen)


def agreement(ours: Any, theirs: Any, queries: Any, points: Any, metric: str) -> float:
    """Return the share of a peer's indices that are in our lists too.

    Raise WrongAnswer if the peer's distances differ from ours by more than the peer's rounding.

    Distances are compared rank by rank: if each number changes by at most t, so does the j-th smallest. The peer sums d
    float32 products, so t is 8 eps sqrt(d) times a size: |q|^2 + max |x|^2 for squared L2, |q| max |x| for inner
    products, 1 for cosines, the distance itself for the elementwise metrics. Peers answer the first rows only.
    """
    distances, indices = theirs
    rows = len(indices)
    queries = queries[:rows].astype(np.float64)
    blocks = (points[start : start + (1 << 14)] for start in range(0, len(points), 1 << 14))
    reach = float(np.sqrt(max((block.astype(np.float64) ** 2).sum(axis=1).max() for block in blocks)))
    norms = np.linalg.norm(queries, axis=1, keepdims=True)
    mine, other = ours.distances[:rows].astype(np.float64), distances.astype(np.float64)
    slack = 8 * np.finfo(np.float32).eps * np.sqrt(queries.shape[1])
    size: Any
    if metric == "euclidean":
        mine, other, size = mine**2, other**2, norms**2 + reach**2
    elif metric == "inner_product":
        size = norms * reach
    elif metric in ("cosine", "correlation"):
        size = np.ones_like(norms)
    else:
        size = mine
    apart = (~(np.abs(mine - other) <= slack * size)).any(axis=1)
    if apart.any():
        row = first(apart)
        raise WrongAnswer(
            f"row {row} disagrees with the peer: {ours.distances[row][:5]} here, {distances[row][:5]} there"
        )
    base = np.arange(rows, dtype=np.int64)[:, None] * len(points)
    return float(np.isin(base + indices, base + ours.indices[:rows]).mean())


def same(found: Any, expected: Any, who: str) -> None:
    """Raise WrongAnswer unless an answer has the same bits as the expected answer, for all its rows and its k."""
    rows, k = found[1].shape
    for name, ours, true in zip(("distance", "index"), found, expected, strict=True):
        wrong = (ours != true[:rows, :k]).any(1)
        if bool(wrong.any()):
            raise WrongAnswer(f"{who}: {name} of row {first(wrong)} is another than the proved one")
