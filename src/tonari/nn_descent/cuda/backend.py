"""The steps of NN-Descent on one CUDA device; ``nn_descent/backend.py`` specifies them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tonari import inputs
from tonari.core.results.neighbors import Neighbors
from tonari.cuda.devices import on
from tonari.cuda.self_neighbors import without_own
from tonari.metrics import get_metric
from tonari.nn_descent.backend import Known, Round
from tonari.nn_descent.cuda.clusters import find_clusters
from tonari.nn_descent.cuda.exact_neighbors import nearest
from tonari.nn_descent.cuda.form import Form, form_of
from tonari.nn_descent.cuda.random_entries import random_on
from tonari.nn_descent.cuda.rounds import round_of
from tonari.nn_descent.cuda.scan import scan
from tonari.nn_descent.entries import MISSING, NEW
from tonari.nn_descent.memory import list_bytes, scanned_rows, truth_bytes
from tonari.nn_descent.plan import DescentPlan


class CudaBackend:
    """:class:`tonari.nn_descent.backend.Backend` for points on a device.

    Parameters
    ----------
    points : tensor of shape (n, d), checked except for its values

    Raises
    ------
    ValueError
        A point has a NaN or an infinite value, or one that the metric does not accept.
    """

    def __init__(self, points: Any, plan: DescentPlan) -> None:
        self.points, self.plan = points, plan
        nonnegative = get_metric(plan.metric).nonnegative
        low, high = torch.aminmax(points)
        most = min(inputs.LARGEST_FLOAT64, _largest(points.dtype))
        if not bool((high <= most) & (low >= (0 if nonnegative else -most))):
            inputs.check_values(points, "points", first=0, nonnegative=nonnegative)
        self._order: Any = None
        self._held = 0  # bytes of the lists on the device

    def start(self, kind: str, known: Known | None = None) -> Any:
        size = self.plan.list_size
        return self._random(size) if kind == "random" else self._scan(size, None)

    def seeds(self, boundary: int, size: int) -> Any:
        return self._scan(size, boundary)

    def _random(self, size: int) -> Any:
        with on(self.points.device):
            return random_on(self.points.device, self.plan.n, size, self.plan.seed)

    def _formed(self) -> Form:
        """Return the points in the form that the start compares (cuda/form.py)."""
        return form_of(self.points, self.plan.metric)

    def _scan(self, size: int, boundary: int | None) -> Any:
        plan = self.plan
        with on(self.points.device):
            form = self._formed()
            clusters = find_clusters(form, plan)
            self._order = clusters.order
            return scan(form, clusters, size, scanned_rows(plan), boundary=boundary)

    def entries_of(self, indices: Any, *, new: bool) -> Any:
        ids = torch.as_tensor(indices, device=self.points.device).to(torch.int32)
        return torch.where(ids < 0, MISSING, ids | NEW if new else ids)

    def joined_entries(self, first: Any, second: Any) -> Any:
        size = self.plan.list_size
        both = torch.cat([first, second], 1)[:, :size]
        room = torch.full((len(both), size - both.shape[1]), MISSING, dtype=torch.int32, device=both.device)
        return torch.cat([both, room], 1)

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        self._held = list_bytes(self.plan)
        with on(self.points.device):
            order = self._order
            if order is None:
                order = torch.arange(len(entries), device=entries.device)
            return round_of(self.points, entries, order, self.plan.light if light else self.plan, boundary)

    def exact(self, rows: Any, k: int) -> Neighbors:
        at = torch.from_numpy(np.asarray(rows)).to(self.points.device)
        with on(self.points.device):
            plan = self.plan  # the memory of the start's packed points is free now
            room = min(truth_bytes(plan), plan.packed_bytes + plan.working_bytes - self._held)
            found = nearest(self.points[at], self.points, min(k + 1, plan.n), plan.metric, room)
        return without_own(found, at, k)

    def of_rows(self, found: Neighbors, rows: Any) -> Neighbors:
        at = torch.from_numpy(np.asarray(rows)).to(found.indices.device)
        return Neighbors(*(part[at].cpu().numpy() for part in found))


def _largest(dtype: Any) -> float:
    """Return the largest finite value of a dtype."""
    return float(torch.finfo(dtype).max if dtype.is_floating_point else torch.iinfo(dtype).max + 1)
