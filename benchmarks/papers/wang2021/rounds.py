"""wang2021 (GNND), section 4: its rounds without tonari's measurements of recall, and with other updates of the lists.

Samples, matching and locks are tonari's (``tonari.nn_descent.papers.cuda.gnnd``). Here a graph is made by a fixed
number of rounds from p random neighbours, and exact values are computed once, at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tonari.nn_descent.updates import LIST_SIZE, SAMPLES

if TYPE_CHECKING:
    from tonari.core.results.neighbors import Neighbors
    from tonari.nn_descent.papers.cuda.gnnd import Lists

BLOCK = 1 << 16  # number of rows in a block; the proposals of a block are in memory at the same time


def build(
    points: Any,
    k: int,
    *,
    rounds: int,
    update: str,
    list_size: int = LIST_SIZE,
    samples: int = SAMPLES,
    seed: int = 0,
    watch: Callable[[Lists], object] | None = None,
) -> Neighbors:
    """Build an approximate graph by euclidean distances.

    Parameters
    ----------
    points : float32 or float16 tensor of shape (n, d)
    k : int
        At most `list_size`.
    rounds : int
    update : "locks", "proposals", "r2" or "r1"
        See ``updates``.
    list_size : int
        A power of two.
    samples : int
        p, a power of two, 8 or more.
    seed : int
    watch : optional
        Called with the lists after each round; the next round changes these lists.

    Returns
    -------
    Neighbors of shape (n, k)
        Exact distances, float32.
    """
    from tonari.cuda.devices import on
    from tonari.nn_descent.cuda.backend import random_on
    from tonari.nn_descent.cuda.form import form_of
    from tonari.nn_descent.papers.cuda.gnnd import descend, lists_of

    from .updates import UPDATES

    n = len(points)
    with on(points.device):
        form = form_of(points, "euclidean")
        method = UPDATES[update](n, list_size, points.device)
        lists = lists_of(form, random_on(points.device, n, samples, seed), list_size, method.segment)
        for _ in range(rounds):
            descend(form, lists, method, samples, BLOCK)
            if watch is not None:
                watch(lists)
        return finish(points, lists, k)


def finish(points: Any, lists: Lists, k: int) -> Neighbors:
    """Return the k nearest listed points of every row, by exact distances."""
    import torch

    from tonari.core.results.neighbors import Neighbors
    from tonari.exact.cuda.refine.groups import refine_groups
    from tonari.nn_descent.entries import ID

    ids = torch.where(lists.entries < 0, -1, lists.entries & ID)
    return Neighbors(*refine_groups(points, points, ids, k, metric="euclidean", group=1, double=False))
