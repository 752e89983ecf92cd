"""The plan: one frozen record of every choice, made by a pure function of the problem and the machine.

Everything reads it, nothing else chooses. The command line prints it; a field can be overridden, and an override that
cannot work is refused with the reason.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tonari import _native, inputs
from tonari.core.isa import check_isa, chosen_isa
from tonari.core.plan import Plan
from tonari.core.units import MIB
from tonari.core.workers import default_threads
from tonari.costs.model import brute_work
from tonari.exact.memory import (
    ELEMENT_BYTES,
    GROUPS_FIT,
    STREAM_BLOCKS,
    SURVIVOR_BYTES,
    TILE,
    Choice,
    Problem,
    join_row_bytes,
    padded,
    resident_choices,
    within,
)
from tonari.inputs.arguments import check_overrides, check_whole
from tonari.metrics import get_metric
from tonari.metrics.problem import check_problem

if TYPE_CHECKING:
    pass

# Packed values per slice handed to a kernel: 256 queries x 2**21 values is 10 ms at 100 GFLOP/s, so that progress moves
# and Ctrl-C answers; a multiple of every kernel's group of points.
_CHUNK_VALUES = 1 << 21
_QUERY_BLOCK = 256  # queries that share one pass over the points: enough that the product, not memory, sets the pace
_BLOCK_BYTES = 16 * MIB  # survivors of one block of queries, at most
JOIN_BLOCK = 288  # rows of a self-join that share one pass; all groups and tiles fit into it
_JOIN_BYTES = 112 * MIB  # first room for the survivors of all active rows of a self-join
_AMX_JOIN_FROM = 512  # dimensions: below, AMX multiplies faster than the other side of a product can be looked at
_SAMPLE_FROM_K = 64  # below, the first k points give as good a threshold as any sample

# Operations per second of one core (benchmarks/results). Their ratios choose the precision; nothing else depends on
# them but expectations of time.
_RATES = {
    ("generic", "float32"): 2e10,
    ("avx2", "float32"): 1.3e11,
    ("avx2", "int8"): 4.2e11,
    ("avx512", "float32"): 2.5e11,
    ("avx512", "int8"): 6.8e11,
    ("amx", "float32"): 1.2e11,
    ("amx", "bfloat16"): 1e12,
    ("amx", "int8"): 1.6e12,
}
# Seconds that one survivor costs on the way from the screen to its place in the answer, plus so much per dimension.
_SURVIVOR_SECONDS, _SURVIVOR_SECONDS_PER_DIMENSION = 6e-8, 3e-10
# Seconds of one core for each point that is packed, and for each of its values; and for each byte that is looked at
# before, on one thread: on a Xeon of model 207, the points in memory or in the page cache.
_PACK_SECONDS, _PACK_SECONDS_PER_VALUE = 1e-7, 9e-9
_LOOK_SECONDS_PER_BYTE = 2.5e-10


@dataclass(frozen=True, kw_only=True)
class ExactPlan(Plan):
    """Every choice of one exact search.

    Attributes
    ----------
    n, m, d, k : int
        Points, queries, dimensions, neighbours.
    dtype, metric, method, device : str
    isa : str
        Instruction set: generic, avx2, avx512 or amx.
    ladder : tuple of str
        Precisions of the screen, first to last; rows that one cannot certify climb to the next. The last one always
        can, since it settles doubtful rows by exact values.
    threads : int
    query_block : int
        Queries that share one pass over the points.
    point_chunk : int
        Points per slice of work.
    capacity : int
        Survivors a row may hold before it climbs or settles.
    sample_stride, sample_rank : int
        Every sample_stride-th group is screened first, and the sample_rank-th smallest bound there becomes the
        threshold for the rest (matsumoto2015); 0 when k is small.
    active_rows : int
        For a graph: rows whose survivors are held at once, so that each product of two of them serves both; 0 where
        every product serves its query alone.
    point_splits : int
        Parts of the points searched side by side when there are fewer blocks of queries than threads.
    adaptive : bool
        Whether the first blocks may move the rest to the next rung, when their survivors cost more than it would.
    resident_points : int
        Points that stay packed in memory: all, or as many as a memory budget leaves room for. The others are packed
        slice by slice, anew for each pass over them.
    finer_resident : bool
        Whether they may stay packed at a finer precision than the first.
    stream_blocks, stream_chunk : int
        Blocks of queries per thread that share a pass over points packed slice by slice, and points per such slice;
        also for rows retried at the next precision.
    packed_bytes, working_bytes, output_bytes : int
        Memory beyond the input, at most: packed points that stay, work, results.
    prepare_seconds : float
        Rough expectation of what looking at the values of the points takes, and packing those that stay packed; they
        lie in memory or in the page cache.
    seconds : float
        Rough expectation of the whole search, with that. An :class:`tonari.Index` has it behind itself.
    """

    ladder: tuple[str, ...]
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
        """Blocks of different queries that are in work while points are packed slice by slice."""
        return max(1, self.stream_blocks * self.threads // self.point_splits)

    @property
    def resident_memory(self) -> int:
        """Least memory= with which all packed points stay in memory, where nothing is overridden."""
        chunk, block = self.point_chunk, _query_block(self.m, self.k, self.threads)
        problem = Problem(
            *(self.n, self.m, self.d, self.k, inputs.dtype_of(self.dtype), self.ladder, self.threads, chunk),
            *(self.capacity, self.point_splits),
        )
        wish = Choice(block, self.n, 0, STREAM_BLOCKS, chunk)
        return min(map(problem.total_bytes, resident_choices(problem, wish, ())))

    @property
    def packs_anew(self) -> str:
        """How many points do not stay packed, and the memory= for all; "" where all do."""
        if self.resident:
            return ""
        return (
            f"{self.resident_points} of {self.n} packed points beside a search of {self.m} queries with k={self.k}: "
            f"every such search packs the others anew; from memory={self.resident_memory} on all stay packed"
        )

    def prefers_finer(self, rung: int, survivors: float) -> bool:
        """Whether rows would be answered sooner one rung up, given the survivors per row seen at this one."""
        if rung + 1 >= len(self.ladder):
            return False
        finer = self._row_seconds(rung + 1, 1.1 * self.k)
        return finer < 0.9 * self._row_seconds(rung, survivors)

    def _row_seconds(self, rung: int, survivors: float) -> float:
        precision = self.ladder[rung]
        screen = 2.0 * self.n * padded(self.d, precision) / _RATES[self.isa, precision]
        return screen + survivors * (_SURVIVOR_SECONDS + _SURVIVOR_SECONDS_PER_DIMENSION * self.d)

    def kernel(self, precision: str) -> str:
        """Name of the kernel that screens at `precision`."""
        return kernel_name(self.metric, precision, self.isa)

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain values, for JSON."""
        return super().as_dict() | {"resident": self.resident}


