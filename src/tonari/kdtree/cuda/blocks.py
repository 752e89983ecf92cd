"""Answer queries block by block on one device, while the next queries and the previous results are copied.

    host memory  --prefetch.py-->  queries of block b + 1
                                   search of block b
    host memory  <--staging.py---  lists of block b - 1

For d = 10, k = 10 and float32, a query has 40 bytes and its result 80 bytes. At 50 GB/s in both directions at once,
copying them takes 0.8 and 1.6 ns. The host's threads copy all 120 bytes from or to pinned buffers in 4 ns at 30 GB/s.
If the search takes 10 ns per query, these copies take no additional time, except for the first queries and the last
results. Plain copies at 5 to 10 GB/s cannot overlap the search, and take an additional 12 to 24 ns.

If the points are searched slab by slab, the best neighbours so far are copied to the device with their queries, another
80 bytes per query, and back after the results of the slab have been merged into them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from tonari import inputs
from tonari.core.process.progress import Counter
from tonari.core.results.neighbors import Neighbors
from tonari.core.rows.slices import cut
from tonari.cuda.copying.prefetch import slabs_of
from tonari.cuda.copying.staging import Collector
from tonari.cuda.devices import over, to_device
from tonari.kdtree.cuda.search import TreeSearch, beyond, order_of, order_of_points, walk_in_steps
from tonari.kdtree.cuda.steps import Steps
from tonari.kdtree.cuda.tree import DeviceTree
from tonari.kdtree.papers.cuda.buffered import search_by_rounds
from tonari.kdtree.papers.rounds import Rounds
from tonari.kdtree.plan import TreePlan
from tonari.select.cuda.ordering.merge import empty_lists, merge_into


class Asked(NamedTuple):
    """The arguments of a search that all blocks of queries on one device have in common.

    Attributes
    ----------
    check : callable
        Called between launches; may raise an error to end the search.
    bar : Counter
        Counts finished queries.
    rounds : Rounds, optional
        Output: the counters of the buffered traversal.
    """

    plan: TreePlan
    self_join: bool
    check: Callable[[], None]
    bar: Counter
    steps: Steps
    rounds: Rounds | None


def answer_blocks(
    queries: Any, part: slice, tree: DeviceTree, first_point: int, found: Neighbors, asked: Asked
) -> npt.NDArray[np.int64]:
    """Answer queries from the tree of one slab; return the row numbers of the queries that need brute force instead.

    Parameters
    ----------
    queries : array or tensor of shape (m, d)
    part : slice
        The queries that this device answers.
    first_point : int
        The row number of the first point of the slab.
    found : Neighbors of shape (m, k)
        Output. Arrays for queries in host memory, else tensors. It receives the results if the tree has all points;
        otherwise the results are merged into it. Afterwards, the rows of queries that need brute force have arbitrary
        values.
    """
    tree.written.read()
    device = tree.rows.device
    blocks = [
        slice(part.start + here.start, part.start + here.stop)
        for here in cut(part.stop - part.start, asked.plan.query_block)
    ]
    merging = tree.n < asked.plan.n
    staged = isinstance(queries, np.ndarray) and len(blocks) > 1
    parts = [queries, *found] if merging else [queries]
    left: list[npt.NDArray[np.int64]] = []
    with contextlib.ExitStack() as stack:
        results = stack.enter_context(_Results(queries, found, device, staged=staged))
        arriving = slabs_of(parts, blocks, device) if staged else _moved(parts, blocks, device)
        stack.enter_context(contextlib.closing(arriving))
        for here, (rows, *best) in zip(blocks, arriving, strict=True):
            if asked.self_join and not merging:  # queries that are points of the tree are in range
                far = torch.zeros(len(rows), dtype=torch.bool, device=device)
            else:
                far = beyond(rows, asked.plan.metric)
            in_place = None if merging else results.in_place(here)
            lists = _search(rows, here, tree, first_point, in_place, far, asked)
            if merging:
                merged = Neighbors(*(one.clone() if staged else one for one in best))
                merge_into(merged, lists, first_point, asked.plan.metric, device)
                lists = merged
            left.extend(results.finish())
            results.begin(here, lists, far)
            del rows, best, lists
        left.extend(results.finish())
    return np.concatenate(left)


def new_lists(plan: TreePlan, m: int, k: int, device: Any) -> Neighbors:
    """Allocate neighbour lists of shape (m, k) on a device, without initial values."""
    return empty_lists(m, k, plan.n, double=plan.held == "float64", device=device)


def _moved(given: list[Any], blocks: list[slice], device: Any) -> Generator[list[Any], None, None]:
    """Yield, for each block, its rows of every array in `given`, copied to the device when they are requested."""
    for here in blocks:
        yield [to_device(rows[here], device) for rows in given]


def _search(
    given: Any, here: slice, tree: DeviceTree, first_point: int, out: Neighbors | None, far: Any, asked: Asked
) -> Any:
    """Launch the search of a block of queries, and return the lists that it writes: `out`, or new lists.

    The walk marks in `far` the queries that it gives up, which brute force has to answer.
    """
    plan, device, m, k = asked.plan, tree.rows.device, len(given), min(asked.plan.k, tree.n)
    rows = given.to(tree.rows.dtype).contiguous()
    if plan.sort and asked.self_join and m == tree.n == plan.n:
        order = order_of_points(tree)
    else:
        order = order_of(rows, tree, plan.metric) if plan.sort else torch.arange(m, device=device)
    own = torch.arange(here.start - first_point, here.stop - first_point, device=device) if asked.self_join else None
    lists = new_lists(plan, m, k, device) if out is None else out
    search = TreeSearch(rows, tree, k, plan.metric, lists, own)
    if plan.traversal == "buffered":
        search_by_rounds(search, order, buffer=plan.buffer, check=asked.check, bar=asked.bar, rounds=asked.rounds)
    else:
        walk_in_steps(
            search,
            order,
            most_visits=plan.most_visits,
            given_up=far,
            steps=asked.steps,
            check=asked.check,
            bar=asked.bar,
        )
    return lists


class _Results:
    """The result of a search, to which neighbour lists are copied block after block; use it as a context manager.

    Parameters
    ----------
    queries : array or tensor of shape (m, d)
    found : Neighbors of shape (m, k)
        Output.
    device : torch device
        The device of the lists.
    staged : bool
        Whether the lists of a block are copied to host memory while the next block is searched.
    """

    def __init__(self, queries: Any, found: Neighbors, device: Any, *, staged: bool) -> None:
        self._queries, self._found, self._device = queries, found, device
        self._views = tensors_of(found)
        self._collector = Collector(device) if staged else None
        self._under_way: tuple[slice, Any] | None = None

    def in_place(self, here: slice) -> Neighbors | None:
        """Return the rows of the result for a block if the search can write to them on the device, else None."""
        if self._collector is not None or self._views.distances.device != self._device:
            return None
        return Neighbors(*(view[here] for view in self._views))

    def begin(self, here: slice, lists: Neighbors, far: Any) -> None:
        """Start copying the lists of a block, and `far`, a bool tensor that marks the queries that need brute force."""
        if self._collector is None:
            for view, values in zip(self._views, lists, strict=True):
                view[here] = values
        else:
            far_here = np.empty(len(far), np.bool_)
            wanted = [*(part[here] for part in self._found), far_here]
            for source, out in zip((*lists, far), wanted, strict=True):
                self._collector.collect(source, out)
            far = far_here
        self._under_way = here, far

    def finish(self) -> Iterator[npt.NDArray[np.int64]]:
        """Wait for the copies in progress; yield an array with the row numbers of queries that need brute force."""
        if self._under_way is None:
            return
        (here, far), self._under_way = self._under_way, None
        if self._collector is not None:
            self._collector.arrive()
        numbers = np.flatnonzero(far if isinstance(far, np.ndarray) else far.cpu().numpy())
        if len(numbers):
            inputs.check_values(self._queries[here], "queries", first=here.start, nonnegative=False)
        yield numbers + here.start

    def __enter__(self) -> _Results:
        return self

    def __exit__(self, *failed: Any) -> None:
        if self._collector is not None:
            self._collector.__exit__(*failed)


def tensors_of(found: Neighbors) -> Neighbors:
    """Return lists as tensors that share the memory of the given arrays or tensors."""
    return Neighbors(*(over(part) if isinstance(part, np.ndarray) else part for part in found))
