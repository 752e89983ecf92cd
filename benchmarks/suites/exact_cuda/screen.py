"""The screen alone, from float16 rows to group minima, timed alternately with a matrix product of the same size.

The screen has two forms: it returns all minima, or only the groups at or below a threshold that comes from a sample, as
in searches of many points. The time does not include packing, or the sample and its thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...harness.case import Case
from ...harness.datasets.hard import DeviceData, make
from ...harness.run import Run, seconds_of
from .bounds import Packed, check_bounds, check_lists, proved_rows
from .speed import speed

PRECISION = "float16"
PROOF = "bounds in float64"


def sweep(run: Run, case: Case) -> None:
    """Time the screen for each number of dimensions, and for each number of queries."""
    for m, d in case.grid:
        part = case.resized(m=m, d=d)

        def work(part: Case = part) -> None:
            screen_rows(run, part, make(part.data, part.n, part.m, part.d, run.where))

        run.guarded(part, "tonari screen", work)
        run.free()


def screen_rows(run: Run, case: Case, data: DeviceData) -> None:
    """Verify and time the screen on one kind of data, in the forms that the engine would use."""
    from tonari.exact.cuda.rows import pack
    from tonari.exact.cuda.rows.form import make_form
    from tonari.exact.cuda.screens.sampling import sample_for

    flags = pack.new_flags(data.points.device)
    plan = run.tonari.plan(case.n, case.m, case.d, case.k, device=run.where)
    form = make_form(data.points, "euclidean")
    packed = Packed(
        data,
        pack.pack_queries(data.queries, form, PRECISION, flags),
        pack.pack_points(data.points, form, PRECISION, flags),
        form,
        plan.group,
    )
    sample = sample_for(case.n, plan.width, packed.group)
    if case.grid or sample is None:
        dense(run, case, packed, () if sample else case.bars)
    if sample is not None:
        below(run, case, packed, pack.pack_points(data.points[:: sample.stride], form, PRECISION, flags), sample)


def dense(run: Run, case: Case, packed: Packed, bars: Any) -> None:
    """Measure the screen in the form that returns the minima of all groups."""
    import torch

    from tonari.exact.cuda.rows.groups import group_count
    from tonari.exact.cuda.screens.all_minima import screen

    groups = group_count(case.n, packed.group)
    minima = torch.full((case.m, groups), torch.nan, dtype=torch.float32, device=packed.data.points.device)

    def call() -> None:
        screen(packed.queries, packed.points, slice(0, case.m), packed.group, minima)

    def check() -> int:
        rows = proved_rows(case.m)
        lower = minima[torch.from_numpy(rows).to(minima.device)]
        return check_bounds(lower, torch.ones_like(lower, dtype=torch.bool), rows, packed)

    measure(run, case, f"tonari screen, minima of {packed.group}", call, check, bars)


def below(run: Run, case: Case, packed: Packed, sampled: Any, sample: Any) -> None:
    """Measure the form of the screen that lists the groups at or below each row's threshold, found by a sample."""
    import torch

    from tonari.exact.cuda.rows.groups import group_count
    from tonari.exact.cuda.screens.all_minima import screen, screen_below
    from tonari.select.cuda.dispatch import k_smallest

    everything, device = slice(0, case.m), packed.data.points.device
    minima = torch.empty((case.m, group_count(sampled.n, packed.group)), dtype=torch.float32, device=device)
    screen(packed.queries, sampled, everything, packed.group, minima)
    thresholds = k_smallest(minima, sample.rank).values[:, -1].contiguous()
    del minima
    found: list[Any] = [None]

    def call() -> None:
        found[0] = screen_below(packed.queries, packed.points, everything, thresholds, sample.capacity)

    def check() -> int:
        return check_lists(found[0], thresholds, proved_rows(case.m), packed)

    measure(run, case, "tonari screen, below a threshold", call, check, case.bars)


def measure(run: Run, case: Case, who: str, call: Callable[[], None], check: Callable[[], int], bars: Any) -> None:
    """Verify and time one form of the screen; write its row, with the verdict on the required speed."""
    call()
    proved = run.prove(check)
    timing = run.time(call)
    facts = {"who": who, "dtype": PRECISION, "prepared": True, "proof": PROOF, "proved": proved}
    extras = speed(run, case, timing) | {"gemm_d_tflops": run.ceilings.gemm_at(case.d) / 1e12}
    facts |= seconds_of(timing) | {"extras": extras}
    measured = {"pairs/s in the screen": extras["pairs_per_s"]}
    run.write(case, [facts | verdict for verdict in run.verdicts(bars, measured)])