def plan_on_cpu(
    n: int,
    m: int,
    d: int,
    k: int,
    *,
    dtype: npt.DTypeLike,
    metric: str,
    threads: int | None = None,
    memory: int | str | None = None,
    self_join: bool = False,
    prepared: bool = False,
    **overrides: Any,
) -> ExactPlan:
    """:func:`plan` for the CPU; whether the points are packed already tells how many threads the rest is worth."""
    kind, k = check_problem(n, m, d, k, dtype=dtype, metric=metric, self_join=self_join)
    check_overrides(overrides, _OVERRIDES)
    budget = inputs.parse_memory(memory)

    isa = overrides.get("isa") or chosen_isa()
    check_isa(isa)
    ladder = _checked_ladder(overrides["ladder"]) if "ladder" in overrides else _ladder(metric, isa, kind, d)
    if "int8" in ladder and d >= _INT8_DIMENSIONS:
        raise ValueError(
            f"int8 sums overflow from {_INT8_DIMENSIONS} dimensions on, got d={d}; leave int8 out of the ladder"
        )
    available = _kernels()
    for precision in ladder:
        if kernel_name(metric, precision, isa) not in available:
            raise ValueError(f"no {precision} kernel for {metric} on {isa}; available: {', '.join(sorted(available))}")
    read = n * padded(d, ladder[0]) * ELEMENT_BYTES[ladder[0]] * -(-m // _QUERY_BLOCK)
    work = brute_work(isa, metric, n, m, d, k, read_bytes=read, prepared=prepared)
    count = inputs.check_threads(threads) or default_threads(work)

    for name in ("query_block", "point_chunk", "capacity", "point_splits"):
        if name in overrides:
            check_whole(name, overrides[name], least=1)
    block = min(m, overrides.get("query_block", _query_block(m, k, count)))
    chunk = overrides.get("point_chunk", _point_chunk(n, d))
    if chunk % GROUPS_FIT:
        raise ValueError(f"point_chunk must be a multiple of {GROUPS_FIT}, got {chunk}")
    blocks = -(-m // block)
    sampled = overrides.get("sample_stride", 0) != 0
    splits = overrides.get("point_splits", 1 if sampled else max(1, min(count // blocks, -(-n // chunk))))
    stride, rank = _sample(n, k) if splits == 1 else (0, 0)
    stride, rank = _checked_sample(overrides.get("sample_stride", stride), overrides.get("sample_rank", rank), splits)
    resident = inputs.check_flag(overrides.get("resident", True), "resident")
    joins = self_join and resident and get_metric(metric).form == "gemm" and not stride
    joins = joins and (isa != "amx" or d >= _AMX_JOIN_FROM)
    active = _active_rows(n, k) if joins else 0
    active = _checked_active(overrides.get("active_rows", active), self_join)

    problem = Problem(n, m, d, k, kind, ladder, count, chunk, overrides.get("capacity", max(2048, 4 * k)), splits)
    choice = Choice(block, n if resident else 0, active, STREAM_BLOCKS, chunk)
    if budget is not None:
        fixed = set(overrides) & {"query_block", "resident", "active_rows"}
        choice = within(budget, problem, choice, fixed)
        blocks = -(-m // choice.query_block)
    all_held = choice.resident_points == n
    packed, finest = problem.packed_bytes(ladder[0], choice.resident_points), problem.packed_bytes("float32", n)
    working = problem.working_bytes(choice)
    with_finest = finest + working + problem.output_bytes
    finer = all_held and len(ladder) > 1 and (budget is None or with_finest <= budget)
    adaptive = inputs.check_flag(overrides.get("adaptive", finer and blocks >= 4 * count), "adaptive")
    if adaptive:
        packed = max(packed, finest)
        if budget is not None and with_finest > budget:
            raise ValueError(
                f"adaptive=True may pack all points at a finer precision, for which a memory budget of {budget} bytes "
                f"is too small: allow at least {with_finest}, or leave adaptive out"
            )
    screen = 2.0 * m * n * padded(d, ladder[0]) / (_RATES[isa, ladder[0]] * min(count, max(1, blocks * splits)))
    pack = (_PACK_SECONDS + _PACK_SECONDS_PER_VALUE * d) / count
    prepare = _LOOK_SECONDS_PER_BYTE * n * d * kind.itemsize + choice.resident_points * pack
    on_the_way = 0.0 if all_held else problem.passes(choice) * (n - choice.resident_points) * pack
    return ExactPlan(
        n=n,
        m=m,
        d=d,
        k=k,
        dtype=inputs.dtype_name(kind),
        metric=metric,
        method="exact",
        device="cpu",
        devices=(),
        isa=isa,
        ladder=ladder,
        threads=count,
        query_block=choice.query_block,
        point_chunk=chunk,
        capacity=problem.capacity,
        sample_stride=stride,
        sample_rank=rank,
        active_rows=choice.active_rows,
        point_splits=splits,
        adaptive=adaptive,
        resident_points=choice.resident_points,
        finer_resident=finer,
        stream_blocks=choice.stream_blocks,
        stream_chunk=choice.stream_chunk,
        packed_bytes=packed,
        copied_bytes=0,
        working_bytes=working,
        output_bytes=problem.output_bytes,
        prepare_seconds=prepare,
        seconds=prepare + on_the_way + screen,
    )


_OVERRIDES = {
    "isa",
    "ladder",
    "query_block",
    "point_chunk",
    "capacity",
    "sample_stride",
    "sample_rank",
    "active_rows",
    "point_splits",
    "adaptive",
    "resident",
}
_INT8_DIMENSIONS = 1 << 17  # sums of products of bytes, 2**14 at most each, stay below 2**31


def kernel_name(metric: str, precision: str, isa: str) -> str:
    """Name of the kernel for a metric; AMX has no float32, so its last rung is AVX-512's."""
    operation = "inner" if get_metric(metric).form == "gemm" else metric
    return f"{operation}/{precision}/{'avx512' if isa == 'amx' and precision == 'float32' else isa}"


def _checked_ladder(ladder: Any) -> tuple[str, ...]:
    rungs = tuple(ladder) if isinstance(ladder, list | tuple) else ()
    if not rungs or list(rungs) != [p for p in ELEMENT_BYTES if p in rungs]:
        known = ", ".join(ELEMENT_BYTES)
        raise ValueError(f"ladder={ladder!r}: expected a tuple that rises through {known}, such as ('int8', 'float32')")
    return rungs


@functools.cache
def _kernels() -> frozenset[str]:
    """The kernels of this machine."""
    return frozenset(_native.kernel_names())


def _ladder(metric: str, isa: str, dtype: np.dtype[Any], d: int) -> tuple[str, ...]:
    available = _kernels()
    rungs = [p for p in ("int8", "bfloat16", "float32") if kernel_name(metric, p, isa) in available]
    if d >= _INT8_DIMENSIONS and "int8" in rungs:
        rungs.remove("int8")
    whole = dtype.kind in "iu" and get_metric(metric).name not in ("cosine", "correlation")
    if isa == "amx" and "int8" in rungs and not whole:
        # On AMX int8 is hardly faster than bfloat16 here, since the survivors' work sets the pace, and leaves more of
        # them; where integers are exact in it there are none to spare.
        rungs.remove("int8")
    return tuple(rungs)


def _query_block(m: int, k: int, threads: int) -> int:
    room = _BLOCK_BYTES // (max(2048, 4 * k) * SURVIVOR_BYTES)
    fair = -(-m // (2 * threads))  # two blocks per thread keep all of them busy to the end
    block = min(_QUERY_BLOCK, max(TILE, fair), max(1, room))
    return min(m, -(-block // TILE) * TILE if block > TILE else block)


def _checked_sample(stride: Any, rank: Any, splits: int) -> tuple[int, int]:
    check_whole("sample_stride", stride, least=0)
    check_whole("sample_rank", rank, least=0)
    if (stride == 0) != (rank == 0):
        raise ValueError(
            f"sample_stride={stride} and sample_rank={rank}: a sample needs both, and 0 for both means no sample"
        )
    if stride and splits > 1:
        raise ValueError(
            f"point_splits={splits} parts are searched side by side and cannot share a sample: set one of them"
        )
    return stride, rank


def _checked_active(active: Any, self_join: bool) -> int:
    check_whole("active_rows", active, least=0)
    if active and (not self_join or active % JOIN_BLOCK):
        raise ValueError(f"active_rows={active}: expected a multiple of {JOIN_BLOCK}, and only for a self-join")
    return int(active)


def _active_rows(n: int, k: int) -> int:
    """Active rows that memory allows, in whole blocks; 0 where too few would pair with each other to gain anything."""
    whole = -(-n // JOIN_BLOCK) * JOIN_BLOCK
    active = min(whole, _JOIN_BYTES // join_row_bytes(k) // JOIN_BLOCK * JOIN_BLOCK)
    return active if active >= 8 * JOIN_BLOCK and 8 * active >= n else 0


def _point_chunk(n: int, d: int) -> int:
    whole = -(-n // GROUPS_FIT) * GROUPS_FIT
    return min(whole, max(GROUPS_FIT, _CHUNK_VALUES // d // GROUPS_FIT * GROUPS_FIT))


def _sample(n: int, k: int) -> tuple[int, int]:
    """Stride and rank of matsumoto2015's sampled threshold, for about 8 k samples (its section IV).

    The rank is three standard deviations above the k * share that the sample holds on average, so that about one row in
    a thousand finds its threshold too low and is searched again.
    """
    stride = n // (8 * k)
    if k < _SAMPLE_FROM_K or stride < 4:
        return 0, 0
    expected = k / stride
    return stride, int(expected + 3.0 * expected**0.5 + 3.0)
