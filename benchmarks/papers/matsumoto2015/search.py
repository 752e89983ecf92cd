"""matsumoto2015 (TH-heap) as a whole search: distances and pruning on the GPU, the partial sort on the CPU.

For each batch of queries, as in figure 4 and sections IV and V of the paper:

    GPU   M = sqrt(|q|² − 2 q·x + |x|²)         one matrix product                    (IV, algorithm 3)
    GPU   T = k-th smallest of n_S samples      by select_k, method "threshold"       (V-A)
    GPU   distances at or below T, and their columns, packed to the width of the batch's longest row
    CPU   a min-max heap of size k per row      select_k, method "threshold", finish "heap", no sample    (V-C)

The samples are random columns of M and are not computed twice, so at least k values are at or below T, whatever is
rounded. While the CPU sorts a batch, the GPU works on the next one. Distances are those of float32 products, as in the
paper. n_S = 8 k leaves about n / 8 of each row, as in the paper, which calls up to 32 k appropriate.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...harness.case import Case
from ...harness.peers.cuda import float32_products
from ...harness.run import Run, say, seconds_of
from ...suites.exact_cuda.search import load, ours, proof_of
from ...suites.exact_cuda.speed import speed

# Number of queries in a batch, whose distances are on the device at the same time.
BATCH = 512
SAMPLES_PER_K = (8, 32)


class Survivors(NamedTuple):
    """The survivors of a batch in host memory, (rows, width); in each row, the first ``lengths`` values are valid."""

    distances: Any
    indices: Any
    lengths: Any


def pruned(select_k: Any, matrix: Any, columns: Any, k: int) -> tuple[Any, Any, Any]:
    """Return each row's values that do not exceed the k-th smallest of its samples (section V-A).

    Parameters
    ----------
    matrix : float32 tensor (rows, n)
    columns : int64 tensor, the columns that are sampled

    Returns
    -------
    values, ids : tensors (rows, width), float32 and int32
        The values and their columns, by ascending column, padded to the longest row.
    lengths : int64 tensor (rows,), the number of survivors of each row
    """
    import torch

    samples = matrix[:, columns]
    # a sample of fewer than k values has no k-th value, so nothing is pruned
    bound = (
        select_k(samples, k, method="threshold").values[:, -1:]
        if samples.shape[1] >= k
        else torch.full((len(matrix), 1), torch.inf, device=matrix.device)
    )
    keep = matrix <= bound
    lengths = keep.sum(dim=1)
    rows, places = keep.nonzero(as_tuple=True)
    slots = torch.arange(len(rows), device=rows.device) - (lengths.cumsum(0) - lengths)[rows]
    shape = (len(matrix), int(lengths.max()))
    values = torch.full(shape, torch.inf, device=matrix.device)
    ids = torch.zeros(shape, dtype=torch.int32, device=matrix.device)
    values[rows, slots] = matrix[rows, places]
    ids[rows, slots] = places.to(torch.int32)
    return values, ids, lengths


@dataclass
class Pipeline:
    """The TH-heap search for the k nearest of some points, a float32 tensor (n, d).

    Attributes
    ----------
    select_k : tonari.select_k
    samples : n_S, the number of samples in each row
    survivors : number of distances that were not pruned, over all rows of the last search
    sent : number of distances that were copied to the CPU, with padding
    heap_seconds : seconds of the heaps on the CPU in the last search
    """

    select_k: Any
    points: Any
    k: int
    samples: int
    batch: int = BATCH
    survivors: int = 0
    sent: int = 0
    heap_seconds: float = 0.0
    _squares: Any = field(init=False)
    _columns: Any = field(init=False)

    def __post_init__(self) -> None:
        import torch

        self._squares = (self.points * self.points).sum(dim=1)
        chosen = np.random.default_rng(0).choice(len(self.points), min(self.samples, len(self.points)), replace=False)
        self._columns = torch.from_numpy(chosen).to(self.points.device)

    def search(self, queries: Any) -> tuple[Any, Any]:
        """Return the k nearest points of every query: distances and indices (m, k), NumPy."""
        self.survivors, self.sent, self.heap_seconds = 0, 0, 0.0
        found: list[tuple[Any, Any]] = []
        waiting: list[Future[tuple[Any, Any]]] = []
        with ThreadPoolExecutor(1) as cpu:
            for start in range(0, len(queries), self.batch):
                left, ready = self.prune(queries[start : start + self.batch])
                waiting.append(cpu.submit(self.sort, left, ready))
                # at most two batches are in host memory: one is sorted while the next one is copied
                if len(waiting) == 2:
                    found.append(waiting.pop(0).result())
            found += [future.result() for future in waiting]
        distances, indices = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return distances, indices

    def distances(self, queries: Any) -> Any:
        """Return the distances M of a batch (algorithm 3)."""
        import torch

        with float32_products("highest"):
            scores = torch.addmm(self._squares, queries, self.points.T, alpha=-2)
        scores += (queries * queries).sum(dim=1, keepdim=True)
        return scores.clamp_(min=0).sqrt_()

    def prune(self, queries: Any) -> tuple[Survivors, Any]:
        """Start copying the survivors of a batch to host memory.

        Return them with the CUDA event that marks the end of the copy.
        """
        matrix = self.distances(queries)
        values, ids, lengths = pruned(self.select_k, matrix, self._columns, self.k)
        self.survivors += int(lengths.sum())
        self.sent += values.numel()
        return self._to_host(values, ids, lengths)

    def _to_host(self, *parts: Any) -> tuple[Survivors, Any]:
        import torch

        if not parts[0].is_cuda:
            return Survivors(*parts), None
        host = [torch.empty(part.shape, dtype=part.dtype, pin_memory=True) for part in parts]
        for target, part in zip(host, parts, strict=True):
            target.copy_(part, non_blocking=True)
        ready = torch.cuda.Event()
        ready.record()
        return Survivors(*host), ready

    def sort(self, left: Survivors, ready: Any) -> tuple[Any, Any]:
        """Return the k smallest values of each row, by min-max heaps."""
        if ready is not None:
            ready.synchronize()
        started = time.perf_counter()
        distances, indices, lengths = (part.numpy() for part in left)
        # With a single sample and k > 1 there is no threshold, so every survivor reaches the heap. For k = 1, the
        # sample is a threshold.
        best = self.select_k(distances, self.k, method="threshold", finish="heap", samples=1, lengths=lengths)
        answer = best.values, np.take_along_axis(indices, best.indices, axis=1)
        self.heap_seconds += time.perf_counter() - started
        return answer


def compare(run: Run, case: Case) -> None:
    """Compare our search with TH-heap on the same data, for n_S = 8 k and 32 k."""
    data = load(run, case)
    proof = proof_of(run, case, data)
    seconds = ours(run, case, data, proof)
    for samples in sample_sizes(case):

        def work(samples: int = samples) -> None:
            pipeline = Pipeline(run.tonari.select_k, data.points, case.k, samples)
            run.write(case, [measure(run, case, pipeline, data.queries, proof, seconds)])

        run.guarded(case, f"TH-heap, n_S = {samples}", work)
        run.free()


def sample_sizes(case: Case) -> Iterator[int]:
    """Yield the values of n_S for a case, none larger than the number of points."""
    yield from dict.fromkeys(min(case.n, factor * case.k) for factor in SAMPLES_PER_K)


def measure(run: Run, case: Case, pipeline: Pipeline, queries: Any, proof: Any, seconds: float) -> dict[str, Any]:
    """Verify and time TH-heap for one value of n_S; return its row."""
    import torch

    _, indices = pipeline.search(queries)
    recall, seen = proof.recall(torch.from_numpy(indices).to(run.where), case.k)
    timing = run.time(lambda: pipeline.search(queries))
    left = pipeline.survivors / case.m
    note = (
        f"{left:.0f} survivors a row of {case.n}, sent {pipeline.sent / case.m:.0f}; "
        f"the CPU sorted for {pipeline.heap_seconds:.4g} s"
    )
    say(note)
    facts = {"who": f"TH-heap, n_S = {pipeline.samples}", "recall": recall, "proved": seen, "note": note}
    return facts | {"ratio": timing.median / seconds, "extras": speed(run, case, timing)} | seconds_of(timing)
