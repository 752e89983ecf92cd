"""Divide a search into blocks of queries and slices of points; choose a self-join's active rows, and the sample.

Active rows have their lists of candidates in memory at the same time. A sample of the points gives a first threshold
for each query.
"""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.core.problem import Problem
from tonari.exact import tuning
from tonari.exact.memory import GROUPS_FIT, JOIN_BLOCK, SURVIVOR_BYTES, TILE, join_row_bytes, shares_enough
from tonari.metrics import get_metric

# Numbers of columns among which a pilot chooses: LOOKED for a look before a screen of all columns, LOOKED_FIRST for a
# look before a screen of contracted rows, and _CONTRACTED for a screen of contracted rows.
LOOKED, LOOKED_FIRST = 64, 32
_CONTRACTED = (LOOKED, 96)


def form_dim_of(problem: Problem, given: dict[str, Any]) -> int:
    d = problem.d
    form_dim = int(given.get("form_dim", d))
    if form_dim > d:
        raise ValueError(f"form_dim={form_dim}: rows have {d} columns; expected at most that")
    if form_dim < d and get_metric(problem.metric).elementwise:
        raise ValueError(f"form_dim={form_dim}: metric={problem.metric!r} compares all {d} columns; leave form_dim out")
    return form_dim


def look_dim_of(problem: Problem, given: dict[str, Any]) -> int:
    look_dim, form_dim = int(given.get("look_dim", 0)), int(given.get("form_dim", problem.d))
    if look_dim == 0:
        return 0
    if get_metric(problem.metric).elementwise:
        raise ValueError(f"look_dim={look_dim}: metric={problem.metric!r} compares all columns; leave look_dim out")
    if not 2 <= look_dim < form_dim:
        of = "of rows" if form_dim == problem.d else "of form_dim"
        raise ValueError(f"look_dim={look_dim}: expected 0, or 2 or more columns, fewer than the {form_dim} {of}")
    if problem.memory is not None or not given.get("resident", True):
        raise ValueError(f"look_dim={look_dim}: a look needs all points in memory; leave out memory and resident")
    return look_dim


def contracted_widths(d: int) -> list[int]:
    """Return the possible numbers of contracted columns for rows of d columns, ascending; a pilot chooses one."""
    return [columns for columns in _CONTRACTED if tuning.CONTRACT_FROM * columns <= d]


def pilot_decides(problem: Problem, given: dict[str, Any]) -> bool:
    """Whether a pilot chooses the number of compared columns when the points are prepared."""
    # A pilot decides only without overrides and without a budget: with a budget, the number of points that stay packed
    # has been computed for all columns. Rows of 8-bit integers have no pilot, because they are exact in int8, but not
    # as contracted rows.
    floats = inputs.dtype_of(problem.dtype).kind not in "iu"
    products = not get_metric(problem.metric).elementwise
    return not given and problem.memory is None and floats and products and problem.d >= tuning.CONTRACT_FROM * LOOKED


def query_block(m: int, k: int, threads: int) -> int:
    room = tuning.BLOCK_BYTES // (max(2048, 4 * k) * SURVIVOR_BYTES)
    fair = -(-m // (2 * threads))  # two blocks per thread keep all threads busy until the end
    block = min(tuning.QUERY_BLOCK, max(TILE, fair), max(1, room))
    return min(m, -(-block // TILE) * TILE if block > TILE else block)


def point_chunk(n: int, d: int, threads: int) -> int:
    most = max(GROUPS_FIT, tuning.CHUNK_VALUES // d // GROUPS_FIT * GROUPS_FIT)
    shared = max(tuning.LEAST_CHUNK, n // (tuning.SLICES_PER_THREAD * threads)) if threads > 1 else n
    return min(most, -(-shared // GROUPS_FIT) * GROUPS_FIT, -(-n // GROUPS_FIT) * GROUPS_FIT)


def sample_of(n: int, k: int) -> tuple[int, int]:
    """Return stride and rank of a sampled threshold (matsumoto2015, section IV), for a sample of about 8 k points.

    The sample contains k / stride of the k nearest points on average. The rank is three standard deviations above that
    number, so that the threshold is too low for about one row in a thousand, which is then searched again.
    """
    stride = n // (8 * k)
    if k < tuning.SAMPLE_FROM_K or stride < 4:
        return 0, 0
    expected = k / stride
    return stride, int(expected + 3.0 * expected**0.5 + 3.0)


def checked_sample(stride: Any, rank: Any, splits: int) -> tuple[int, int]:
    if (stride == 0) != (rank == 0):
        raise ValueError(
            f"sample_stride={stride} and sample_rank={rank}: a sample needs both, and 0 for both means no sample"
        )
    if stride and splits > 1:
        raise ValueError(
            f"point_splits={splits} parts are searched in parallel and cannot share a sample: set only one of the two"
        )
    return stride, rank


def can_join(metric: str, d: int, isa: str) -> bool:
    """Return whether one product of two points can be used for both points, and is faster than two products."""
    return get_metric(metric).form == "gemm" and d >= tuning.JOIN_FROM[isa][1]


def checked_active(active: Any, self_join: bool) -> int:
    if active and (not self_join or active % JOIN_BLOCK):
        raise ValueError(f"active_rows={active}: expected a multiple of {JOIN_BLOCK}, and only for a self-join")
    return int(active)


def active_rows(problem: Problem) -> int:
    """Return the number of active rows of a self-join: rows whose lists of candidates fit into memory together.

    The number is 0 if it would save no time to use each product for both of its rows.
    """
    n = problem.n
    room = max(tuning.JOIN_BYTES, n * problem.d * inputs.dtype_of(problem.dtype).itemsize)
    active = min(-(-n // JOIN_BLOCK), room // join_row_bytes(problem.k) // JOIN_BLOCK) * JOIN_BLOCK
    return active if shares_enough(active, n) else 0
