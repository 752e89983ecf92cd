"""Points prepared on one stream and searched on another: readers wait, and their memory is not reused too early."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import on_host
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.cuda.streams import Written, synchronize
    from tonari.exact.cuda.rows import prepared as engine
    from tonari.kdtree.cuda import build as building

pytestmark = needs_torch

CYCLES = 1_000_000_000  # half a second on a GPU


@pytest.fixture
def loaded() -> None:
    """Launch the kernels of a test once: the first launch loads a kernel, and then CUDA waits for the device."""
    values = torch.zeros(8, device="cuda") + torch.ones(8, device="cuda")
    values += 1
    torch.full((8,), float("nan"), device="cuda")
    torch.cuda._sleep(1)
    assert float(values.sum()) == 16


def test_on_the_cpu_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a stream of CUDA was asked for")

    monkeypatch.setattr(torch.cuda, "current_stream", refuse)
    values = torch.zeros(3)
    written = Written(values, torch.ones(2))
    written.read()
    synchronize(["cpu"])
    assert written._event is None


@on_gpu
@pytest.mark.usefixtures("loaded")
def test_a_reader_waits_for_the_writer() -> None:
    writer, reader = torch.cuda.Stream(), torch.cuda.Stream()
    values = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(writer):
        torch.cuda._sleep(CYCLES)
        values += 1
        written = Written(values)
    with torch.cuda.stream(reader):
        assert not writer.query()  # otherwise this test shows nothing
        written.read()
        total = values.sum()
    reader.synchronize()
    assert float(total) == 1 << 20


@on_gpu
@pytest.mark.usefixtures("loaded")
def test_memory_is_not_given_away_while_another_stream_reads() -> None:
    writer, reader = torch.cuda.Stream(), torch.cuda.Stream()
    with torch.cuda.stream(writer):
        values = torch.ones(1 << 20, device="cuda")
        written, address = Written(values), values.data_ptr()
    with torch.cuda.stream(reader):
        written.read()
        torch.cuda._sleep(CYCLES)
        total = values.sum()
    del values, written
    with torch.cuda.stream(writer):
        others = [torch.zeros(1 << 20, device="cuda") for _ in range(8)]
    assert address not in [other.data_ptr() for other in others]
    reader.synchronize()
    assert float(total) == 1 << 20


def busy_first(work: Callable[..., Any]) -> Callable[..., Any]:
    """Do the same work after half a second of other work."""

    def late(*arguments: Any, **named: Any) -> Any:
        torch.cuda._sleep(CYCLES)
        return work(*arguments, **named)

    return late


@on_gpu
@pytest.mark.parametrize(
    ("method", "d", "metric"), [("exact", 96, "euclidean"), ("exact", 20, "l1"), ("kdtree", 3, "euclidean")]
)
def test_an_index_is_searched_on_another_stream_than_it_was_made_on(
    method: str, d: int, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = checks.gaussian(20_000, d)
    points, queries = (torch.from_numpy(part).to("cuda") for part in (rows, rows[:300]))
    truth = brute(rows[:300], rows, 7, metric)
    warm = tonari.Index(points, method=method, metric=metric).search(queries, 7)
    assert_same_neighbors(on_host(warm), truth, metric=metric)
    monkeypatch.setattr(engine, "pack_points", busy_first(engine.pack_points))
    monkeypatch.setattr(building, "_placed", busy_first(building._placed))
    # The previous contents of the memory must not look right.
    torch.full((1 << 28,), float("nan"), device="cuda")
    makers, readers = ([torch.cuda.Stream() for _ in range(2)] for _ in range(2))
    torch.cuda.synchronize()
    for maker, reader in zip(makers, readers, strict=True):
        with torch.cuda.stream(maker):
            index = tonari.Index(points, method=method, metric=metric)
            assert not maker.query()  # otherwise this test shows nothing
        with torch.cuda.stream(reader):
            found = index.search(queries, 7)
        assert_same_neighbors(on_host(found), truth, metric=metric)
        del index


@on_gpu
def test_replays_follow_the_stream_that_is_current() -> None:
    rows = checks.gaussian(5_000, 32)
    points = torch.from_numpy(rows).to("cuda")
    streams = [torch.cuda.Stream() for _ in range(3)]
    index = tonari.Index(points)
    for turn in range(6):
        with torch.cuda.stream(streams[turn % 3]):
            begin = 50 * turn
            torch.cuda._sleep(CYCLES // 10)
            found = index.search(points[begin : begin + 50] + 0, 5)
        assert_same_neighbors(on_host(found), brute(rows[begin : begin + 50], rows, 5))


@on_gpu
@pytest.mark.parametrize("method", ["exact", "kdtree"])
def test_the_log_tells_wall_time(method: str, caplog: pytest.LogCaptureFixture) -> None:
    points = torch.rand((200_000, 3), device="cuda")
    tonari.search(points, points, 5, method=method)
    torch.cuda._sleep(CYCLES)
    with caplog.at_level("INFO", logger="tonari"):
        tonari.search(points, points, 5, method=method)
    (line,) = (message for message in caplog.messages if " rows in " in message)
    seconds = float(line.partition(" rows in ")[2].partition(" s")[0])
    assert seconds > CYCLES / 4e9  # includes the work that the device had to finish first
    assert torch.cuda.current_stream().query()


def test_a_graph_s_report_has_the_seconds_of_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    from tonari.nn_descent import method

    build = method.build

    def slowly_prepared(*arguments: Any, **named: Any) -> Any:
        time.sleep(0.3)
        return build(*arguments, **named)

    monkeypatch.setattr(method, "build", slowly_prepared)
    started = time.perf_counter()
    graph = tonari.knn_graph(checks.gaussian(2_000, 8), 5, method="nn-descent", recall=0.9)
    assert graph.report is not None
    assert 0.3 < graph.report.seconds <= time.perf_counter() - started
    assert np.isfinite(graph.distances).all()
