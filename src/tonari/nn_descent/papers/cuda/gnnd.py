"""A round of wang2021 (GNND, section 4): each point introduces its neighbours to one another.

    sample    the first p NEW and the first p OLD entries of each list, then points that sample this one, up to 2p   4.1
    match     a point's NEW samples with each other and with its OLD ones, as tiles on matrix units                  4.2
    propose   to each sample its nearest NEW one and, if it is NEW itself, its nearest OLD one                       4.3
    insert    proposals are inserted into the lists of their targets; each segment of 32 entries has a spinlock      4.3

The paper matches and inserts in one kernel. Here these are two kernels; the first writes the proposals of a block of
rows to memory, which are few bytes compared with the rows that it gathers. Distances are computed from the rows in half
precision of ``form.py``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch

from tonari.core.results.neighbors import Neighbors
from tonari.cuda.devices import on
from tonari.cuda.launch import launch
from tonari.exact.cuda.refine.groups import refine_groups
from tonari.nn_descent.backend import Known, Round
from tonari.nn_descent.cuda.backend import CudaBackend
from tonari.nn_descent.cuda.form import STEP, Form
from tonari.nn_descent.entries import ID, MISSING, NEW
from tonari.nn_descent.memory import list_bytes
from tonari.nn_descent.updates import SEGMENT
from tonari.select.cuda.ordering.merge import empty_lists

_PAIRS = 1024  # pairs (sampled point, row) per program of append_kernel
_WARPS = 4
_REGISTERS = 128  # registers per thread of cross_kernel, such that four programs fit on a multiprocessor


class Lists(NamedTuple):
    """Neighbour lists of n points during a run, in segments; kernels/lists.py defines the order.

    Attributes
    ----------
    entries : int32 tensor of shape (n, list_size)
        See ``entries.py``.
    distances : float32 tensor of the same shape
        Scaled distances in the form; infinite for missing entries.
    """

    entries: Any
    distances: Any

    def arguments(self) -> dict[str, Any]:
        """Return the tensors under the names of the kernels' arguments."""
        return {"entries_ptr": self.entries, "distances_ptr": self.distances}


def lists_of(form: Form, entries: Any, size: int, segment: int) -> Lists:
    """Compute the distances of entries, and return lists of `size` entries per point.

    `entries` is int32 of shape (n, columns), with -1 for missing entries.
    """
    from tonari.nn_descent.papers.cuda.kernels.lists import lists_kernel

    (n, columns), device = entries.shape, entries.device
    lists = Lists(
        torch.full((n, size), MISSING, dtype=torch.int32, device=device),
        torch.full((n, size), torch.inf, dtype=torch.float32, device=device),
    )
    width = 1 << (columns - 1).bit_length()
    launch(
        lists_kernel,
        n,
        {**arguments_of(form), "listed_ptr": entries, **lists.arguments(), "columns": columns},
        constants=shape_of(form) | {"WIDTH": width, "SIZE": size, "SEGMENT": segment, "ID": ID},
        warps=_WARPS,
    )
    return lists


