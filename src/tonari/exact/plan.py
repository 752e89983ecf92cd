"""The plan of brute force on the CPU: one frozen record of every choice, made from the problem and the machine.

A search follows the plan. Choices that depend on values are made during the search: the number of columns of a
contraction (``form_dim="pilot"``), and the rows that are retried at a later precision. The command line prints the
plan. Callers can override its fields; an override that cannot work is refused with a reason.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from tonari import inputs
from tonari.core.caches import cached
from tonari.core.errors import Unsupported
from tonari.core.isa import check_isa, chosen_isa
from tonari.core.plan import Plan
from tonari.core.problem import Problem
from tonari.core.workers import default_threads, worth_sharing
from tonari.costs.model import (
    arrival_seconds,
    brute_seconds,
    brute_work,
    direct_seconds,
    packing_seconds,
    screening_seconds,
)
from tonari.costs.rates import DIRECT, PRODUCTS, READ_RATE, SURVIVOR, SURVIVOR_VALUE
from tonari.exact import tuning
from tonari.exact.memory import (
    ELEMENT_BYTES,
    GROUPS_FIT,
    JOIN_BLOCK,
    SURVIVOR_BYTES,
    TILE,
    BlockSizes,
    Needs,
    join_row_bytes,
    look_row_bytes,
    padded,
    pilot_bytes,
    resident_choices,
    shares_enough,
    within,
)
from tonari.exact.overrides import ON_CPU
from tonari.exact.precisions import choose_precisions, kernel_name, usual_precisions
from tonari.inputs.overrides import check_overrides
from tonari.metrics import get_metric
from tonari.metrics.problem import refuse_metric

_PAIR_BYTES = 48  # of a pair that is compared with a radius: its place, its value, and whether it is within

# Columns that a pilot chooses from: of contracted forms, and of looks before all columns and before contracted ones.
LOOKED, LOOKED_FIRST = 64, 32
_CONTRACTED = (LOOKED, 96)


@dataclass(frozen=True, kw_only=True)
class ExactPlan(Plan):
    """Every choice of one exact search.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, metric, method, device : str
    isa : str
        Instruction set: generic, avx2, avx512, amx or neon.
    precisions : tuple of str
        Precisions of the screen, first to last. Rows that cannot be certified at one are retried at the next. The last
        one certifies every row, because it resolves doubtful rows by exact values.
    form_dim : int
        Columns that the screen compares. Fewer than d are contracted rows: coordinates along the principal directions,
        and the length of the residual (docs/exactness.md, "Contracted forms").
    look_dim : int
        Columns of a look at contracted rows, which rules out points before the screen compares the others in form_dim
        columns; 0 for no look.
    may_contract : bool
        Whether a pilot decides, when the points are prepared, if rows are contracted to 64 or 96 columns, looked at in
        fewer columns first, or both. This requires at least 256 columns and enough work. For a look, points are packed
        in the order of clusters.
    direct : bool
        Whether exact values of all pairs are computed without a screen, which is faster for the smallest searches and
        for few queries of points that are not packed. (For float32 rows and squared differences, estimates rule out
        most points first.) The other fields then apply only to later searches of the same points.
    threads : int
    query_block : int
        Queries that share one pass over the points.
    point_chunk : int
        Points per slice of work.
    capacity : int
        Largest number of survivors of a row; a row with more is retried or resolved by exact values.
    sample_stride, sample_rank : int
        Every sample_stride-th group is screened first, and the sample_rank-th smallest bound there becomes the
        threshold for the rest (matsumoto2015); 0 means no sample, as for small k.
    active_rows : int
        For a graph: the number of rows whose survivors are in memory at once, so that the product of two of these rows
        is used for both; 0 if every product is used only for its query.
    point_splits : int
        Parts of the points that are searched in parallel if there are fewer blocks of queries than threads.
    adaptive : bool
        Whether the remaining rows may start at the next precision, if the first blocks leave so many survivors that
        this is faster.
    resident_points : int
        Points that stay packed in memory: all, or as many as the memory budget allows. The others are packed slice by
        slice, again for each pass over them.
    finer_resident : bool
        Whether points may stay packed at a finer precision than the first.
    stream_blocks, stream_chunk : int
        For points that are packed slice by slice: the number of blocks of queries per thread that share a pass, and the
        number of points per slice. Rows retried at the next precision use them too.
    packed_bytes, working_bytes, output_bytes : int
        The largest memory beyond the input, for packed points that stay, for work, and for results.
    prepare_seconds : float
        Rough estimate of the time for checking the points and packing those that stay packed, if they are in memory or
        in the page cache.
    seconds : float
        Rough estimate of the whole search, including prepare_seconds, which an :class:`tonari.Index` spends only once.
    """

    precisions: tuple[str, ...]
    form_dim: int
    look_dim: int
    may_contract: bool
    direct: bool
    query_block: int
    point_chunk: int
    capacity: int
    sample_stride: int
    sample_rank: int
    active_rows: int
    point_splits: int
    adaptive: bool
    resident_points: int
    finer_resident: bool
    stream_blocks: int
    stream_chunk: int
    prepare_seconds: float

    @property
    def resident(self) -> bool:
        """Whether all packed points stay in memory."""
        return self.resident_points == self.n

    @property
    def blocks_at_once(self) -> int:
        """Blocks of different queries that are processed at once while points are packed slice by slice."""
        return max(1, self.stream_blocks * self.threads // self.point_splits)

    @property
    def resident_memory(self) -> int:
        """Smallest budget with which all packed points stay in memory, if nothing is overridden."""
        chunk, block = self.point_chunk, _query_block(self.m, self.k, self.threads)
        needs = Needs(
            *(self.n, self.m, self.d, self.k, inputs.dtype_of(self.dtype), self.precisions, self.threads, chunk),
            *(self.capacity, self.point_splits, self.form_dim, self.look_dim),
        )
        wish = BlockSizes(block, self.n, 0, tuning.STREAM_BLOCKS, chunk)
        return min(map(needs.total_bytes, resident_choices(needs, wish, ())))

    @property
    def packs_anew(self) -> str:
        """A sentence with the number of points that stay packed and the budget for all; "" if all stay packed."""
        if self.resident:
            return ""
        return (
            f"{self.resident_points} of {self.n} packed points beside a search of {self.m} queries with k={self.k}: "
            f"every such search packs the others anew; from memory={self.resident_memory} on all stay packed"
        )

    def prefers_finer(self, level: int, survivors: float) -> bool:
        """Whether the next precision is expected to be faster, given the number of survivors per row at this level."""
        if level + 1 >= len(self.precisions):
            return False
        finer = self._row_seconds(level + 1, 1.1 * self.k)
        return finer < 0.9 * self._row_seconds(level, survivors)

    def prefers(self, other: ExactPlan, level: int, survivors: float) -> bool:
        """Whether another plan is expected to be faster, given the survivors per row at a level of this plan."""
        return other._row_seconds(0, 1.1 * self.k) < 0.9 * self._row_seconds(level, survivors)

    def _row_seconds(self, level: int, survivors: float) -> float:
        precision = self.precisions[level]
        screen = 2.0 * self.n * padded(self.form_dim, precision) / PRODUCTS[self.isa, precision]
        return screen + survivors * (SURVIVOR + SURVIVOR_VALUE * self.d)

    def contracted_to(self, form_dim: int, look_dim: int = 0) -> ExactPlan:
        """Return the plan for points with these numbers of columns for the contracted screen and for the look."""
        plan = self
        if form_dim < self.form_dim:
            levels = usual_precisions(self.metric, self.isa, self.dtype, self.d, contracted=True)
            adaptive = self.adaptive and len(levels) > 1
            plan = replace(
                self, form_dim=form_dim, precisions=levels, adaptive=adaptive, sample_stride=0, sample_rank=0
            )
        if plan.may_contract and plan.point_splits > 1 and (look_dim or form_dim < self.form_dim):
            # Few queries, for which less is read than was planned. What a look marks takes about as long as the look.
            row = 2 * look_dim if look_dim else form_dim * ELEMENT_BYTES[plan.precisions[0]]
            if not worth_sharing(self.n * row / READ_RATE):
                plan = replace(plan, point_splits=1)
        return plan

    @cached_property
    def direct_within(self) -> float:
        """Seconds of a search within a radius by the exact values of all pairs; inf beyond the memory."""
        if not self.direct or _PAIR_BYTES * self.m * self.n > self.packed_bytes + self.working_bytes:
            return math.inf
        searched: float = DIRECT[self.isa].seconds(self.n, self.m, self.d, 1)
        return tuning.WITHIN_SHARE * searched

    @cached_property
    def kernels(self) -> dict[str, str]:
        """The names of the kernels that screen, by precision."""
        return {precision: kernel_name(self.metric, precision, self.isa) for precision in ELEMENT_BYTES}

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return super().as_dict() | {"resident": self.resident}


def plan_on_cpu(problem: Problem, *, prepared: bool = False, **overrides: Any) -> ExactPlan:
    """Plan brute force on the CPU; see :func:`tonari.plan`.

    Parameters
    ----------
    problem : Problem
    prepared : bool
        Whether the points are packed already, which leaves less work for threads.
    **overrides
        Fields listed in :data:`tonari.exact.overrides.ON_CPU`.

    Raises
    ------
    ValueError
        An override or the budget cannot work; the message says why.

    Examples
    --------
    >>> from tonari.metrics.problem import make_problem
    >>> made = plan_on_cpu(make_problem(1000, 10, 16, 5, dtype="float32", metric="euclidean", threads=1))
    >>> made.query_block, made.resident
    (10, True)
    """
    why_not = refuse_metric(problem)
    if why_not is not None:
        raise Unsupported(why_not)
    check_overrides(overrides, ON_CPU)
    isa = overrides.get("isa") or chosen_isa()
    check_isa(isa)
    if overrides:
        return _planned(problem, isa, prepared, overrides)
    # Of a small search, planning takes longer than searching. What a plan depends on beside the problem is in the key.
    return _remembered(problem, isa, prepared, default_threads())


@cached(maxsize=256)
def _remembered(problem: Problem, isa: str, prepared: bool, most_threads: int) -> ExactPlan:
    return _planned(problem, isa, prepared, {})


def _planned(problem: Problem, isa: str, prepared: bool, overrides: dict[str, Any]) -> ExactPlan:
    form_dim, look_dim = _form_dim(problem, overrides), _look_dim(problem, overrides)
    precisions = choose_precisions(problem, isa, overrides.get("precisions"), contracted=form_dim < problem.d)
    direct = _is_direct(problem, isa, prepared, overrides)
    work = direct_seconds(problem, isa) if direct else _work(problem, isa, precisions[0], prepared)
    threads = _threads(problem, work)
    most_splits = threads if worth_sharing(work) else 1
    needs, wish, sample = _wish(problem, isa, precisions, (threads, most_splits), (form_dim, look_dim), overrides)
    sizes = wish
    if problem.memory is not None:
        sizes = within(problem.memory, needs, wish, set(overrides) & {"query_block", "resident", "active_rows"})
    packed, finer, adaptive = _precisions_held(problem, needs, sizes, overrides)
    may_contract = _may_contract(problem, overrides)
    working = needs.working_bytes(sizes)
    if may_contract:
        widest = contracted_widths(problem.d)[-1]
        working = max(working, pilot_bytes(problem.n, problem.d, widest))
        packed += problem.n * look_row_bytes(LOOKED, "float32")
    look = arrival_seconds(problem)
    again = (needs.passes(sizes) - 1) * packing_seconds(problem, isa, problem.n - sizes.resident_points)
    screened = brute_seconds(problem, isa, threads, shared=sizes.active_rows > 0)
    return ExactPlan(
        n=problem.n,
        m=problem.m,
        d=problem.d,
        k=problem.k,
        dtype=problem.dtype,
        metric=problem.metric,
        method="exact",
        device="cpu",
        devices=(),
        isa=isa,
        precisions=precisions,
        form_dim=form_dim,
        look_dim=look_dim,
        may_contract=may_contract,
        direct=direct,
        threads=threads,
        query_block=sizes.query_block,
        point_chunk=needs.chunk,
        capacity=needs.capacity,
        sample_stride=sample[0],
        sample_rank=sample[1],
        active_rows=sizes.active_rows,
        point_splits=needs.splits,
        adaptive=adaptive,
        resident_points=sizes.resident_points,
        finer_resident=finer,
        stream_blocks=sizes.stream_blocks,
        stream_chunk=sizes.stream_chunk,
        packed_bytes=packed,
        copied_bytes=0,
        working_bytes=working,
        output_bytes=needs.output_bytes,
        prepare_seconds=look + packing_seconds(problem, isa, sizes.resident_points) / threads,
        seconds=look + (_shared(problem, work) if direct else again / threads + screened),
    )


def _threads(problem: Problem, work: float) -> int:
    return problem.threads or default_threads(work)


def _shared(problem: Problem, work: float) -> float:
    """Return the seconds of work, given in seconds of one thread, on as many threads as pay off."""
    return work / _threads(problem, work) if worth_sharing(work) else work


def _is_direct(problem: Problem, isa: str, prepared: bool, given: dict[str, Any]) -> bool:
    """Whether exact values of all pairs take less time than a screen."""
    if "direct" not in given:
        # Whoever sets fields of the screen wants one.
        return not given and direct_seconds(problem, isa) < screening_seconds(problem, isa, prepared=prepared)
    direct = bool(given["direct"])
    others = sorted(set(given) - {"direct", "isa"})
    if direct and others:
        raise ValueError(f"direct=True: there is no screen for which {', '.join(others)} could be set; leave one out")
    return direct


def _work(problem: Problem, isa: str, precision: str, prepared: bool) -> float:
    """Return the parallel work of a search, in seconds of one thread."""
    passes = -(-problem.m // tuning.QUERY_BLOCK)
    read = problem.n * padded(problem.d, precision) * ELEMENT_BYTES[precision] * passes
    return brute_work(problem, isa, read_bytes=read, prepared=prepared)


def _wish(
    problem: Problem,
    isa: str,
    precisions: tuple[str, ...],
    parallel: tuple[int, int],
    columns: tuple[int, int],
    given: dict[str, Any],
) -> tuple[Needs, BlockSizes, tuple[int, int]]:
    """Return the preferred choices without a memory budget: the inputs of memory formulas, block sizes, and the sample.

    `parallel`: the number of threads, and of parts of the points that they may search in parallel.
    """
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    (threads, most_splits), (form_dim, _) = parallel, columns
    block = min(m, given.get("query_block", _query_block(m, k, threads)))
    chunk = given.get("point_chunk", _point_chunk(n, form_dim, threads))
    if chunk % GROUPS_FIT:
        raise ValueError(f"point_chunk must be a multiple of {GROUPS_FIT}, got {chunk}")
    blocks = -(-m // block)
    sampled = given.get("sample_stride", 0) != 0
    splits = given.get("point_splits", 1 if sampled else max(1, min(most_splits // blocks, -(-n // chunk))))
    stride, rank = _sample(n, k) if splits == 1 and form_dim == d else (0, 0)
    sample = _checked_sample(given.get("sample_stride", stride), given.get("sample_rank", rank), splits)
    if sample[0] and form_dim < d:
        raise ValueError(
            f"form_dim={form_dim} of {d}: a contracted form has no sampled thresholds; set sample_stride=0"
        )
    resident = given.get("resident", True)
    joins = problem.self_join and resident and can_join(problem.metric, form_dim, isa) and not sample[0]
    joins = joins and n * form_dim >= tuning.JOIN_FROM[isa][0]
    active = _checked_active(given.get("active_rows", _active_rows(problem) if joins else 0), problem.self_join)
    capacity = given.get("capacity", max(2048, 4 * k))
    needs = Needs(n, m, d, k, inputs.dtype_of(problem.dtype), precisions, threads, chunk, capacity, splits, *columns)
    return needs, BlockSizes(block, n if resident else 0, active, tuning.STREAM_BLOCKS, chunk), sample


def _form_dim(problem: Problem, given: dict[str, Any]) -> int:
    d = problem.d
    form_dim = int(given.get("form_dim", d))
    if form_dim > d:
        raise ValueError(f"form_dim={form_dim}: rows have {d} columns; expected at most that")
    if form_dim < d and get_metric(problem.metric).elementwise:
        raise ValueError(f"form_dim={form_dim}: metric={problem.metric!r} compares all {d} columns; leave form_dim out")
    return form_dim


def _look_dim(problem: Problem, given: dict[str, Any]) -> int:
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
    """Return the numbers of columns, ascending, among which a pilot chooses for rows of d columns."""
    return [columns for columns in _CONTRACTED if tuning.CONTRACT_FROM * columns <= d]


def _may_contract(problem: Problem, given: dict[str, Any]) -> bool:
    # Whoever sets fields has decided; bytes are exact in int8 and would not be as contracted rows; and what stays
    # packed within a budget was computed for all columns.
    floats = inputs.dtype_of(problem.dtype).kind not in "iu"
    products = not get_metric(problem.metric).elementwise
    return not given and problem.memory is None and floats and products and problem.d >= tuning.CONTRACT_FROM * LOOKED


def _precisions_held(
    problem: Problem, needs: Needs, sizes: BlockSizes, given: dict[str, Any]
) -> tuple[int, bool, bool]:
    """Return the bytes of points that stay packed, whether their precision may be finer, and `adaptive`."""
    budget, n = problem.memory, problem.n
    packed, finest = needs.packed_bytes(needs.precisions[0], sizes.resident_points), needs.packed_bytes("float32", n)
    with_finest = finest + needs.working_bytes(sizes) + needs.output_bytes
    finer = sizes.resident_points == n and len(needs.precisions) > 1 and (budget is None or with_finest <= budget)
    blocks = -(-problem.m // sizes.query_block)
    adaptive = bool(given.get("adaptive", finer and blocks >= 4 * needs.threads))
    if not adaptive:
        return packed, finer, False
    if budget is not None and with_finest > budget:
        raise ValueError(
            f"adaptive=True may pack all points at a finer precision, for which a memory budget of {budget} bytes "
            f"is too small: allow at least {with_finest}, or leave adaptive out"
        )
    return max(packed, finest), finer, True


def _query_block(m: int, k: int, threads: int) -> int:
    room = tuning.BLOCK_BYTES // (max(2048, 4 * k) * SURVIVOR_BYTES)
    fair = -(-m // (2 * threads))  # two blocks per thread keep all threads busy until the end
    block = min(tuning.QUERY_BLOCK, max(TILE, fair), max(1, room))
    return min(m, -(-block // TILE) * TILE if block > TILE else block)


def _checked_sample(stride: Any, rank: Any, splits: int) -> tuple[int, int]:
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
    """Return whether a product of two points can be used for both, and whether that is faster than two products."""
    return get_metric(metric).form == "gemm" and d >= tuning.JOIN_FROM[isa][1]


def _checked_active(active: Any, self_join: bool) -> int:
    if active and (not self_join or active % JOIN_BLOCK):
        raise ValueError(f"active_rows={active}: expected a multiple of {JOIN_BLOCK}, and only for a self-join")
    return int(active)


def _active_rows(problem: Problem) -> int:
    """Return the number of active rows that fit into memory, in whole blocks; 0 if sharing products would not pay."""
    n = problem.n
    room = max(tuning.JOIN_BYTES, n * problem.d * inputs.dtype_of(problem.dtype).itemsize)
    active = min(-(-n // JOIN_BLOCK), room // join_row_bytes(problem.k) // JOIN_BLOCK) * JOIN_BLOCK
    return active if shares_enough(active, n) else 0


def _point_chunk(n: int, d: int, threads: int) -> int:
    most = max(GROUPS_FIT, tuning.CHUNK_VALUES // d // GROUPS_FIT * GROUPS_FIT)
    shared = max(tuning.LEAST_CHUNK, n // (tuning.SLICES_PER_THREAD * threads)) if threads > 1 else n
    return min(most, -(-shared // GROUPS_FIT) * GROUPS_FIT, -(-n // GROUPS_FIT) * GROUPS_FIT)


def _sample(n: int, k: int) -> tuple[int, int]:
    """Return stride and rank of the sampled threshold of matsumoto2015 (section IV), for about 8 k samples.

    The sample contains k / stride of the k nearest points on average. The rank is three standard deviations above that,
    so that the threshold is too low for about one row in a thousand, which is then searched again.
    """
    stride = n // (8 * k)
    if k < tuning.SAMPLE_FROM_K or stride < 4:
        return 0, 0
    expected = k / stride
    return stride, int(expected + 3.0 * expected**0.5 + 3.0)
