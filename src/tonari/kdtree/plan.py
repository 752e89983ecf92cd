"""The plan of a search by a k-d tree, on the CPU or on CUDA: one frozen record of every choice.

Like every plan it comes from a pure function of the problem and the machine. Whether a tree is
worth its while depends on the data, which no plan sees: that is for :mod:`tonari.methods.auto` to find out.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.isa import check_isa, chosen_isa
from tonari.core.neighbors import index_dtype
from tonari.core.plan import Override, Plan
from tonari.core.problem import Problem
from tonari.core.workers import default_threads
from tonari.costs.model import arrival_seconds, build_seconds, expected_visits, tree_seconds, tree_work
from tonari.cuda.memory import available
from tonari.inputs.overrides import check_overrides
from tonari.kdtree.cpu.tree import check_height, plan_height
from tonari.kdtree.memory import OnCuda, TreeMemory, TreeNeeds, on_cpu
from tonari.metrics import METRICS

# Those whose value cannot be less than that of a box around the point.
TREE_METRICS = tuple(name for name, metric in METRICS.items() if metric.in_trees)
TREE_ISAS = ("generic", "avx2", "avx512")  # that the tree has kernels for, weakest first

# Points wanted in a leaf, up to so many dimensions: the more there are, the less a box keeps away.
_LEAF_UP_TO = {3: 16, 5: 32}
_LEAF = 64
_LEAF_ON_CUDA = 64

OVERRIDES = {
    "height": Override("there are 2**height leaves", least=0),
    "leaf": Override("points wanted in a leaf, in place of height"),
    "sort": Override("whether queries are searched in the order of their leaves", "flag"),
    "query_block": Override("queries of one task"),
    "isa": Override("instruction set: generic, avx2 or avx512", "word"),
}
OVERRIDES_ON_CUDA = {name: known for name, known in OVERRIDES.items() if name != "isa"} | {
    "point_slab": Override("points of one tree")
}

MOST_K_ON_CUDA, MOST_DIMENSIONS_ON_CUDA = 64, 32


@dataclass(frozen=True, kw_only=True)
class TreePlan(Plan):
    """Every choice of one exact search by a k-d tree.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, metric, method : str
        method: "kdtree".
    held : str
        What the tree holds its points as: "float64" where points or queries are float64, else "float32".
    device : str
        "cpu" or "cuda".
    devices : tuple of str
        "cuda:0" and so on; none on the CPU. Several share the queries, and each has the whole tree.
    isa : str
        Instruction set: generic, avx2 or avx512; "" on CUDA.
    height : int
        There are 2**height leaves.
    leaf : int
        Points wanted in a leaf: the height is the least at which they are no more.
    point_slab : int
        Points of one tree: n, but on CUDA fewer where a tree of all does not fit; then slabs of so many have a tree in
        turn, in every search.
    sort : bool
        Whether queries are searched in the order of the leaves that they lie in, so that those which need the same
        leaves come together, or as they were given.
    query_block : int
        Queries of one task: on the CPU those that a thread takes at a time, on CUDA those on a device at once.
    threads : int
        0 on CUDA.
    packed_bytes, copied_bytes, working_bytes, output_bytes : int
        Memory beyond the input, on CUDA of each device: the tree; rows that are copied from host memory; everything
        temporary, for the build or for the search; results.
    seconds : float
        Rough expectation, with the build, for points that fill their space evenly; most data take less.
    """

    held: str
    height: int
    leaf: int
    point_slab: int
    sort: bool
    query_block: int

    def for_problem(self, problem: Problem) -> TreePlan:
        """The plan for a problem; made without knowing the dtype of the queries, it may have to hold float64."""
        super().for_problem(problem)
        return dataclasses.replace(self, held=held_as(self.dtype, problem.query_dtype))

    @property
    def build_seconds(self) -> float:
        """Rough expectation of what the build takes."""
        return build_seconds(self)


def plan_tree(
    problem: Problem, *, free_bytes: int | None = None, prepared_by: TreePlan | None = None, **overrides: Any
) -> TreePlan:
    """Plan a search by a k-d tree; see :func:`tonari.plan`.

    Parameters
    ----------
    problem : Problem
    free_bytes : int, optional
        On CUDA, memory that can be had on each device. Default: what is free there.
    prepared_by : TreePlan, optional
        The plan of a tree that stands already: threads are then those that the search is worth, and on CUDA the
        memory of the tree can be had again.
    **overrides
        As :data:`OVERRIDES` and :data:`OVERRIDES_ON_CUDA` list them.

    Raises
    ------
    Unsupported
        For a problem that a tree cannot solve.
    ValueError
        For an override or a budget that cannot work, with the reason.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> made = plan_tree(make_problem(10**6, 10**5, 10, 10, dtype="float32", metric="euclidean", threads=2))
    >>> made.height, made.leaf, made.held
    (14, 64, 'float32')
    """
    why_not = refusal(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, OVERRIDES_ON_CUDA if problem.devices else OVERRIDES)
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    held = np.dtype(held_as(problem.dtype, problem.query_dtype))
    height, leaf = _shape(n, d, overrides, on_cuda=bool(problem.devices))
    isa, threads = "", 0
    if not problem.devices:
        isa = _isa(overrides.get("isa"))
        work = tree_work(problem, isa, height, held.itemsize, prepared=prepared_by is not None)
        threads = problem.threads or default_threads(work)
    needs = TreeNeeds(
        n=n,
        m=-(-m // (len(problem.devices) or 1)),
        d=d,
        held=held.itemsize,
        row_out=k * (held.itemsize + index_dtype(n).itemsize),
        query_block=overrides.get("query_block"),
    )
    budget, slab = problem.memory, n
    if problem.devices:
        free = available(problem.devices, free_bytes)
        if prepared_by is not None:
            free += prepared_by.packed_bytes + prepared_by.copied_bytes
        budget = free if budget is None else min(budget, free)
        slab, memories = _on_cuda(problem, needs, leaf, budget, overrides.get("point_slab"))
    else:
        memories = on_cpu(needs, k, height, threads)
    made = TreePlan(
        n=n,
        m=m,
        d=d,
        k=k,
        dtype=problem.dtype,
        metric=problem.metric,
        method="kdtree",
        held=held.name,
        device=problem.device,
        devices=problem.devices,
        isa=isa,
        height=height,
        leaf=leaf,
        point_slab=slab,
        sort=bool(overrides.get("sort", True)),
        query_block=memories.block,
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
            f"a memory budget of {budget} bytes cannot hold a tree of these points, and its search: allow at least "
            f"{made.total_bytes}, or use method='exact'"
        )
    return made


def _on_cuda(problem: Problem, needs: TreeNeeds, leaf: int, budget: int, asked: int | None) -> tuple[int, TreeMemory]:
    """Points of one tree on CUDA, and what it takes there."""
    several = len(problem.devices) > 1  # then rows are copied wherever they are
    points, queries = (inputs.dtype_of(name).itemsize for name in (problem.dtype, problem.query_dtype))
    on_cuda = OnCuda(
        needs,
        row_in=problem.d * queries if problem.host_queries or several else 0,
        point_in=problem.d * points if problem.host_points or several else 0,
        results=0 if problem.host_queries else problem.m * needs.row_out,
        leaf=leaf,
    )
    slab = on_cuda.slab(budget) if asked is None else min(problem.n, asked)
    return slab, on_cuda.fit(slab, budget)


def held_as(points: str, queries: str) -> str:
    """What a tree holds points of one dtype as, for queries of another: both are exact in it.

    >>> held_as("uint8", "float16"), held_as("float32", "float64")
    ('float32', 'float64')
    """
    return "float64" if "float64" in (points, queries) else "float32"


def refusal(problem: Problem) -> str | None:
    """Why a tree cannot solve a problem; None if it can.

    >>> from tonari.metrics.problem import make_problem
    >>> refusal(make_problem(1000, 10, 3, 10, dtype="float32", metric="l1")) is None
    True
    """
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


def _shape(n: int, d: int, overrides: dict[str, Any], *, on_cuda: bool) -> tuple[int, int]:
    """Height of the tree and points wanted in a leaf."""
    if "height" in overrides:
        if "leaf" in overrides:
            raise ValueError("height and leaf say the same in two ways: leave one of them out")
        height = int(overrides["height"])
        check_height(n, height)
        return height, -(-n // (1 << height))
    usual = next((size for most, size in _LEAF_UP_TO.items() if d <= most), _LEAF)
    leaf = overrides.get("leaf", _LEAF_ON_CUDA if on_cuda else usual)
    return plan_height(n, int(leaf)), int(leaf)


def _isa(asked: str | None) -> str:
    """The instruction set asked for, else the strongest there is; on AMX, which a tree has no use for, AVX-512."""
    isa = chosen_isa() if asked is None else asked
    check_isa(isa)
    return "avx512" if isa == "amx" else isa
