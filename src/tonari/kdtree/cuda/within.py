"""Find or count the points within a limit of queries on one CUDA device, by walks through the tree.

    order     sort queries by the leaf that they visit first; for the points of the tree, this order is known
    pilot     count the hits of some queries; every query then gets room for the largest count, enough for nearly all
    walk      every query writes its hits into its room, and counts all of them
    again     queries with more hits than room walk once more, with enough room for each
    order     sort each list by (value, id)

A walk visits the leaves that touch a ball, whose centre is the query and whose radius is the limit. For a mean of 32
hits in 3 dimensions, it visits about 7 leaves of 64 points, and reads 6 KB from the cache. The room for all queries is
m times the largest count of the pilot. If distances are similar everywhere, that is about twice the number of hits. If
memory is too short for this room, every query walks twice: to count its hits, and to write them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tonari.core.process.progress import Counter
from tonari.core.results.radius_neighbors import RadiusNeighbors
from tonari.cuda.launch import launch
from tonari.kdtree import tuning
from tonari.kdtree.cuda.search import boxes_of, in_steps, leaves_of, nodes_of, order_of, order_of_points
from tonari.kdtree.cuda.steps import Steps
from tonari.kdtree.cuda.tree import BLOCK, DeviceTree
from tonari.select.cuda.keys import as_bits
from tonari.select.cuda.ordering.ragged import order_lists

UNBOUNDED = 2**31 - 1


class _Unseen:
    """A counter that ignores the queries of an extra walk: the main walk counts them."""

    def add(self, amount: int) -> None:
        pass


class Ball(NamedTuple):
    """The queries of a radius search on one device, with their limits.

    Attributes
    ----------
    queries : tensor of shape (m, d), contiguous, of the dtype of the tree's rows
        Queries whose limit is not negative have magnitudes of at most ``search.largest_of``.
    limits : tensor of shape (m,), of the dtype of the tree's rows
        The largest returned distance of a hit; without NaN and -0.0. A query with a negative limit has no hits.
    metric : str
        One of the metrics that a tree supports.
    own : int64 tensor of shape (m,), optional
        For each query, the number of its own point, which is left out.
    later : bool
        Whether points before the query's own point are left out, too.
    check : callable
        Called between launches; may raise an error to end the search.
    are_points : bool
        Whether the queries are the points of the tree, in the order of their ids.
    """

    queries: Any
    tree: DeviceTree
    limits: Any
    metric: str
    own: Any
    later: bool
    steps: Steps
    check: Callable[[], None]
    are_points: bool = False

    def order(self, *, sort: bool) -> Any:
        """Return the queries' row numbers in the order of the walk: by first leaf if `sort`, else ascending."""
        if sort and self.are_points:
            return order_of_points(self.tree)
        if sort:
            return order_of(self.queries, self.tree, self.metric)
        return torch.arange(len(self.queries), device=self.queries.device)

    def walk(
        self, order: Any, counts: Any, bar: Counter, *, begins: Any = None, room: int = 0, out: Any = None
    ) -> None:
        """Count the hits of the queries in `order`; with `begins`, also write up to `room` hits of each to `out`."""
        from tonari.kdtree.cuda.kernels.within import within_kernel

        tree, listed = self.tree, begins is not None
        double = tree.rows.dtype == torch.float64

        def launch_some(some: Any) -> None:
            launch(
                within_kernel,
                len(some),
                {
                    "queries_ptr": self.queries,
                    "order_ptr": some,
                    "limits_ptr": self.limits,
                    "own_ptr": self.own,
                    "begins_ptr": begins,
                    "values_ptr": as_bits(out[0], "float64" if double else "float32") if listed else None,
                    "found_ptr": out[1] if listed else None,
                    "counts_ptr": counts,
                    "room": room,
                    **boxes_of(tree),
                    **leaves_of(tree),
                },
                constants={
                    **nodes_of(tree, self.metric),
                    "DOUBLE": double,
                    "LISTED": listed,
                    "BLOCK": BLOCK,
                    "HAS_OWN": self.own is not None,
                    "LATER": self.later,
                },
                warps=1,
                fused=False,
            )

        in_steps(order, launch_some, steps=self.steps, check=self.check, bar=bar)


def count_in_ball(ball: Ball, bar: Counter, *, sort: bool) -> Any:
    """Count the points within the limit of each query; return the counts, int64 (m,)."""
    counts = torch.empty(len(ball.queries), dtype=torch.int32, device=ball.queries.device)
    ball.walk(ball.order(sort=sort), counts, bar)
    return counts.long()


def find_in_ball(ball: Ball, bar: Counter, *, sort: bool) -> RadiusNeighbors:
    """Find the points within the limit of each query, each list in the order of (value, id); waits for the device."""
    m, device = len(ball.queries), ball.queries.device
    order = ball.order(sort=sort)
    counts = torch.empty(m, dtype=torch.int32, device=device)
    room = _room(ball, order, counts)
    if room is None:
        ball.walk(order, counts, _Unseen())
        begins = counts.cumsum(0) - counts
        out = _space(ball, int(counts.sum()))
        ball.walk(order, counts, bar, begins=begins, room=UNBOUNDED, out=out)
    else:
        begins = torch.arange(m, device=device) * room
        out = _space(ball, m * room)
        ball.walk(order, counts, bar, begins=begins, room=room, out=out)
        if int(counts.amax()) > room:
            short = (counts > room).nonzero()[:, 0]
            wanted = counts[short].long()
            begins[short] = m * room + wanted.cumsum(0) - wanted
            out = tuple(torch.cat(pair) for pair in zip(out, _space(ball, int(wanted.sum())), strict=True))
            ball.walk(short, counts, _Unseen(), begins=begins, room=UNBOUNDED, out=out)
    return order_lists(begins, counts, *out, descending=False)


def _room(ball: Ball, order: Any, counts: Any) -> int | None:
    """Return the room per query, in hits, which is enough for most queries; None to count all hits first."""
    m = len(order)
    if m < 2 * tuning.PILOT_QUERIES:
        return None
    some = order[:: -(-m // tuning.PILOT_QUERIES)].contiguous()  # few enough for one launch
    ball.walk(some, counts, _Unseen())
    room = -(-int(counts[some].max()) // 16) * 16 or 16
    return room if m * room * (4 + ball.limits.element_size()) <= tuning.ROOM_BYTES else None


def _space(ball: Ball, size: int) -> tuple[Any, Any]:
    """Allocate values and ids for `size` hits."""
    device = ball.queries.device
    return torch.empty(size, dtype=ball.limits.dtype, device=device), torch.empty(
        size, dtype=torch.int32, device=device
    )
