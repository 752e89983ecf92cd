"""Verify a screen: for some queries, compare its lower bound for every group with scores in float64.

The screen's value of a group (its minimum) must be a lower bound of the scores of all members, and as tight as the
error bound allows. A group that a row's list leaves out must have no member below the row's threshold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...harness.datasets.hard import DeviceData
from ...harness.proof import WrongAnswer

PROVED_ROWS = 32
# Maximum number of float64 values in memory at once: 1 GB.
BLOCK = 1 << 27
UNIT = 2.0**-24


class Packed(NamedTuple):
    """Data, packed queries and points, the packing parameters `form`, and the number of points in a `group`."""

    data: DeviceData
    queries: Any
    points: Any
    form: Any
    group: int


def check_lists(lists: Any, thresholds: Any, rows: Any, packed: Packed) -> int:
    """Raise WrongAnswer unless the lists of some rows are right; return the number of lists that did not overflow.

    An entry of a list is 16 times the index of a group, plus a bit for each part of the group that may have a point at
    or below the threshold; entries whose minimum is +inf are padding. The lower bound that a list claims is the minimum
    for a listed group, and the threshold for other groups and for parts without a bit.
    """
    import torch

    from tonari.exact.cuda.rows.groups import LEAST_GROUP, LISTED, group_count

    n = len(packed.data.points)
    rows = rows[(lists.counts <= lists.room).all(dim=1).cpu().numpy()[rows]]
    chosen = torch.from_numpy(rows).to(thresholds.device)
    whole, parts = (thresholds[chosen][:, None].repeat(1, group_count(n, group)) for group in (LISTED, LEAST_GROUP))
    listed = torch.zeros_like(whole, dtype=torch.bool)
    for at, row in enumerate(rows):
        real = lists.values[row] < torch.inf
        entries, values = lists.entries[row][real].long(), lists.values[row][real]
        groups = entries >> 4
        if len(groups.unique()) < len(groups):
            raise WrongAnswer(f"the list of query {row} names a group twice")
        if bool((values > thresholds[row]).any()):
            raise WrongAnswer(f"the list of query {row} holds a minimum above its threshold")
        whole[at, groups], listed[at, groups] = values, True
        for part in range(LISTED // LEAST_GROUP):
            marked = (entries >> part) & 1 == 1
            # index of the part among all groups of its size, as in groups.py
            numbers = (groups // 4) * 4 * (LISTED // LEAST_GROUP) + 4 * part + groups % 4
            parts[at, numbers[marked]] = values[marked]
    check_bounds(whole, listed, rows, packed._replace(group=LISTED))
    return check_bounds(parts, torch.zeros_like(parts, dtype=torch.bool), rows, packed._replace(group=LEAST_GROUP))


def proved_rows(m: int) -> Any:
    """Return the row numbers of the queries to verify, as a NumPy array."""
    return np.unique(np.linspace(0, m - 1, PROVED_ROWS).astype(int))


def check_bounds(lower: Any, listed: Any, rows: Any, packed: Packed) -> int:
    """Raise WrongAnswer unless the lower bounds in some rows hold for every group; return the number of rows.

    Let E be the error bound that the screen subtracts for a tile. The minimum of a listed group is below the group's
    smallest score by at most 2 E + 3 γ max |a|, apart from rounding: E is subtracted, the products may be wrong by E,
    and γ|a| bounds the rounding of `low` and of its sum.
    """
    import torch

    from tonari.exact.cuda.rows.groups import POINT_TILE, group_count, members

    (points, queries), packed_queries, packed_points, form, group = packed
    n, d = points.shape
    chosen = torch.from_numpy(rows).to(lower.device)
    q = (queries[chosen].double() - form.centre) * form.scale
    norm, rest = (part[chosen].double()[:, None] for part in (packed_queries.norm, packed_queries.rest))
    roundings = (4 * d + 64) * UNIT
    gamma = roundings / (1 - 2 * roundings)
    per_tile = POINT_TILE // group
    step = max(1, BLOCK // d // POINT_TILE) * POINT_TILE
    for start in range(0, n, step):
        x = (points[start : start + step].double() - form.centre) * form.scale
        squares = (x * x).sum(dim=1)
        tiles = -(-len(x) // POINT_TILE)
        scores = torch.full((len(rows), tiles * POINT_TILE), torch.inf, dtype=torch.float64, device=x.device)
        scores[:, : len(x)] = squares - 2 * (q @ x.T)
        columns = torch.from_numpy(members(np.arange(group_count(len(x), group)), group)).to(x.device)
        least = scores[:, columns].amin(dim=2)
        real = least < torch.inf
        first = start // POINT_TILE
        tile_range = slice(first, first + tiles)
        group_range = slice(first * per_tile, (first + tiles) * per_tile)
        bound = norm * packed_points.e1[tile_range].double() + rest * packed_points.e2[tile_range].double()
        slack = 2.01 * bound + 3.01 * gamma * squares.max() + 1e-6 * least[real].abs().max()
        claimed = lower[:, group_range].double()
        loosest = least - slack.repeat_interleave(per_tile, dim=1)
        for fault, message in (
            (~(claimed <= least), "is above a member's score"),
            (~(claimed >= loosest) & listed[:, group_range], "is below what the bound allows"),
        ):
            wrong = fault & real
            if bool(wrong.any()):
                row, column = (int(i) for i in wrong.nonzero()[0])
                raise WrongAnswer(
                    f"the minimum of group {first * per_tile + column} for query {rows[row]} {message}: "
                    f"{claimed[row, column].item()}, the smallest score is {least[row, column].item()}"
                )
    return len(rows)
