"""The steps of NN-Descent with the update "gnnd". Only the round differs from ``nn_descent/cuda/backend.py``."""

from __future__ import annotations

from typing import Any

import torch

from tonari.core.results.neighbors import Neighbors
from tonari.cuda.devices import on
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.nn_descent.backend import Known, Round
from tonari.nn_descent.cuda.backend import CudaBackend
from tonari.nn_descent.cuda.form import Form
from tonari.nn_descent.entries import ID, MISSING
from tonari.nn_descent.memory import list_bytes
from tonari.nn_descent.papers.cuda.gnnd import Lists, Spinlocks, descend, lists_of
from tonari.select.cuda.ordering.merge import empty_lists


class GnndBackend(CudaBackend):
    """:class:`tonari.nn_descent.backend.Backend` for points on a device, with the rounds of wang2021.

    In a random start, each point has as many neighbours as a round samples (algorithm 1, line 2).
    """

    _form: Form | None = None

    def start(self, kind: str, known: Known | None = None) -> Any:
        return self._random(self.plan.samples) if kind == "random" else super().start(kind, known)

    def round(self, entries: Any, boundary: int | None = None, *, light: bool = False, last: bool = False) -> Round:
        plan = self.plan
        self._held = list_bytes(plan)
        with on(self.points.device):
            form = self._formed()
            update = Spinlocks(plan.n, plan.list_size, self.points.device)
            if isinstance(entries, Lists):
                lists, before = entries, entries.entries.clone()
            else:
                lists, before = lists_of(form, entries, plan.list_size, update.segment), entries
            descend(form, lists, update, plan.samples, plan.block, boundary)
            return self._closed(lists, before)

    def exact(self, rows: Any, k: int) -> Neighbors:
        self._form = None  # frees the form's memory for the search; a later round computes the form again
        return super().exact(rows, k)

    def _formed(self) -> Form:
        """Return the points in the form that the start and the rounds compare."""
        if self._form is None:
            self._form = super()._formed()
        return self._form

    def _closed(self, lists: Lists, before: Any) -> Round:
        """End a round: compute exact distances, keep the k nearest points of each list, and count new neighbours."""
        plan, device = self.plan, self.points.device
        double = self.points.dtype == torch.float64
        found = empty_lists(plan.n, plan.k, plan.n, double=double, device=device)
        changed = torch.zeros((), dtype=torch.int64, device=device)
        phi = torch.zeros((), dtype=torch.float64, device=device)
        for begin in range(0, plan.n, plan.block):
            here = slice(begin, begin + plan.block)
            met = _ids(lists.entries[here])
            rows = self.points[here]
            distances, indices = refine_groups(
                rows, self.points, met, plan.k, metric=plan.metric, group=1, double=double
            )
            found.distances[here], found.indices[here] = distances, indices
            changed += ((indices >= 0) & ~_contained(indices, _ids(before[here]))).sum()
            phi += torch.where(indices >= 0, distances, 0).sum(dtype=torch.float64)
        return Round(lists, found, int(changed), float(phi))


def _ids(entries: Any) -> Any:
    """Return the ids of entries; -1 for missing entries."""
    return torch.where(entries < 0, MISSING, entries & ID)


def _contained(ids: Any, others: Any) -> Any:
    """Return a mask of the ids that also occur in the same row of `others`."""
    listed = others.sort(1).values
    at = torch.searchsorted(listed, ids.contiguous()).clamp_(max=listed.shape[1] - 1)
    return listed.gather(1, at) == ids
