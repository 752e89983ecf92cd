"""Counters of the kernels, compared with slow models and with numbers that can be derived."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import select_checks
from tests.helpers.devices import on_gpu
from tests.helpers.select_checks import assert_same, make, some_lengths, variants
from tests.helpers.select_models import MODELS
from tests.helpers.select_reference import select_k_reference
from tonari.core import _native
from tonari.select import Counters
from tonari.select.registry import METHODS

ISAS = [isa for isa in _native.supported_isas() if isa != "amx"]

BUFFERS: list[dict[str, Any]] = [
    {},
    *({"buffer": kind, "buffer_size": size} for kind, size in itertools.product(("own", "full", "sorted"), (1, 4, 16))),
]
PARTITIONS: list[dict[str, Any]] = [{}, {"group": 2}, {"group": 4, "levels": 1}, {"group": 5}]
QUEUES = [buffer | partition for buffer, partition in itertools.product(BUFFERS, PARTITIONS)]
COUNTED: dict[str, list[dict[str, Any]]] = {
    "insertion": QUEUES,
    "heap": QUEUES,
    "merge_queue": [
        *({"m": 2} | queue for queue in QUEUES),
        *({"m": 1, "aligned": False} | queue for queue in QUEUES[::3]),
        {},
        {"m": 4, "aligned": False, "buffer": "full"},
        {"m": 64},
    ],
    "hierarchical": [{}, {"group": 2}, {"group": 3, "levels": 2}, {"group": 100}],
}


def assert_counters(found: Counters, truth: Counters) -> None:
    """Check that two records agree in every field, None included."""
    for name, value in vars(truth).items():
        np.testing.assert_array_equal(getattr(found, name), value, err_msg=name, strict=True)


def _compare(method: str, options: dict[str, Any], values: Any, k: int, **arguments: Any) -> None:
    found, truth = Counters(), Counters()
    ours = tonari.select_k(values, k, method=method, counters=found, **arguments, **options)
    theirs = select_k_reference(values, k, method=method, counters=truth, **arguments, **options)
    assert_same(ours, theirs)
    assert_counters(found, truth)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("method", "options"), variants(COUNTED))
def test_counters_are_those_of_the_model(
    method: str, options: dict[str, Any], isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    rows, n, k = 19, 61, 9
    offset = sum(map(ord, f"{method}{options}{isa}"))  # each variant has its own values and dtypes
    makers = ["random", "descending", "two_valued"]
    dtypes = ["float32", "float64", "uint8", "float16", "int32"]
    for at in range(2):
        values = make(makers[(offset + at) % 3], rows, n, dtypes[(offset + at) % 5], seed=offset)
        lengths = some_lengths(rows, n, offset) if (offset + at) % 4 == 0 else None
        _compare(method, options, values, k, lengths=lengths, largest=bool(at))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", MODELS)
def test_counters_of_lanes_that_are_not_all_used(method: str, dtype: str) -> None:
    for rows, n, k in ((1, 40, 5), (8, 40, 40), (17, 3, 2), (3, 1, 1)):
        for options in COUNTED[method][1::5]:
            _compare(method, options, make("random", rows, n, dtype), k)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_lanes(dtype: str) -> None:
    counters = Counters()
    tonari.select_k(make("random", 3, 9, dtype), 2, method="heap", counters=counters)
    assert counters.lanes == (16 if dtype == "float32" else 8)


@pytest.mark.parametrize("method", METHODS)
def test_counting_changes_no_answer_and_no_count_depends_on_threads(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tonari.select.tuning.FIRST_VALUES", 1)
    monkeypatch.setattr("tonari.select.tuning.LEAST_PART", 10)  # divided rows would count differently
    for rows in (3, 300):
        values = make("random", rows, 200, "float32")
        plain = tonari.select_k(values, 10, method=method)
        records = [Counters(), Counters()]
        for threads, counters in zip((1, 4), records, strict=True):
            assert_same(tonari.select_k(values, 10, method=method, counters=counters, threads=threads), plain)
        for name, value in vars(records[0]).items():
            if isinstance(value, float):
                assert getattr(records[1], name) == pytest.approx(value, rel=1e-12), name
            else:
                np.testing.assert_array_equal(getattr(records[1], name), value, err_msg=name)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_updates_of_the_insertion_queue_have_a_closed_form(dtype: str) -> None:
    """Figure 5a of tang2015: in random order, the i-th value is among the j smallest so far with probability min(1,
    j / i).

    It then writes the place of the j-th smallest, which is position k - j. These events are independent for different
    i, so the variance is known, too.
    """
    rows, n, k = 2000, 700, 20
    values = np.random.default_rng(5).permuted(np.tile(np.arange(n), (rows, 1)), axis=1).astype(dtype)
    counters = Counters()
    tonari.select_k(values, k, method="insertion", counters=counters)
    ranks, seen = np.arange(k, 0, -1)[:, None], np.arange(1, n + 1)
    chance = np.minimum(1, ranks / seen)
    mean, error = chance.sum(axis=1), np.sqrt((chance * (1 - chance)).sum(axis=1) / rows)
    assert counters.updates is not None
    assert (np.abs(counters.updates / rows - mean) < 5 * error).all()
    assert (error < 0.01 * mean).all()  # the test can tell a count that is off by a twentieth
    # Every value is looked at. In ascending order the j-th goes behind j - 1 values, in descending order behind none.
    assert counters.examined == rows * n
    tonari.select_k(np.sort(values, axis=1), k, method="insertion", counters=counters)
    assert counters.updates.tolist() == [rows * j for j in range(k, 0, -1)]
    tonari.select_k(np.sort(values, axis=1)[:, ::-1], k, method="insertion", counters=counters)
    assert counters.updates.tolist() == [rows * n] * k


def test_all_queues_take_in_the_same_values() -> None:
    """The head is written once for every value that enters, which does not depend on the queue."""
    values = make("random", 50, 900, "float32")
    records = {method: Counters() for method in ("insertion", "heap")}
    for method, counters in records.items():
        tonari.select_k(values, 32, method=method, counters=counters)
    insertion, heap = (record.updates for record in records.values())
    assert insertion is not None
    assert heap is not None
    assert heap[0] == insertion[0]
    assert heap.sum() < insertion.sum()


def test_hierarchical_partition_examines_less() -> None:
    """tang2015 III-E: at most G k entries of every list below the top one."""
    values = make("random", 20, 4096, "float32")
    counters = Counters()
    for method in ("hierarchical", "heap"):
        tonari.select_k(values, 16, method=method, group=4, counters=counters)
        assert counters.examined == 20 * (16 + 4 * (4 * 16))  # lists of 4096, 1024, 256, 64 and 16


def test_quick_reads_each_row_a_few_times() -> None:
    counters = Counters()
    for maker in ("random", "organ_pipe", "median_of_three_killer", "descending", "equal", "two_valued"):
        values = make(maker, 30, 5000, "float32")
        tonari.select_k(values, 50, method="quick", counters=counters)
        assert counters.examined is not None
        assert 30 * 5000 <= counters.examined <= 6 * 30 * 5000, maker
        assert counters.updates is None


def test_threshold_reports_equations_3_and_4() -> None:
    values = np.random.default_rng(0).random((64, 4096), np.float32) + 1
    counters, more = Counters(), Counters()
    tonari.select_k(values, 16, method="threshold", finish="heap", counters=counters)
    tonari.select_k(values, 16, method="threshold", finish="heap", samples=1024, counters=more)
    for record in (counters, more):
        assert record.compression_ratio is not None
        assert record.threshold_ratio is not None
    # A threshold from 8k samples keeps about n / 8; with more samples, fewer.
    assert 3 < counters.compression_ratio < 9
    assert counters.compression_ratio < more.compression_ratio < 4096 / 16
    assert 0 < counters.threshold_ratio < more.threshold_ratio <= 1


@on_gpu
@pytest.mark.parametrize(("method", "options"), variants({method: COUNTED[method][::9] for method in MODELS}))
def test_cuda_counters(method: str, options: dict[str, Any]) -> None:
    for dtype in ("float32", "float64"):
        values = make("random", 70, 90, dtype)
        found, truth = Counters(), Counters()
        tonari.select_k(select_checks.torch.from_numpy(values).cuda(), 9, method=method, counters=found, **options)
        select_k_reference(values, 9, method=method, counters=truth, lanes=32, **options)
        assert_counters(found, truth)
