"""How benchmarks run: in separate processes, with instruction sets, and with peers that use our distances."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.harness import children, contest, machine
from benchmarks.harness.datasets import made_up
from benchmarks.harness.peers import cpu as peers
from tests.helpers.bench_checks import a_case
from tonari.metrics.reference import brute


@pytest.mark.parametrize(
    ("name", "metric"), [(peer.name, metric) for peer in peers.PEERS.values() for metric in sorted(peer.metrics)]
)
def test_peers_answer_in_our_meaning(name: str, metric: str) -> None:
    peer = peers.PEERS[name]
    if peer.missing():
        pytest.skip(peer.missing())
    data = made_up.gaussian(300, 40, 8)
    truth = brute(data.queries, data.points, 4, metric)
    distances, indices = peer.prepare(data.points, metric, 1)(data.queries, 4)
    np.testing.assert_array_equal(indices, truth.indices)
    np.testing.assert_allclose(distances, truth.distances, rtol=1e-4, atol=1e-5)


def test_a_peer_that_is_slow_gets_a_slice() -> None:
    asked = []

    class Slow:
        name = "slow"

        def search(self, request: Any) -> Any:
            rows = request.stop - request.start
            asked.append(rows)
            return peers.Reply(0.5, rows * 0.01, np.zeros((rows, 4)), np.zeros((rows, 4), int))

    theirs = contest.Theirs(Slow(), a_case(), 100_000, seconds=100.0)
    assert theirs.rows == 8192
    assert theirs.run().seconds == pytest.approx(1000.5)
    assert asked[-1] == 8192
    assert contest.Theirs(Slow(), a_case(), 100_000, seconds=5.0).rows == 500
    assert contest.Theirs(Slow(), a_case(), 3000, seconds=100.0).rows == 3000


def fail(connection: Any, message: str) -> None:
    connection.recv()
    raise OSError(message)


def test_a_failing_child_reports_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    root = str(Path(__file__).resolve().parents[2])
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([root, str(Path(__file__).parent)]))
    child = children.Child(fail, "out of luck", variables={})
    with pytest.raises(RuntimeError, match="OSError: out of luck"):
        child.ask(None)
    child.close()


def test_environment_is_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_BENCH_A", "1")
    with children.environment({"TONARI_BENCH_A": None, "TONARI_BENCH_B": "2"}):
        assert "TONARI_BENCH_A" not in os.environ
        assert os.environ["TONARI_BENCH_B"] == "2"
    assert os.environ["TONARI_BENCH_A"] == "1"
    assert "TONARI_BENCH_B" not in os.environ


def test_levels_build_on_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = "avx2 fma f16c bmi2 amx_tile amx_bf16 amx_int8"
    monkeypatch.setattr(machine, "_cpuinfo", lambda key: flags)
    assert machine.levels() == ["generic", "avx2"]
    monkeypatch.setattr(machine, "_cpuinfo", {"Features": "fp asimd asimddp"}.get)
    assert machine.levels() == ["generic", "neon"]
