"""Proof of an approximate graph: its distances are right, and its recall is measured.

Every row must have k existing and distinct points in order, with ties by index, without the point itself. On a sample
of rows, the distances must equal those of tonari.metrics.reference for the listed ids, bit for bit. The recall of this
sample is measured against exact search, whose answer is compared with all pairs in float64 for the first sampled rows.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from . import neighbors
from .neighbors import Answer
from .rows import WrongAnswer, check_rows, own_places

if TYPE_CHECKING:
    from tonari.core.results.neighbors import Neighbors
    from tonari.metrics.recall import Recall

# Number of sampled rows for which even the answer of exact search is compared with all pairs.
TRUSTED = {"cpu": 4, "cuda": 16}
# Bars on recall are for this number of nearest neighbours, or for k if that is less.
RANK = 10
# Seed of the sample. A build stops when the recall of its own sample is reached, so recall is measured on other rows.
SAMPLE_SEED = 20_211


class GraphTruth:
    """The exact neighbours of a sample of points.

    Attributes
    ----------
    points : tensor of shape (n, d)
    rows : int64 array, the ascending row numbers of the sample
    nearest : Neighbors of NumPy arrays (len(rows), k), the exact neighbours of these rows
    """

    def __init__(
        self,
        tonari: ModuleType,
        points: Any,
        k: int,
        sample: int,
        values: Callable[[Any], Any],
        options: dict[str, Any],
    ) -> None:
        import torch

        self.points = points
        self.n = len(points)
        self.rows = np.sort(np.random.default_rng(SAMPLE_SEED).choice(self.n, min(sample, self.n), replace=False))
        chosen = torch.from_numpy(self.rows).to(points.device)
        found = tonari.search(values(points[chosen]), values(points), k + 1, method="exact", **options)
        distances, indices = (torch.as_tensor(part).cpu().numpy() for part in found)
        own = own_places(indices, self.rows)
        self.nearest: Neighbors = type(found)(*(part[~own].reshape(-1, k) for part in (distances, indices)))
        self._trust(chosen, k)

    def _trust(self, chosen: Any, k: int) -> None:
        few = chosen[: TRUSTED["cuda" if self.points.is_cuda else "cpu"]]
        true = neighbors.truth(self.points[few], self.points, k, str(self.points.device), own=few)
        for name, ours, theirs in zip(("distance", "index"), self.nearest, true, strict=True):
            wrong = (ours[: len(few)] != theirs.cpu().numpy()).any(axis=1)
            if wrong.any():
                raise WrongAnswer(f"{name} of row {self.rows[wrong.argmax()]}: the exact engine is wrong")

    def values_of(self, ids: Any) -> Any:
        """Return float32 distances from each sampled row to the points in its row of `ids`, (len(rows), any).

        The distance for id -1 is inf.
        """
        import torch

        from tonari.metrics.reference import returned, values_at

        needed, places = np.unique(np.maximum(ids, 0), return_inverse=True)
        queries, listed = (
            self.points[torch.from_numpy(numbers).to(self.points.device)].cpu().numpy()
            for numbers in (self.rows, needed.astype(np.int64))
        )
        places = np.where(ids < 0, -1, places.reshape(ids.shape))
        return returned(values_at(queries, listed, places), np.float32)

    def check(self, found: Answer, k: int) -> int:
        """Raise WrongAnswer unless all rows are in order and the sampled distances are exact.

        Return the sample size.
        """
        import torch

        check_rows(*found, self.n, self.n, k, graph=True)
        chosen = torch.from_numpy(self.rows).to(found.indices.device)
        distances, indices = (part[chosen].cpu().numpy() for part in found)
        wrong = (distances != self.values_of(indices)).any(axis=1)
        if wrong.any():
            raise WrongAnswer(f"row {self.rows[wrong.argmax()]} has a distance that is not that of its point")
        return len(self.rows)

    def check_exact(self, found: Answer, k: int) -> int:
        """Raise WrongAnswer unless the sampled lists equal those of the exact graph."""
        import torch

        check_rows(*found, self.n, self.n, k, graph=True)
        chosen = torch.from_numpy(self.rows).to(found.indices.device)
        for name, ours, true in zip(("distance", "index"), found, self.nearest, strict=True):
            wrong = (ours[chosen].cpu().numpy() != true[:, :k]).any(axis=1)
            if wrong.any():
                raise WrongAnswer(f"{name} of row {self.rows[wrong.argmax()]} is not that of the exact engine")
        return len(self.rows)

    def recall(self, ids: Any, k: int) -> Recall:
        """Return the recall of the first k entries of the sampled lists, with its interval.

        A repeated point counts once.
        """
        from tonari.metrics.recall import neighbors_recall

        listed = once(ids[:, :k])
        return neighbors_recall(type(self.nearest)(self.values_of(listed), listed), self.nearest)

    def columns(self, ids: Any, k: int) -> dict[str, Any]:
        """Return columns of results about the recall of the sampled lists (len(rows), k or more), at k and at RANK."""
        whole, short = (self.recall(ids, rank) for rank in (k, min(RANK, k)))
        return {
            "recall": whole.by_distance,
            "recall_low": whole.low,
            "recall_high": whole.high,
            "extras": {"recall_10": short.by_distance, "recall_10_low": short.low, "recall_10_high": short.high},
        }


def once(ids: Any) -> Any:
    """Return lists as int64, with -1 in place of every id that repeats an earlier one of its list."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    again = np.zeros(ids.shape, bool)
    np.put_along_axis(again, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return np.where(again, -1, ids).astype(np.int64)
