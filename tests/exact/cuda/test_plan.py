"""The plan of a search on CUDA: pure, frozen, with the bytes of the tensors, routes by memory, checked overrides.

No GPU is needed: devices are names, and their free memory is an argument.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import re
from typing import Any

import pytest

import tonari
from tests.helpers import plans
from tests.helpers.devices import HAS_TORCH, needs_torch, on_device
from tonari.core.errors import BudgetExceeded
from tonari.core.units import MIB
from tonari.cuda import memory as device_memory
from tonari.exact.cuda import tuning
from tonari.exact.cuda.divisions import PRECISIONS
from tonari.exact.cuda.memory import LEAST_BATCH, CudaNeeds, Slabs
from tonari.exact.cuda.plan import CudaPlan
from tonari.exact.cuda.planning import is_contracted_for, plan_on_cuda
from tonari.exact.cuda.rows.groups import GROUP_SIZES, POINT_TILE, group_count
from tonari.exact.cuda.rows.part import plan_for_part
from tonari.metrics import METRICS, get_metric
from tonari.metrics.problem import make_problem

if HAS_TORCH:
    import torch

GB = 10**9
GPU = ("cuda:0",)
BIG = {"n": 10**6, "m": 10**4, "d": 128, "k": 10}


def made(n: int = 1000, m: int = 100, d: int = 16, k: int = 5, **choices: Any) -> CudaPlan:
    """Make a plan for host memory and a device of 80 GB by default."""
    given = {
        "dtype": "float32",
        "metric": "euclidean",
        "devices": GPU,
        "host_points": True,
        "host_queries": True,
        "free_bytes": 80 * GB,
    }
    return plans.exact_cuda(n, m, d, k, **given | choices)


def test_same_arguments_same_plan() -> None:
    assert made(**BIG) == made(**BIG)
    assert made(**BIG) != made(**BIG, self_join=False, query_dtype="float64")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made().k = 3  # type: ignore[misc]


def test_a_plan_survives_json_and_reads_as_a_table() -> None:
    plan = made(**BIG)
    fields = json.loads(json.dumps(plan.as_dict()))
    assert fields["devices"] == ["cuda:0"]
    assert fields["total_bytes"] == plan.total_bytes
    assert plan.total_bytes == plan.packed_bytes + plan.copied_bytes + plan.working_bytes + plan.output_bytes
    shown = dict(line.split(maxsplit=1) for line in str(plan).splitlines())
    assert set(shown) == set(fields)
    assert shown["n"] == "1,000,000"
    assert shown["precisions"] == "float16 > split > values"


@needs_torch
def test_plan_takes_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """tonari.plan uses the devices of `device`, with their free memory."""
    monkeypatch.setattr(tonari.inputs, "devices_for", lambda device: GPU if device == "cuda" else ())
    monkeypatch.setattr(device_memory, "free_memory", lambda devices: 80 * GB)
    assert tonari.plan(**BIG, device="cuda", memory="30GB", group=8) == made(**BIG, memory="30GB", group=8)
    assert isinstance(tonari.plan(**BIG), tonari.Plan)
    with pytest.raises(ValueError, match="threads=2: the search runs on cuda:0; leave threads out"):
        tonari.plan(**BIG, device="cuda", threads=2)
    with pytest.raises(
        ValueError, match=r"cannot override isa; these can be: form_dim, group, point_slab, precisions, .*, width"
    ):
        tonari.plan(**BIG, device="cuda", isa="avx2")


@pytest.mark.parametrize("metric", METRICS)
def test_the_ladder_goes_by_form(metric: str) -> None:
    whole = PRECISIONS[get_metric(metric).form]
    assert whole[-1] == "values"
    assert made(d=17, metric=metric).precisions == whole
    # Rows of few columns are screened in the second precision from the start, except bytes, which are exact in the
    # first.
    assert made(d=16, metric=metric).precisions == whole[whole[0] == "float16" :]
    assert made(d=16, metric=metric, dtype="uint8").precisions == whole


def test_where_there_is_no_room_for_split_it_is_left_out_in_few_columns_too() -> None:
    short = ("float16", "values")
    assert made(d=8, route="host_refine", host_points=True).precisions == short


# ---------------------------------------------------------------- bytes


@on_device
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "l1"])
@pytest.mark.parametrize(
    ("n", "d", "dtype"), [(1, 1, "uint8"), (128, 17, "float32"), (300, 100, "float16"), (129, 40, "bfloat16")]
)
def test_packed_bytes_are_those_of_the_copy(device: str, metric: str, n: int, d: int, dtype: str) -> None:
    from tonari.exact.cuda.rows.form import make_form
    from tonari.exact.cuda.rows.pack import new_flags, pack_points

    points = torch.ones((n, d), dtype=getattr(torch, dtype), device=device)
    form = make_form(points, metric)
    plan = made(n=n, d=d, k=1, dtype=dtype, metric=metric)
    sizes = []
    for precision in plan.precisions[:-1]:
        packed = pack_points(points, form, precision, new_flags(points.device))
        sizes.append(sum(part.nbytes for part in (packed.values, packed.low, packed.e1, packed.e2)))
    assert plan.packed_bytes == sizes[0]
    if len(sizes) > 1:  # the copy for retried rows is temporary memory
        without = made(n=n, d=d, k=1, dtype=dtype, metric=metric, precisions=("float16", "values"))
        assert plan.working_bytes - without.working_bytes == pytest.approx(sizes[1], abs=1000 * plan.query_batch)
        assert plan.working_bytes - without.working_bytes >= sizes[1]


def test_copied_and_output_bytes_are_those_of_the_arrays() -> None:
    rows, queries = 1000 * 16 * 4, 100 * 16 * 4
    assert made().copied_bytes == rows + queries
    assert made(host_points=False).copied_bytes == queries
    assert made(host_points=False, host_queries=False).copied_bytes == 0
    assert made(m=1000, self_join=True).copied_bytes == rows
    assert made(dtype="uint8", query_dtype="float64").copied_bytes == 1000 * 16 + 100 * 16 * 8
    assert made().output_bytes == 100 * 5 * (4 + 4)
    for dtypes in ({"dtype": "float64"}, {"query_dtype": "float64"}):
        assert made(**dtypes).output_bytes == 100 * 5 * (8 + 4)


@pytest.mark.parametrize("group", GROUP_SIZES)
def test_working_bytes_hold_the_minima_of_a_batch(group: int) -> None:
    small, large = (made(**BIG, group=group, query_batch=size) for size in (128, 2560))
    minima = 4 * group_count(10**6, group)
    per_row = (large.working_bytes - small.working_bytes) / (2560 - 128)
    assert minima * 1.1 < per_row < minima * 1.2 + 40_000  # selection uses an eighth as scratch, candidates the rest
    assert small.working_bytes > 128 * minima


def test_batches_are_whole_tiles_of_at_most_two_gibibytes() -> None:
    """If three such batches hold all queries, there is a single batch."""
    for n, m in itertools.product([10**3, 10**6, 10**8], [1, 128, 129, 384, 385, 10**6]):
        plan = made(n=n, m=m, d=8, k=10)
        minima = 4 * group_count(n, plan.group)
        rounded = -(-m // LEAST_BATCH) * LEAST_BATCH
        most = max(LEAST_BATCH, tuning.MINIMA_BYTES // minima // LEAST_BATCH * LEAST_BATCH)
        assert plan.query_batch == (rounded if rounded <= 3 * most else most), (n, m)


def test_all_queries_are_one_batch_only_where_there_is_room() -> None:
    sizes: dict[str, Any] = {"n": 10**8, "m": 384, "d": 8, "k": 10, "host_points": False, "host_queries": False}
    roomy = made(**sizes)
    alone = made(**sizes, memory=roomy.total_bytes - 1)  # without memory for subsets of the points
    assert roomy.query_batch == alone.query_batch == 384
    short = made(**sizes, memory=alone.total_bytes - 1)
    assert short.query_batch == 256
    assert short.total_bytes < alone.total_bytes


# ---------------------------------------------------------------- choices


def test_the_group_takes_the_least_time() -> None:
    """Large groups make reading minima cheap, small groups make refining cheap; with more points or fewer groups
    they grow.
    """
    by_n = [made(n=n, k=10, d=128).group for n in (10**4, 10**5, 10**6, 10**7)]
    by_k = [made(n=10**6, k=k, d=128).group for k in (1, 10, 100, 1000)]
    assert by_n == sorted(by_n)
    assert by_k == sorted(by_k, reverse=True)
    assert by_n[0] == by_k[-1] == 8
    assert by_n[-1] == by_k[0] == 32
    for n, k in ((10**5, 10), (10**6, 10), (10**6, 100)):
        chosen = made(n=n, k=k, d=128)
        others = [made(n=n, k=k, d=128, group=group) for group in GROUP_SIZES]
        assert chosen.seconds == min(plan.seconds for plan in others)


def test_the_time_is_what_the_parts_take() -> None:
    minima, members = 4 * 10**6 / 32, 16 * 32 * 128 * 4
    a_row = 2 * 10**6 * 128 / 5.5e14 + minima / 2.3e12 + members / 2.8e12
    of_host = {"host_points": False, "host_queries": False}
    sizes = {"itemsize": 4, "query_itemsize": 4, "value_itemsize": 4, "gemm": True, "self_join": False}
    needs = CudaNeeds(**BIG, **sizes, **of_host, precisions=("float16", "values"), group=32, width=16)
    whole = Slabs("resident", 10**6, 10**4)
    assert needs.seconds(whole) == pytest.approx(10**4 * a_row, rel=1e-3)
    plan, copied = made(**BIG, group=32, **of_host), made(**BIG, group=32)
    assert plan.seconds == pytest.approx(needs.seconds(whole), rel=0.25)  # the model of a whole search
    assert copied.seconds - plan.seconds == pytest.approx((10**6 + 10**4) * 512 / 2e10, rel=1e-3)


def test_small_searches_of_tensors_that_nobody_limits_may_be_captured() -> None:
    there = {"host_points": False, "host_queries": False}
    assert made(**there).cuda_graph
    assert made(**there).replayable
    for other in (
        {"host_queries": True},
        {"host_points": True},
        {"memory": "1GB"},
        {"width": 7},
        {"m": 10**6, "n": 10**6, "free_bytes": 2 * GB},
    ):
        assert not made(**there | other).cuda_graph, other


def test_searches_on_several_devices_may_be_captured_but_never_as_two_launches() -> None:
    there = {"host_points": False, "host_queries": False, "devices": ("cuda:0", "cuda:1")}
    plan = made(**there, m=1, d=128)
    assert plan.cuda_graph
    assert not plan.few
    assert not plan_for_part(plan, 500, 1, "cuda:0").cuda_graph
    assert made(**there | {"devices": ("cuda:0",)}, m=1, d=128).few


_OF_PLAN = {"free_bytes", "prepared_by", "route"}  # and does not depend on the problem


def on_all(count: int, **given: Any) -> CudaPlan:
    devices = tuple(f"cuda:{number}" for number in range(count))
    choices = {"free_bytes": 80 * GB} | {name: given.pop(name) for name in _OF_PLAN & set(given)}
    sizes = {"dtype": "float32", "metric": "euclidean", "k": 10, "d": 96} | given
    problem = dataclasses.replace(make_problem(devices=devices, **sizes), may_take_fewer=True)
    return plan_on_cuda(problem, **choices)


def test_of_all_devices_as_many_are_taken_as_are_expected_to_be_faster() -> None:
    there = {"host_points": False, "host_queries": False}
    large = {"n": 4 * 10**6, "m": 10**4, "free_bytes": 70 * GB}
    # a fourth device would take the host too long
    assert on_all(4, **large, **there).devices == ("cuda:0", "cuda:1", "cuda:2")
    assert on_all(4, **large | {"m": 10**5}, **there).devices == ("cuda:0", "cuda:1", "cuda:2", "cuda:3")
    few = on_all(4, n=10**5, m=100, **there)
    assert few.devices == ("cuda:0",)
    assert few.why_devices.startswith("1 of 4: ")
    assert few.why_devices.count(" s on ") == 4
    from_host = on_all(2, **large)
    assert from_host.devices == ("cuda:0",)  # copying to two devices takes longer than searching on one
    assert on_all(2, **large | {"m": 10**6}).devices == ("cuda:0", "cuda:1")
    one = made(**large, k=10, d=96, devices=("cuda:0",))
    assert dataclasses.replace(from_host, why_devices="") == one


def test_the_device_of_the_points_searches_more_of_them_while_others_wait() -> None:
    sizes = {"n": 4 * 10**6, "m": 10**4, "d": 96, "k": 10, "devices": ("cuda:0", "cuda:1")}
    there = {"host_points": False, "host_queries": False}
    plan = made(**sizes, **there)
    assert 0.52 * plan.n < plan.points_at_home < 0.6 * plan.n
    assert (plan.n - plan.points_at_home) % POINT_TILE == 0
    four = made(**sizes | {"devices": tuple(f"cuda:{i}" for i in range(4))}, **there)
    assert 0.28 * plan.n < four.points_at_home < 0.4 * plan.n
    assert made(**sizes).points_at_home == 0  # copied from host memory to both devices
    assert made(**sizes | {"devices": GPU}, **there).points_at_home == 0
    assert made(**sizes | {"m": 4 * 10**6}, **there).points_at_home < 0.51 * plan.n
    least = four.total_bytes
    tight = made(**sizes | {"devices": four.devices}, **there, memory=least)
    assert tight.total_bytes <= least


def test_devices_that_are_named_are_all_taken() -> None:
    plan = made(devices=("cuda:0", "cuda:1"), n=10**5, m=100)
    assert (len(plan.devices), plan.why_devices) == (2, "2, as given")
    assert made().why_devices == ""


def test_points_stay_on_the_devices_that_they_were_prepared_on() -> None:
    large = {"n": 4 * 10**6, "m": 10**6, "free_bytes": 70 * GB}
    first = on_all(2, **large)
    assert len(first.devices) == 2
    later = on_all(2, **large | {"m": 1}, prepared_by=first)
    assert later.devices == first.devices


def test_more_devices_are_taken_if_the_points_do_not_fit_on_fewer() -> None:
    with pytest.raises(BudgetExceeded):
        made(n=10**6, d=960, m=10, devices=("cuda:0",), route="resident", free_bytes=GB * 4)
    sizes = {"n": 10**6, "d": 960, "m": 10, "route": "resident", "free_bytes": GB * 4}
    assert len(on_all(4, **sizes).devices) > 1
    with pytest.raises(BudgetExceeded):
        on_all(4, **sizes | {"free_bytes": GB})


def test_the_width_leaves_room_to_prove() -> None:
    assert made(n=10**6, k=10).width == 16
    assert made(n=10**6, m=10**6, k=10, self_join=True).width == 17  # the query itself may be among them
    assert made(n=10**6, k=160).width == 180
    assert made(n=100, k=10, group=32).width == 4  # all groups that exist


@pytest.mark.parametrize("n", [1, 2, 127, 128, 129, 5000])
def test_small_problems(n: int) -> None:
    plan = made(n=n, m=1, d=1, k=1)
    assert (plan.route, plan.point_slab, plan.query_slab) == ("resident", n, 1)
    assert 1 <= plan.width <= group_count(n, plan.group)


# ---------------------------------------------------------------- routes and budgets


def test_everything_stays_if_it_fits() -> None:
    plan = made(**BIG)
    assert plan.route == "resident"
    assert (plan.point_slab, plan.query_slab) == (10**6, 10**4)
    assert made(**BIG, memory=plan.total_bytes) == plan


def test_what_copies_take_goes_first_and_the_second_rung_before_the_points_do() -> None:
    most = made(**BIG, query_batch=1024)
    plan = made(**BIG, query_batch=1024, memory=most.total_bytes - 1)
    assert (most.subsets, plan.subsets) == (True, False)
    assert plan.precisions == most.precisions == ("float16", "split", "values")
    assert most.total_bytes - plan.total_bytes == 10**6 * (4 * 128 + 64) + plan.packed_bytes
    tight = made(**BIG, query_batch=1024, memory=plan.total_bytes - 1)
    assert tight.route == "resident"
    assert tight.precisions == ("float16", "values")
    assert tight.total_bytes < plan.total_bytes


def test_points_are_streamed_if_they_do_not_fit() -> None:
    plan = made(**BIG, memory=400 * MIB, self_join=False)
    assert plan.route == "streamed"
    assert plan.point_slab < 10**6
    assert plan.point_slab % POINT_TILE == 0
    assert plan.query_batch >= LEAST_BATCH
    assert plan.total_bytes <= 400 * MIB
    # Two slabs in transfer, and their packed copy.
    assert plan.working_bytes > 2 * plan.point_slab * 128 * 4
    assert plan.packed_bytes >= plan.point_slab * 128 * 2


def test_queries_are_streamed_too_if_they_have_to() -> None:
    plan = made(n=10**8, m=10**8, d=96, k=10, self_join=True, memory="8GB")
    assert plan.route == "streamed"
    assert plan.point_slab < 10**8
    assert plan.query_slab < 10**8
    assert plan.copied_bytes == plan.query_slab * 96 * 4
    assert plan.output_bytes == plan.query_slab * 10 * 8


def test_slabs_take_the_least_time_of_those_that_fit() -> None:
    plan = made(n=10**8, m=10**6, d=96, k=10, memory="8GB")
    for points, queries in ((plan.point_slab // 256 * 128, plan.query_slab), (plan.point_slab, plan.query_slab // 2)):
        other = made(n=10**8, m=10**6, d=96, k=10, memory="8GB", point_slab=points, query_slab=queries)
        assert other.seconds >= plan.seconds


def test_points_on_the_device_are_streamed_without_copies() -> None:
    on_device = {"host_points": False, "host_queries": False}
    plan = made(n=10**8, m=1000, d=128, k=10, **on_device, memory="2GB")
    assert plan.route == "streamed"
    assert plan.copied_bytes == 0
    host = made(n=10**8, m=1000, d=128, k=10, route="streamed", point_slab=plan.point_slab)
    assert (
        host.working_bytes
        - made(n=10**8, m=1000, d=128, k=10, **on_device, route="streamed", point_slab=plan.point_slab).working_bytes
        == 2 * plan.point_slab * 512
    )


def test_few_queries_are_refined_by_the_cpu_where_the_packed_copy_fits() -> None:
    problem = {"n": 10**8, "d": 128, "k": 10, "free_bytes": 40 * GB}
    few = made(m=1, **problem)
    assert few.route == "host_refine"
    assert few.packed_bytes >= 10**8 * 256
    assert few.output_bytes == few.copied_bytes == 0
    assert "split" not in few.precisions
    assert made(m=10**6, **problem).route == "streamed"
    assert made(m=1, **problem, host_points=False).route == "resident"  # only the packed copy is new
    assert made(m=1, **problem | {"free_bytes": 20 * GB}).route == "streamed"
    assert made(m=10**6, **problem, route="host_refine").route == "host_refine"


def test_a_budget_is_kept_or_refused_with_the_least_that_works() -> None:
    for problem in (BIG, {**BIG, "route": "resident"}, {**BIG, "metric": "l1"}, {**BIG, "dtype": "float64"}):
        with pytest.raises(ValueError, match=r"budget of 1000000 bytes cannot hold") as refused:
            made(**problem, memory="1MB")
        least = int(re.search(r"allow at least (\d+)", str(refused.value))[1])  # type: ignore[index]
        plan = made(**problem, memory=least)
        assert plan.total_bytes <= least
        assert plan.query_batch == 1
        with pytest.raises(ValueError, match="cannot hold"):
            made(**problem, memory=least - 1)
        for factor in (1.01, 1.1, 2, 5, 20, 100):
            assert made(**problem, memory=int(factor * least)).total_bytes <= factor * least


def test_a_batch_is_short_only_if_it_has_to_be() -> None:
    least = {"route": "resident", "precisions": ("float16", "values"), "query_batch": LEAST_BATCH}
    whole = made(**BIG, **least, memory=made(**BIG, **least).total_bytes - 1)  # without memory for leaving out copies
    short = made(**BIG, route="resident", memory=whole.total_bytes - 1)
    assert 1 <= short.query_batch < LEAST_BATCH
    assert made(**BIG, memory=whole.total_bytes - 1).query_batch >= LEAST_BATCH  # then it is streamed


def test_what_is_free_counts_where_nothing_is_said() -> None:
    assert made(**BIG, free_bytes=2 * GB).total_bytes <= 2 * GB - 512 * MIB
    assert made(**BIG, free_bytes=2 * GB, memory="10GB") == made(**BIG, free_bytes=2 * GB)
    with pytest.raises(ValueError, match=r"of 0 bytes, which cuda:0 can give, cannot hold .*allow at least"):
        made(**BIG, free_bytes=100 * MIB)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_devices_share_the_points(count: int) -> None:
    names = tuple(f"cuda:{number}" for number in range(count))
    plan = made(**BIG, devices=names)
    assert plan.devices == names
    assert plan.point_slab >= -(-(10**6) // count)
    assert plan.point_slab - 10**6 / count < POINT_TILE
    assert plan.point_slab % POINT_TILE == 0
    assert plan.packed_bytes == made(**{**BIG, "n": plan.point_slab}).packed_bytes
    assert plan.n == 10**6
    assert plan.shard == "points"
    assert made(n=50, k=50, devices=names).point_slab == 50  # a part may be as small as a tile, and contain all points


TWO = ("cuda:0", "cuda:1")


def test_devices_share_the_queries_where_that_takes_less_time() -> None:
    """If each device has all points, they are not refined twice, but have to be copied to each device."""
    many = made(n=10**5, m=10**7, d=128, k=10, devices=TWO)
    assert (many.shard, many.route, many.point_slab, many.query_slab) == ("queries", "resident", 10**5, 5 * 10**6 + 64)
    few = made(n=10**7, m=100, d=128, k=10, devices=TWO)
    assert (few.shard, few.point_slab, few.query_slab) == ("points", 5 * 10**6 + 64, 100)
    for plan, other in ((many, "points"), (few, "queries")):
        problem = {name: getattr(plan, name) for name in ("n", "m", "d", "k")}
        assert made(**problem, devices=TWO, shard=other).seconds > plan.seconds
        assert made(**problem, devices=TWO, shard=plan.shard) == dataclasses.replace(plan, cuda_graph=False)
    assert made(**BIG).shard == "none"


def test_devices_share_the_points_where_all_do_not_fit_on_each() -> None:
    problem = {"n": 10**7, "m": 10**7, "d": 128, "k": 10, "devices": TWO}
    assert made(**problem, shard="queries", free_bytes=80 * GB).packed_bytes >= 2 * 10**7 * 128
    tight = made(**problem, free_bytes=8 * GB)
    assert tight.shard == "points"
    assert tight.total_bytes <= 8 * GB
    with pytest.raises(ValueError, match="cannot hold this search"):
        made(**problem, free_bytes=7 * GB, shard="queries")


def test_rows_on_one_device_are_copied_to_the_others() -> None:
    there = {"host_points": False, "host_queries": False, "devices": TWO}
    rows = 16 * 4
    assert made(**there, shard="points").copied_bytes == (512 + 100) * rows
    assert made(**there, shard="queries").copied_bytes == (1000 + 100) * rows
    graph = {"m": 1000, "self_join": True}
    assert made(**there, **graph, shard="queries").copied_bytes == 1000 * rows
    assert made(**there, **graph, shard="points").copied_bytes == (512 + 1000) * rows
    # Results are merged on the device of the queries.
    assert made(**there, shard="queries").output_bytes == (100 + 100) * 5 * 8
    assert made(devices=TWO, shard="queries").output_bytes == 100 * 5 * 8


def test_a_device_numbers_its_points_in_int32() -> None:
    problem = {"n": 2**32, "m": 10, "d": 1, "k": 1, "dtype": "uint8", "free_bytes": 10**13}
    plan = made(**problem)
    assert plan.route == "streamed"
    assert plan.point_slab < 2**31
    four = made(**problem, devices=tuple(f"cuda:{number}" for number in range(4)))
    assert (four.route, four.shard, four.point_slab) == ("resident", "points", 2**30)
    for override in ({"route": "resident"}, {"route": "host_refine"}, {"point_slab": 2**31}):
        with pytest.raises(ValueError, match="a device takes at most 2147483647 points at once"):
            made(**problem, **override)


# ---------------------------------------------------------------- overrides


@pytest.mark.parametrize(
    "override",
    [
        {"route": "streamed"},
        {"route": "host_refine"},
        {"precisions": ("split", "values")},
        {"precisions": ["float16", "values"]},
        {"group": 16},
        {"width": 3},
        {"query_batch": 7},
        {"query_batch": 5000},
        {"query_slab": 30},
        {"point_slab": 256},
        {"point_slab": 10**9},
        {"shard": "queries", "devices": TWO},
        {"shard": "points", "devices": TWO},
    ],
    ids=str,
)
def test_overrides_are_taken(override: dict[str, Any]) -> None:
    plan = made(**override)
    (name, value), *_ = override.items()
    expected = {10**9: 1000}.get(value, value) if name == "point_slab" else value
    assert getattr(plan, name) == (tuple(expected) if isinstance(expected, list) else expected)
    if name in ("query_slab", "point_slab") and expected < 1000:
        assert plan.route == "streamed"


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"tile": 3}, r"cannot override tile; these can be: form_dim, group, point_slab, precisions, .*, width"),
        ({"route": "scenic"}, "route='scenic': expected one of resident, host_refine, codes, streamed"),
        ({"route": None}, "route=None: expected one of"),
        (
            {"route": "host_refine", "host_points": False},
            "route='host_refine' refines from host memory, but",
        ),
        (
            {"precisions": ("bfloat16", "values")},
            r"precisions=\('bfloat16', 'values'\): .* float16, split, values",
        ),
        ({"precisions": ("split", "float16", "values")}, "expected a tuple in the order"),
        ({"precisions": ("float16", "split")}, "that ends with 'values', such as"),
        ({"precisions": ("values",)}, "precisions"),
        ({"precisions": "values"}, "precisions='values'"),
        ({"precisions": ("float16", "values"), "metric": "l1"}, r"in the order float32, values"),
        ({"group": 12}, "group=12: expected one of 8, 16, 32"),
        ({"width": 0}, "width must be a whole number of at least 1, got 0"),
        ({"width": 2.5}, "width must be a whole number"),
        ({"query_batch": 0}, "query_batch must be"),
        ({"query_batch": "many"}, "query_batch must be"),
        ({"query_slab": 0}, "query_slab must be"),
        ({"query_slab": 50, "route": "resident"}, "query_slab=50: only route='streamed' takes queries slab by slab"),
        ({"point_slab": 100}, "point_slab must be a multiple of 128, or all 1000 points, got 100"),
        ({"point_slab": 256, "route": "resident"}, "point_slab=256: route='resident' holds all 1000 points at once"),
        ({"query_batch": 10**7, "memory": "1GB"}, r"cannot hold this search; allow at least \d+"),
        ({"shard": "points"}, "shard='points': expected one of none on 1 devices"),
        ({"shard": "rows", "devices": TWO}, "shard='rows': expected one of points, queries on 2 devices"),
        (
            {"shard": "queries", "devices": TWO, "route": "streamed"},
            "route='streamed' does not hold all points on each",
        ),
        ({"shard": "queries", "devices": TWO, "point_slab": 512}, "shard='queries' holds all 1000 points at once"),
        ({"shard": "queries", "devices": TWO, "query_slab": 9}, "only route='streamed' takes queries slab by slab"),
        ({"n": 0}, "n must be at least 1, got 0"),
        ({"k": 1001}, "k=1001: the largest k is 1000, as there are 1000 points"),
        ({"self_join": True}, "a self-join has as many queries as points, got m=100 and n=1000"),
        ({"dtype": "int32"}, "dtype int32 is not supported"),
        ({"metric": "l7"}, "unknown metric 'l7'"),
        ({"memory": "12"}, "memory='12': expected a number and a unit"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(override: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**override)


def test_prepared_points_are_contracted_once_their_searches_were_worth_the_choice() -> None:
    """Like searches of all these queries at once; not for short searches, with a budget, or on several devices."""
    wide = {"n": 10**6, "m": 10**4, "d": 768, "k": 10, "dtype": "float32", "metric": "cosine", "devices": GPU}
    problem = make_problem(**wide)
    worth = next(m for m in range(10**4, 10**7, 10**4) if made(**BIG | {"d": 768, "m": m}).form_dim == "pilot")
    assert not is_contracted_for(problem, worth - 2 * 10**4)
    assert is_contracted_for(problem, worth - 10**4)
    assert not is_contracted_for(dataclasses.replace(problem, m=100), worth)
    assert not is_contracted_for(dataclasses.replace(problem, memory=10**10), worth)
    assert not is_contracted_for(dataclasses.replace(problem, devices=("cuda:0", "cuda:1")), worth)
    assert not is_contracted_for(dataclasses.replace(problem, d=32), 10**9)


def test_plans_for_contracted_points_do_not_choose_again() -> None:
    """For any number of queries, because the points are already contracted, unless the caller requests otherwise."""
    by = made(**BIG | {"d": 768, "m": 10**6})
    assert by.form_dim == "pilot"
    assert made(**BIG | {"d": 768}).form_dim == "full"
    # If pilot rows choose all dimensions, as many groups are refined as without pilot rows.
    assert (by.width, made(**BIG | {"d": 768, "m": 10**6}, form_dim="full").width) == (16, 16)
    assert (by.contracted_width, made(**BIG | {"d": 768}).contracted_width) == (64, 0)
    assert made(**BIG | {"d": 768, "m": 10**6}, form_dim=256).contracted_width == 64
    later = made(**BIG | {"d": 768}, prepared_by=by)
    assert (later.form_dim, later.width, later.cuda_graph) == ("pilot", by.width, False)
    assert made(**BIG | {"d": 768}, prepared_by=by, form_dim="full").form_dim == "full"