class Spinlocks:
    """The paper's update of lists: a warp holds the spinlock of a segment while it inserts a proposal.

    Parameters
    ----------
    device : torch.device
    segment : int
        Entries that one lock guards, at most `list_size`.
    """

    def __init__(self, n: int, list_size: int, device: Any, segment: int = SEGMENT) -> None:
        self.segment = min(segment, list_size)
        self._locks = torch.zeros((n, list_size // self.segment), dtype=torch.int32, device=device)

    def reverse(self, samples: Any, room: int) -> Any:
        """Return, for each point, up to `room` rows that have it among their samples: int32 (n, room).

        Their order depends on the timing of the GPU's threads.
        """
        from tonari.nn_descent.papers.cuda.kernels.append import append_kernel

        n, count = samples.shape
        counts = torch.zeros(n, dtype=torch.int32, device=samples.device)
        found = torch.full((n, room), MISSING, dtype=torch.int32, device=samples.device)
        launch(
            append_kernel,
            -(-samples.numel() // _PAIRS),
            {"listed_ptr": samples, "counts_ptr": counts, "reverse_ptr": found, "pairs": samples.numel()},
            constants={"SAMPLES": count, "ROOM": room, "BLOCK": _PAIRS},
            warps=_WARPS,
        )
        return found

    def renew(self, form: Form, lists: Lists, new: Any, old: Any, rows: range, boundary: int | None) -> None:
        """Compare the samples of each row with one another, and insert the resulting proposals into the lists."""
        self.insert(lists, *cross(form, lists, new, old, rows, self.segment, boundary))

    def insert(self, lists: Lists, keys: Any, ids: Any) -> None:
        """Insert proposals (rows, 3, 2p) into lists; each warp processes the proposals of one row and one kind."""
        from tonari.nn_descent.papers.cuda.kernels.insert import insert_kernel

        rows, kinds, batch = keys.shape
        size = lists.entries.shape[1]
        launch(
            insert_kernel,
            rows * kinds,
            {"keys_ptr": keys, "ids_ptr": ids, **lists.arguments(), "locks_ptr": self._locks},
            constants={"BATCH": batch, "SIZE": size, "SEGMENT": self.segment, "NEW": NEW, "ID": ID},
            warps=1,
        )


def descend(form: Form, lists: Lists, update: Spinlocks, samples: int, block: int, boundary: int | None = None) -> None:
    """Run one round (algorithm 1, lines 8 to 33); the lists change in place.

    Parameters
    ----------
    form : Form of n points
    samples : int
        The paper's p.
    block : int
        The number of rows whose proposals are in memory at once.
    boundary : int, optional
        Compare only points of different graphs: ids below this number belong to the first graph (section 5.1).
    """
    n = len(lists.entries)
    new, old = (join(own, update.reverse(own, 2 * samples)) for own in sample(lists, samples))
    for first in range(0, n, block):
        update.renew(form, lists, new, old, range(first, min(first + block, n)), boundary)


def sample(lists: Lists, samples: int) -> tuple[Any, Any]:
    """Return the NEW and the OLD samples of each list, int32 (n, samples), padded with -1; NEW samples become OLD."""
    from tonari.nn_descent.papers.cuda.kernels.sample import sample_kernel

    (n, size), device = lists.entries.shape, lists.entries.device
    new, old = (torch.full((n, samples), MISSING, dtype=torch.int32, device=device) for _ in range(2))
    rows = rows_of_a_program(device)
    launch(
        sample_kernel,
        -(-n // rows),
        {**lists.arguments(), "new_ptr": new, "old_ptr": old, "n": n},
        constants={"SIZE": size, "SAMPLES": samples, "ROWS": rows, "NEW": NEW, "ID": ID},
        warps=_WARPS,
    )
    return new, old


def join(own: Any, reverse: Any) -> Any:
    """Return the samples of one kind joined with the reverse samples, int32 (n, 2p), padded with -1."""
    from tonari.nn_descent.papers.cuda.kernels.join import join_kernel

    n, samples = own.shape
    joined = torch.empty_like(reverse)
    rows = rows_of_a_program(own.device)
    launch(
        join_kernel,
        -(-n // rows),
        {"own_ptr": own, "reverse_ptr": reverse, "samples_ptr": joined, "n": n},
        constants={"SAMPLES": samples, "ROWS": rows},
        warps=_WARPS,
    )
    return joined


def cross(
    form: Form, lists: Lists, new: Any, old: Any, rows: range, segment: int, boundary: int | None
) -> tuple[Any, Any]:
    """Return the proposals of some rows: keys, int64, and ids, int32, both (rows, 3, 2p); see kernels/cross.py."""
    from tonari.nn_descent.papers.cuda.kernels.cross import cross_kernel

    tile, device = new.shape[1], new.device
    keys = torch.empty((len(rows), 3, tile), dtype=torch.int64, device=device)
    ids = torch.empty((len(rows), 3, tile), dtype=torch.int32, device=device)
    launch(
        cross_kernel,
        len(rows),
        {
            **arguments_of(form),
            "new_ptr": new,
            "old_ptr": old,
            "distances_ptr": lists.distances,
            "keys_ptr": keys,
            "ids_ptr": ids,
            "first": rows.start,
            "boundary": 0 if boundary is None else boundary,
        },
        constants={
            **shape_of(form),
            "TILE": tile,
            "SIZE": lists.entries.shape[1],
            "SEGMENT": segment,
            "ACROSS": boundary is not None,
            "SYMMETRIC": form.query_terms is form.member_terms,
        },
        warps=_WARPS,
        registers=_REGISTERS,
    )
    return keys, ids


def arguments_of(form: Form) -> dict[str, Any]:
    """Return the tensors of a form under the names that kernels give to these arguments."""
    return {"rows_ptr": form.rows, "query_terms_ptr": form.query_terms, "member_terms_ptr": form.member_terms}


def shape_of(form: Form) -> dict[str, int]:
    """Return two constants of kernels: the number of columns, and the number of columns loaded in one step."""
    width = form.rows.shape[1]
    return {"D": width, "STEP": 2 * STEP if width % (2 * STEP) == 0 else STEP}


def rows_of_a_program(device: Any) -> int:
    """Return the rows per program: 1 on a GPU, where one row fills the registers; more in Triton's interpreter."""
    return 1 if device.type == "cuda" else 16


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
