"""tonari.build_graph: each argument is used or refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.shards import assert_exact, by_shards, clustered, lists

POINTS = checks.gaussian(60, 4)


class Wrong:
    """A source whose rows have another number of columns than it declares."""

    shape = (60, 5)

    def rows(self, begin: int, end: int) -> Any:
        return POINTS[begin:end]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"k": 0}, ValueError, "k=0: the smallest k is 1"),
        ({"k": 60}, ValueError, "k=60: the largest k is 59"),
        ({"k": 2.0}, TypeError, "k"),
        ({"metric": "euclid"}, ValueError, "unknown metric 'euclid'"),
        ({"method": "nn-descent"}, ValueError, "unknown method 'nn-descent'; expected one of 'auto', 'exact', 'clus"),
        ({"method": "exact", "recall": 0.9}, ValueError, "recall is for method='clusters', 'ggm' and 'auto'"),
        ({"recall": 1.0}, ValueError, "recall=1.0: expected a number between 0 and 1"),
        ({"seed": -1}, ValueError, "seed=-1"),
        ({"update": "push"}, ValueError, "update='push': expected one of 'pull', 'gnnd'"),
        ({"update": "gnnd"}, ValueError, "update='gnnd' with method='auto': expected method='clusters' or 'ggm'"),
        (
            {"update": "gnnd", "method": "ggm", "device": "cpu"},
            ValueError,
            "update='gnnd' with device='cpu': expected none",
        ),
        ({"device": "gpu"}, ValueError, "device='gpu'"),
        ({"threads": 0}, ValueError, "threads=0"),
        ({"memory": "much"}, ValueError, "much"),
        ({"executor": "cluster"}, TypeError, "executor: expected 'local' or a dask.distributed.Client, got 'cluster'"),
        ({"resume": 1}, TypeError, "resume=1"),
        ({"progress": 3}, TypeError, "progress"),
        ({"source": 3}, TypeError, "source: expected a path, a list of paths, an array, or an object with shape and"),
        ({"source": []}, ValueError, "source: no files were given"),
        ({"source": "absent.npy"}, FileNotFoundError, "absent.npy"),
        ({"source": Wrong()}, ValueError, r"source.rows\(0, 1\): got shape \(1, 4\), expected \(1, 5\)"),
        ({"source": POINTS[:1]}, ValueError, "k=3"),
        ({"source": POINTS.astype(complex)}, (TypeError, ValueError), "complex"),
    ],
)
def test_what_is_refused_leaves_nothing(given: Any, error: Any, message: str, tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"source": POINTS, "k": 3, "out": tmp_path / "graph"} | given
    with pytest.raises(error, match=message):
        tonari.build_graph(**arguments)
    assert not (tmp_path / "graph").exists()


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no"):
        tonari.build_graph(POINTS, 3, tmp_path / "no" / "graph")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="file"):
        tonari.build_graph(POINTS, 3, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_files_of_different_points_are_refused(tmp_path: Path) -> None:
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    np.save(paths[0], POINTS)
    for other, message in ((POINTS[:, :3], "3 columns of float32"), (POINTS.astype("f8"), "4 columns of float64")):
        np.save(paths[1], other)
        with pytest.raises(ValueError, match=rf"b\.npy has {message}, \S+a\.npy has 4 of float32: they must agree"):
            tonari.build_graph(paths, 3, tmp_path / "graph")


def test_auto_is_exact_without_a_recall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 25)
    assert_exact(tonari.build_graph(POINTS, 3, str(tmp_path / "graph")), POINTS, 3)


def test_auto_with_a_recall_takes_what_is_expected_to_be_fastest(tmp_path: Path) -> None:
    graph = tonari.build_graph(clustered(500), 3, tmp_path / "graph", recall=0.8)
    assert graph.report is None or graph.report.target == 0.8
    assert (graph.indices >= 0).all()


@pytest.mark.parametrize("method", ["exact", "clusters", "ggm"])
def test_progress_ends_at_the_whole(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_shards(monkeypatch, 60)
    calls: list[tuple[int, int]] = []
    given: dict[str, Any] = {} if method == "exact" else {"recall": 0.8}
    points = clustered(240)
    tonari.build_graph(points, 3, tmp_path / "graph", method=method, progress=lambda *at: calls.append(at), **given)
    assert calls[-1][0] == calls[-1][1] > 0
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_an_opened_graph_is_the_one_that_was_built(tmp_path: Path) -> None:
    made = tonari.build_graph(POINTS, 3, tmp_path / "graph", seed=4)
    again = tonari.KNNGraph.open(tmp_path / "graph")
    assert_same_neighbors(lists(made), lists(again))
    assert (again.metric, again.method, again.seed) == ("euclidean", "exact", None)
