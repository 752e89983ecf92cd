"""Make a plan (../plan.py): derive every choice of a search on the CPU from the problem and the machine."""

from __future__ import annotations

from typing import Any

from tonari import inputs
from tonari.core.errors import Unsupported
from tonari.core.problem import Problem
from tonari.core.process.caches import cached
from tonari.core.process.isa import check_isa, chosen_isa
from tonari.core.process.workers import default_threads, worth_sharing
from tonari.costs.model import (
    arrival_seconds,
    brute_seconds,
    brute_work,
    direct_seconds,
    packing_seconds,
    screening_seconds,
)
from tonari.exact import tuning
from tonari.exact.memory import (
    ELEMENT_BYTES,
    GROUPS_FIT,
    BlockSizes,
    Needs,
    look_row_bytes,
    padded,
    pilot_bytes,
    within,
)
from tonari.exact.plan import ON_CPU, ExactPlan
from tonari.exact.planning.blocks import (
    LOOKED,
    active_rows,
    can_join,
    checked_active,
    checked_sample,
    contracted_widths,
    form_dim_of,
    look_dim_of,
    pilot_decides,
    point_chunk,
    query_block,
    sample_of,
)
from tonari.exact.precisions import choose_precisions
from tonari.inputs.overrides import check_overrides
from tonari.metrics.problem import refuse_metric


def plan_on_cpu(problem: Problem, *, prepared: bool = False, **overrides: Any) -> ExactPlan:
    """Plan brute force on the CPU; see :func:`tonari.plan`.

    Parameters
    ----------
    problem : Problem
    prepared : bool
        Whether the points are packed already, so that the search has less work to share among threads.
    **overrides
        Fields listed in :data:`tonari.exact.plan.ON_CPU`.

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
    # Plans are cached, since planning takes longer than a small search. These arguments determine the plan.
    return _remembered(problem, isa, prepared, default_threads())


@cached(maxsize=256)
def _remembered(problem: Problem, isa: str, prepared: bool, most_threads: int) -> ExactPlan:
    return _planned(problem, isa, prepared, {})


def _planned(problem: Problem, isa: str, prepared: bool, overrides: dict[str, Any]) -> ExactPlan:
    form_dim, look_dim = form_dim_of(problem, overrides), look_dim_of(problem, overrides)
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
    may_contract = pilot_decides(problem, overrides)
    working = needs.working_bytes(sizes)
    if may_contract:
        widest = contracted_widths(problem.d)[-1]
        working = max(working, pilot_bytes(problem.n, problem.d, widest))
        packed += problem.n * look_row_bytes(LOOKED, "float32", isa)
    look = arrival_seconds(problem)
    again = (needs.passes(sizes) - 1) * packing_seconds(problem, isa, problem.n - sizes.resident_points)
    screened = brute_seconds(problem, isa, threads, shared=sizes.active_rows > 0)
    return ExactPlan(
        **problem.plan_fields(),
        method="exact",
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
    """Convert seconds of work on one thread to seconds on all threads of the search, if sharing the work saves time."""
    return work / _threads(problem, work) if worth_sharing(work) else work


def _is_direct(problem: Problem, isa: str, prepared: bool, given: dict[str, Any]) -> bool:
    """Whether exact values of all pairs take less time than a screen."""
    if "direct" not in given:
        # A caller who sets fields of the screen requests a screen.
        return not given and direct_seconds(problem, isa) < screening_seconds(problem, isa, prepared=prepared)
    direct = bool(given["direct"])
    others = sorted(set(given) - {"direct", "isa"})
    if direct and others:
        raise ValueError(f"direct=True: there is no screen for which {', '.join(others)} could be set; leave one out")
    return direct


def _work(problem: Problem, isa: str, precision: str, prepared: bool) -> float:
    """Return the seconds that one thread would need for the part of a search that threads can share."""
    passes = -(-problem.m // tuning.QUERY_BLOCK)
    read = problem.n * padded(problem.d, precision, isa) * ELEMENT_BYTES[precision] * passes
    return brute_work(problem, isa, read_bytes=read, prepared=prepared)


def _wish(
    problem: Problem,
    isa: str,
    precisions: tuple[str, ...],
    parallel: tuple[int, int],
    columns: tuple[int, int],
    given: dict[str, Any],
) -> tuple[Needs, BlockSizes, tuple[int, int]]:
    """Return the best choices without a memory budget: :class:`Needs`, block sizes, and a sample's stride and rank.

    `parallel` is the number of threads, and the largest number of parts of the points to search in parallel; `columns`
    is (form_dim, look_dim).
    """
    n, m, d, k = problem.n, problem.m, problem.d, problem.k
    (threads, most_splits), (form_dim, _) = parallel, columns
    block = min(m, given.get("query_block", query_block(m, k, threads)))
    chunk = given.get("point_chunk", point_chunk(n, form_dim, threads))
    if chunk % GROUPS_FIT:
        raise ValueError(f"point_chunk must be a multiple of {GROUPS_FIT}, got {chunk}")
    blocks = -(-m // block)
    sampled = given.get("sample_stride", 0) != 0
    splits = given.get("point_splits", 1 if sampled else max(1, min(most_splits // blocks, -(-n // chunk))))
    stride, rank = sample_of(n, k) if splits == 1 and form_dim == d else (0, 0)
    sample = checked_sample(given.get("sample_stride", stride), given.get("sample_rank", rank), splits)
    if sample[0] and form_dim < d:
        raise ValueError(
            f"form_dim={form_dim} of {d}: a contracted form has no sampled thresholds; set sample_stride=0"
        )
    resident = given.get("resident", True)
    joins = problem.self_join and resident and can_join(problem.metric, form_dim, isa) and not sample[0]
    joins = joins and n * form_dim >= tuning.JOIN_FROM[isa][0]
    active = checked_active(given.get("active_rows", active_rows(problem) if joins else 0), problem.self_join)
    capacity = given.get("capacity", max(2048, 4 * k))
    dtype = inputs.dtype_of(problem.dtype)
    needs = Needs(n, m, d, k, dtype, isa, precisions, threads, chunk, capacity, splits, *columns)
    return needs, BlockSizes(block, n if resident else 0, active, tuning.STREAM_BLOCKS, chunk), sample


def _precisions_held(
    problem: Problem, needs: Needs, sizes: BlockSizes, given: dict[str, Any]
) -> tuple[int, bool, bool]:
    """Return the fields `packed_bytes`, `finer_resident` and `adaptive` of a plan."""
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
