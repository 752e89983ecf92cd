"""The plan of a k-d tree search, on the CPU or on CUDA: one frozen record of every choice.

Like every plan, it depends only on the problem and the machine, not on the data. Whether a tree is faster than brute
force does depend on the data, which :mod:`tonari.methods.auto` examines.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.plan import Override, Plan
from tonari.core.problem import Problem
from tonari.core.process.caches import cached
from tonari.core.process.host_memory import free_host_memory
from tonari.core.process.isa import without_amx
from tonari.core.process.workers import default_threads
from tonari.core.results.neighbors import index_dtype, value_dtype
from tonari.costs.model import arrival_seconds, build_seconds, expected_visits, tree_seconds, tree_work
from tonari.cuda import tuning as cuda_tuning
from tonari.cuda.memory import available
from tonari.inputs.overrides import check_overrides
from tonari.kdtree import tuning
from tonari.kdtree.cpu.tree import check_height, plan_height
from tonari.kdtree.memory import OnCuda, TreeMemory, TreeNeeds, on_cpu
from tonari.kdtree.traversal import buffer_of, check_supported, choose
from tonari.metrics import METRICS, get_metric
from tonari.metrics.problem import refuse_metric

# Metrics whose distance to a box is a lower bound of the distance to every point in the box.
TREE_METRICS = tuple(name for name, metric in METRICS.items() if metric.in_trees)
TREE_ISAS = ("generic", "avx2", "avx512", "neon")  # instruction sets that have compiled tree kernels


OVERRIDES = {
    "height": Override("the tree has 2**height leaves", least=0),
    "leaf": Override("target number of points per leaf, instead of height"),
    "sort": Override("whether queries are searched in the order of their leaves", "flag"),
    "query_block": Override("queries per task"),
    "traversal": Override('"walk", each query to its end, or "buffered", by the rounds of gieseke2014', "word"),
    "buffer": Override("B of the buffered traversal: queries per leaf buffer; a round takes five times as many"),
    "isa": Override("instruction set: generic, avx2, avx512 or neon", "word"),
}
OVERRIDES_ON_CUDA = {name: known for name, known in OVERRIDES.items() if name != "isa"} | {
    "point_slab": Override("points per tree"),
    "most_visits": Override("nodes and leaves that a query of the walk may visit before it is left to brute force"),
}

MOST_K_ON_CUDA, MOST_DIMENSIONS_ON_CUDA = 64, 32


@dataclass(frozen=True, kw_only=True)
class TreePlan(Plan):
    """Every choice of one exact k-d tree search.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, metric, method : str
        Names: the dtype of the points, the metric, and "kdtree".
    held : str
        Data type of the points in the tree: "float64" if points or queries are float64, else "float32".
    device : str
        "cpu" or "cuda".
    devices : tuple of str
        "cuda:0" and so on; empty on the CPU. Several devices share the queries, and each has the whole tree.
    isa : str
        Instruction set: generic, avx2, avx512 or neon; "" on CUDA.
    height : int
        The tree has 2**height leaves.
    leaf : int
        Target leaf size: the height is the smallest one at which no leaf is larger.
    point_slab : int
        Points per tree: n, or fewer on CUDA if a tree of all points does not fit. Each slab of points then has a tree
        of its own, and every search searches these trees one after another.
    kept_bytes : int
        Host memory in which prepared points keep the trees of the slabs. 0 if there is only one tree, or if the trees
        would take more than half of the free host memory; every search then builds them again. Not included in
        total_bytes.
    sort : bool
        Whether queries are sorted by the leaf that contains them, so that queries that need the same leaves are
        adjacent. False keeps their order.
    query_block : int
        Queries that a thread takes at once on the CPU, or a device on CUDA. While a device searches a block of queries
        from host memory, the next block is copied to it, and the results of the previous block are copied back. The
        buffered traversal keeps the state of this many queries in memory, for each thread or device.
    traversal : str
        "walk": a query visits all its leaves before the next query begins. "buffered": queries wait in the buffers of
        leaves, and a leaf is compared with all queries in its buffer at once; on the CPU only for euclidean and
        sqeuclidean in float32. The result is the same.
    buffer : int
        Queries per leaf buffer; all buffers are emptied when one is half full. 0 for the walk.
    most_visits : int
        The number of nodes and leaves that a query may visit; a query that needs more is answered by brute force. 0 for
        no limit. The result is the same, but queries that would visit most of the tree take less time.
    threads : int
        CPU threads; 0 on CUDA.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory beyond the input, per device on CUDA: for the tree, for rows copied from host memory, for the temporary
        data of the build or the search, and for the results.
    seconds : float
        Rough estimate, including the build, for points that fill their space evenly; most data take less.
    """

    held: str
    height: int
    leaf: int
    point_slab: int
    kept_bytes: int
    sort: bool
    query_block: int
    traversal: str
    buffer: int
    most_visits: int

    def for_problem(self, problem: Problem) -> TreePlan:
        """Return the plan adapted to a problem: float64 queries need a float64 tree even if the points are float32."""
        super().for_problem(problem)
        held = held_as(self.dtype, problem.query_dtype)
        check_supported(self.traversal, self.metric, held, on_cuda=bool(self.devices))
        return dataclasses.replace(self, held=held)

    @functools.cached_property
    def build_seconds(self) -> float:
        """Rough estimate of the build time in seconds."""
        return build_seconds(self)


def plan_tree(
    problem: Problem, *, free_bytes: int | None = None, prepared_by: TreePlan | None = None, **overrides: Any
) -> TreePlan:
    """Plan a k-d tree search; see :func:`tonari.plan`.

    Parameters
    ----------
    free_bytes : int, optional
        On CUDA, the memory that is available on each device. Default: the memory that is free.
    prepared_by : TreePlan, optional
        The plan of an existing tree. The number of threads is then chosen for the work of the search alone. On CUDA,
        the memory that a tree of all points takes counts as available, and trees have at most as many points as in that
        plan.
    **overrides
        Fields listed in :data:`OVERRIDES` and :data:`OVERRIDES_ON_CUDA`.

    Raises
    ------
    Unsupported
        A tree cannot solve the problem, or the requested traversal cannot.
    ValueError
        An override is invalid, or the budget is too small.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> made = plan_tree(make_problem(10**6, 10**5, 10, 10, dtype="float32", metric="euclidean", threads=2))
    >>> made.height, made.leaf, made.held
    (14, 64, 'float32')
    """
    if problem.devices and problem.memory is None and free_bytes is None and prepared_by is None and not overrides:
        small = _plan_within_spare(problem)
        if small is not None:
            return small
    why_not = refusal(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, OVERRIDES_ON_CUDA if problem.devices else OVERRIDES)
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    held = np.dtype(held_as(problem.dtype, problem.query_dtype))
    on_cuda, traversal = bool(problem.devices), choose(overrides)
    check_supported(traversal, problem.metric, held.name, on_cuda=on_cuda)
    height, leaf = _shape(n, d, overrides, traversal, on_cuda=on_cuda)
    most_visits = int(overrides.get("most_visits", 0))
    if most_visits and traversal != "walk":
        raise ValueError("most_visits: only the walk counts visits; leave traversal='buffered' out")
    isa, threads = "", 0
    if not problem.devices:
        isa = without_amx(overrides.get("isa"))
        work = tree_work(problem, isa, height, held.itemsize, prepared=prepared_by is not None)
        threads = problem.threads or default_threads(work)
    needs = TreeNeeds(
        n=n,
        m=-(-m // (len(problem.devices) or 1)),
        d=d,
        held=held.itemsize,
        row_out=k * (held.itemsize + index_dtype(n).itemsize),
        query_block=overrides.get("query_block"),
        buffered=traversal == "buffered",
    )
    budget, slab, kept = problem.memory, n, 0
    if problem.devices:
        free = available(problem.devices, free_bytes)
        if prepared_by is not None and prepared_by.point_slab == n:
            free += prepared_by.packed_bytes + prepared_by.copied_bytes
        budget = free if budget is None else min(budget, free)
        slab, kept, memories = _on_cuda(problem, needs, leaf, budget, overrides.get("point_slab"), prepared_by)
        if most_visits and slab < n:
            raise ValueError(f"most_visits: needs one tree of all {n} points, not trees of {slab}")
    else:
        memories = on_cpu(needs, k, height, threads)
    made = TreePlan(
        **problem.plan_fields(),
        method="kdtree",
        held=held.name,
        isa=isa,
        height=height,
        leaf=leaf,
        point_slab=slab,
        kept_bytes=kept,
        sort=bool(overrides.get("sort", True)),
        query_block=memories.block,
        traversal=traversal,
        buffer=buffer_of(traversal, overrides, height, on_cuda=on_cuda),
        most_visits=most_visits,
        threads=threads,
        packed_bytes=memories.packed,
        copied_bytes=memories.copied,
        working_bytes=memories.working,
        output_bytes=memories.output,
        seconds=0.0,
    )
    searching = tree_seconds(made, m, expected_visits(n, d, k, height))
    made = dataclasses.replace(made, seconds=arrival_seconds(problem) + made.build_seconds + searching)
    if budget is not None and made.total_bytes > budget:
        raise BudgetExceeded(
            f"a memory budget of {budget} bytes cannot hold a tree of these points and its search: allow at least "
            f"{made.total_bytes}, or use method='exact'",
            least=made.total_bytes,
        )
    return made


@cached(maxsize=1024)
def _plan_within_spare(problem: Problem) -> TreePlan | None:
    """Plan one tree and all queries at once, on CUDA, in the memory that is assumed to be free on every device.

    Returns None if that is not enough, or if the plan has several trees or blocks of queries.
    """
    try:
        plan = plan_tree(problem, free_bytes=cuda_tuning.SPARE + cuda_tuning.RESERVE)
    except BudgetExceeded:
        return None
    whole = plan.point_slab == plan.n and plan.query_block * len(plan.devices) >= plan.m
    return plan if whole else None


def _on_cuda(
    problem: Problem, needs: TreeNeeds, leaf: int, budget: int, asked: int | None, prepared_by: TreePlan | None
) -> tuple[int, int, TreeMemory]:
    """Return points per tree on CUDA, bytes of trees kept in host memory, and the memory of a device (TreeMemory)."""
    several = len(problem.devices) > 1  # then rows on one of the devices are copied, too
    points, queries = (inputs.dtype_of(name).itemsize for name in (problem.dtype, problem.query_dtype))
    on_cuda = OnCuda(
        needs,
        row_in=problem.d * queries if problem.host_queries or several else 0,
        point_in=problem.d * points if problem.host_points or several else 0,
        results=0 if problem.host_queries else problem.m * needs.row_out,
        leaf=leaf,
    )
    most = problem.n if prepared_by is None else prepared_by.point_slab
    if asked is not None:
        most = min(problem.n, asked)

    def slab_of(*, kept: bool) -> int:
        return most if asked is not None else on_cuda.slab(budget, most, kept=kept, prepared=prepared_by is not None)

    slab, kept_bytes = slab_of(kept=False), 0
    if slab < problem.n and _keeps(on_cuda.tree_bytes(slab), prepared_by):
        beside = slab_of(kept=True)  # two trees are on the device at once, so slabs may have to be smaller
        if prepared_by is None or beside == most:
            slab, kept_bytes = beside, on_cuda.tree_bytes(beside)
    return slab, kept_bytes, on_cuda.fit(slab, budget, kept=kept_bytes > 0)


def _keeps(tree_bytes: int, prepared_by: TreePlan | None) -> bool:
    """Return whether host memory keeps the trees of slabs: they exist already, or they fit half of the free memory."""
    return 2 * tree_bytes <= free_host_memory() if prepared_by is None else prepared_by.kept_bytes > 0


def held_as(points: str, queries: str) -> str:
    """Return the dtype of the values in a tree; it represents all values of points and queries exactly.

    >>> held_as("uint8", "float16"), held_as("float32", "float64")
    ('float32', 'float64')
    """
    return value_dtype(points, queries)


def refusal(problem: Problem) -> str | None:
    """Return the reason why a tree cannot solve a problem, or None if it can.

    >>> from tonari.metrics.problem import make_problem
    >>> refusal(make_problem(1000, 10, 3, 10, dtype="float32", metric="l1")) is None
    True
    """
    if get_metric(problem.metric).bits or get_metric(problem.metric).missing:
        return refuse_metric(problem)
    if problem.metric not in TREE_METRICS:
        names = ", ".join(TREE_METRICS)
        return f"method='kdtree' supports {names}, not {problem.metric}; use method='exact' or 'auto'"
    if not problem.devices:
        return None
    for name, most in (("n", 2**31 - 1), ("d", MOST_DIMENSIONS_ON_CUDA), ("k", MOST_K_ON_CUDA)):
        value = getattr(problem, name)
        if value > most:
            return f"{name}={value}: on CUDA method='kdtree' takes {name} up to {most}; use method='exact' or 'auto'"
    return None


def _shape(n: int, d: int, overrides: dict[str, Any], traversal: str, *, on_cuda: bool) -> tuple[int, int]:
    """Return the height of the tree and the target leaf size, from the overrides or by default."""
    if "height" in overrides:
        if "leaf" in overrides:
            raise ValueError("got both height and leaf, which determine each other: pass only one of them")
        height = int(overrides["height"])
        check_height(n, height)
        return height, -(-n // (1 << height))
    usual = next((size for most, size in tuning.LEAF_UP_TO.items() if d <= most), tuning.LEAF)
    usual *= tuning.BUFFERED_TIMES if traversal == "buffered" else 1
    leaf = overrides.get("leaf", tuning.LEAF_ON_CUDA if on_cuda else usual)
    return plan_height(n, int(leaf)), int(leaf)
