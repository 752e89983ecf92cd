"""The plan of a search by a k-d tree, on the CPU or on CUDA: one frozen record of every choice.

Like :class:`tonari.exact.plan.Plan` it comes from a pure function of the problem and the machine. Whether a tree is
worth its while depends on the data, which no plan sees: that is for :mod:`tonari.methods.auto` to find out.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.isa import check_isa, chosen_isa
from tonari.core.neighbors import index_dtype
from tonari.core.plan import Plan
from tonari.core.workers import default_threads
from tonari.costs.model import build_seconds, expected_visits, tree_seconds, tree_work
from tonari.inputs.arguments import check_no_threads, check_overrides, check_whole
from tonari.kdtree.cpu.tree import check_height, plan_height
from tonari.kdtree.memory import OnCuda, TreeNeeds, on_cpu
from tonari.metrics import get_metric
from tonari.metrics.problem import check_problem

# Those whose value cannot be less than that of a box around the point.
TREE_METRICS = ("euclidean", "sqeuclidean", "l1", "linf")
TREE_ISAS = ("generic", "avx2", "avx512")  # that the tree has kernels for, weakest first

# Points wanted in a leaf, up to so many dimensions: the more there are, the less a box keeps away.
_LEAF_UP_TO = {3: 16, 5: 32}
_LEAF = 64
_LEAF_ON_CUDA = 64

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

    @property
    def build_seconds(self) -> float:
        """Rough expectation of what the build takes."""
        return build_seconds(self)


def plan_tree(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    dtype: npt.DTypeLike,
    query_dtype: npt.DTypeLike | None = None,
    metric: str,
    devices: tuple[str, ...] = (),
    threads: int | None = None,
    memory: int | str | None = None,
    self_join: bool = False,
    host_points: bool = True,
    host_queries: bool = True,
    free_bytes: int | None = None,
    prepared: bool = False,
    **overrides: Any,
) -> TreePlan:
    """:func:`tonari.plan` for method="kdtree".

    Parameters
    ----------
    n, m, d, k, dtype, metric, threads, memory, self_join
        As for :func:`tonari.plan`.
    query_dtype : dtype, optional
        Of the queries; default: that of the points.
    devices : tuple of str
        Of CUDA; none for the CPU.
    host_points, host_queries : bool
        On CUDA, whether they lie in host memory, from where they have to be copied.
    free_bytes : int, optional
        On CUDA, memory that can be had on each device. Default: what is free there.
    prepared : bool
        On the CPU, whether the tree stands already: then threads are those that the search is worth.
    **overrides
        height or leaf, sort, query_block; on the CPU isa, on CUDA point_slab.

    Raises
    ------
    ValueError
        For a metric that a tree does not serve, an impossible problem, override or budget, with the reason.

    Examples
    --------
    >>> made = plan_tree(10**6, 10**5, 10, 10, dtype="float32", metric="euclidean", threads=2)
    >>> made.height, made.leaf, made.held
    (14, 64, 'float32')
    """
    kind, k = check_problem(n, m, d, k, dtype=dtype, metric=metric, self_join=self_join)
    query_kind = kind if query_dtype is None else inputs.dtype_of(query_dtype)
    held = np.dtype(held_as(inputs.dtype_name(kind), inputs.dtype_name(query_kind)))
    why_not = refusal(n, d, k, metric, on_cuda=bool(devices))
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, _OVERRIDES_ON_CUDA if devices else _OVERRIDES)
    if devices:
        check_no_threads(threads, devices)
    isa = "" if devices else _isa(overrides.get("isa"))
    height, leaf = _shape(n, d, overrides, on_cuda=bool(devices))
    count = 0
    if not devices:
        work = tree_work(isa, n, m, d, k, height, held.itemsize, prepared=prepared)
        count = inputs.check_threads(threads) or default_threads(work)
    if "query_block" in overrides:
        check_whole("query_block", overrides["query_block"], least=1)

    needs = TreeNeeds(
        n=n,
        m=-(-m // len(devices)) if devices else m,
        d=d,
        held=held.itemsize,
        row_out=k * (held.itemsize + index_dtype(n).itemsize),
        query_block=overrides.get("query_block"),
    )
    budget, slab = inputs.parse_memory(memory), n
    if devices:
        from tonari.exact.cuda.plan import RESERVE, free_memory

        free = max(0, (free_memory(devices) if free_bytes is None else free_bytes) - RESERVE)
        budget = free if budget is None else min(budget, free)
        several = len(devices) > 1  # then rows are copied wherever they lie
        on_cuda = OnCuda(
            needs,
            row_in=d * query_kind.itemsize if host_queries or several else 0,
            point_in=d * kind.itemsize if host_points or several else 0,
            results=0 if host_queries else m * needs.row_out,
            leaf=leaf,
        )
        if "point_slab" in overrides:
            check_whole("point_slab", overrides["point_slab"], least=1)
            slab = min(n, overrides["point_slab"])
        else:
            slab = on_cuda.slab(budget)
        memories = on_cuda.fit(slab, budget)
    else:
        memories = on_cpu(needs, k, height, count)
    made = TreePlan(
        n=n,
        m=m,
        d=d,
        k=k,
        dtype=inputs.dtype_name(kind),
        metric=metric,
        method="kdtree",
        held=held.name,
        device="cuda" if devices else "cpu",
        devices=devices,
        isa=isa,
        height=height,
        leaf=leaf,
        point_slab=slab,
        sort=inputs.check_flag(overrides.get("sort", True), "sort"),
        query_block=memories.block,
        threads=count,
        packed_bytes=memories.packed,
        copied_bytes=memories.copied,
        working_bytes=memories.working,
        output_bytes=memories.output,
        seconds=0.0,
    )
    seconds = made.build_seconds + tree_seconds(made, m, expected_visits(n, d, k, height))
    made = dataclasses.replace(made, seconds=seconds)
    if budget is not None and made.total_bytes > budget:
        raise BudgetExceeded(
            f"a memory budget of {budget} bytes cannot hold a tree of these points, and its search: allow at least "
            f"{made.total_bytes}, or use method='exact'"
        )
    return made


_OVERRIDES = {"height", "leaf", "sort", "query_block", "isa"}
_OVERRIDES_ON_CUDA = _OVERRIDES - {"isa"} | {"point_slab"}


def check_tree_metric(metric: str) -> None:
    """Refuse a metric that no tree serves."""
    why_not = refusal(1, 1, 1, metric, on_cuda=False)
    if why_not is not None:
        raise Unsupported(why_not)


def held_as(points: str, queries: str) -> str:
    """What a tree holds points of one dtype as, for queries of another: both are exact in it.

    >>> held_as("uint8", "float16"), held_as("float32", "float64")
    ('float32', 'float64')
    """
    return "float64" if "float64" in (points, queries) else "float32"


def refusal(n: int, d: int, k: int, metric: str, *, on_cuda: bool) -> str | None:
    """Why a tree does not serve a problem; None if it does.

    >>> refusal(1000, 3, 10, "l1", on_cuda=True) is None
    True
    """
    if get_metric(metric).name not in TREE_METRICS:
        return f"method='kdtree' searches by {', '.join(TREE_METRICS)}, not by {metric}; use method='exact' or 'auto'"
    if not on_cuda:
        return None
    for name, value, most in (("n", n, 2**31 - 1), ("d", d, MOST_DIMENSIONS_ON_CUDA), ("k", k, MOST_K_ON_CUDA)):
        if value > most:
            return f"{name}={value}: on CUDA method='kdtree' takes {name} up to {most}; use method='exact' or 'auto'"
    return None


def _shape(n: int, d: int, overrides: dict[str, Any], *, on_cuda: bool) -> tuple[int, int]:
    """Height of the tree and points wanted in a leaf."""
    if "height" in overrides:
        if "leaf" in overrides:
            raise ValueError("height and leaf say the same in two ways: leave one of them out")
        check_whole("height", overrides["height"], least=0)
        height = int(overrides["height"])
        check_height(n, height)
        return height, -(-n // (1 << height))
    usual = next((size for most, size in _LEAF_UP_TO.items() if d <= most), _LEAF)
    leaf = overrides.get("leaf", _LEAF_ON_CUDA if on_cuda else usual)
    check_whole("leaf", leaf, least=1)
    return plan_height(n, int(leaf)), int(leaf)


def _isa(asked: str | None) -> str:
    """The instruction set asked for, else the strongest there is; on AMX, which a tree has no use for, AVX-512."""
    isa = chosen_isa() if asked is None else asked
    check_isa(isa)
    return "avx512" if isa == "amx" else isa
