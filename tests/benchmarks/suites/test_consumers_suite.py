"""Estimators and UMAP's neighbours on small data are proved and timed, and wrong answers are not timed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

import tonari
from benchmarks.harness import children
from benchmarks.harness.peers import cpu
from benchmarks.harness.peers import estimators as peers
from benchmarks.harness.peers.estimators import OURS, SKLEARN, Searched
from benchmarks.harness.proof import WrongAnswer
from benchmarks.suites import consumers
from benchmarks.suites.consumers import data, density, estimators, sky, umap
from tests.helpers.bench_checks import a_run, done, made_up_descriptors, notes

SMALL = {case.name: case.scaled(0.01) for case in consumers.SUITE.cases}


@pytest.mark.process
@pytest.mark.parametrize("name", ["transformer", "grid-10000", "dbscan-32d", "gaps", "imputer"])
def test_an_estimator_is_proved_and_timed_beside_scikit_learns(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "fastest_blas_core", lambda *_: None)
    monkeypatch.setattr(estimators, "LOOP_SECONDS", 2e-3)  # two searches in a loop, by a clock with fixed times
    ran = done(a_run(), SMALL[name])
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == [OURS, SKLEARN]
    assert ran.rows[0]["proved"] > 0
    assert ran.rows[0]["value"] == ran.rows[1]["ratio"] > 0


@pytest.mark.process
@pytest.mark.parametrize("name", ["umap", "umap-first"])
def test_the_neighbours_of_umap_are_timed(name: str) -> None:
    """Without pynndescent, whose compilation takes long."""
    ran = done(a_run(), SMALL[name].resized(peers=()))
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == [umap.EXACT, umap.PYNNDESCENT]
    assert ran.rows[0]["seconds_median"] > 0


@pytest.mark.filterwarnings("ignore:function 'empty_like' is not known")  # np.empty is replaced in tests
@pytest.mark.parametrize("name", ["sky-match", "sky-around"])
def test_matches_of_the_sky_are_proved_and_timed(name: str) -> None:
    pytest.importorskip("astropy", reason="the coordinates are astropy's")
    ran = done(a_run(), SMALL[name])
    assert ran.wrong == 0, notes(ran)
    assert [row["who"] for row in ran.rows] == [OURS, sky.ASTROPY]
    assert ran.rows[0]["proved"] == sky.PROVED_ROWS


@pytest.mark.parametrize("name", ["sky-match", "sky-around"])
def test_wrong_matches_of_the_sky_are_found(name: str) -> None:
    case = SMALL[name].scaled(0.1)
    case = case.resized(parameters=dict.fromkeys(case.parameters, 600.0))  # arcminutes: enough for some pairs
    found = sky.version_call(a_run(), case)()
    assert sky.prove(found, case) > 0
    turned = found._replace(**{found._fields[-3]: (found[-3] + 1) % case.n})
    with pytest.raises(WrongAnswer, match="by all pairs"):
        sky.prove(turned, case)
    with pytest.raises(WrongAnswer, match="other positions"):
        sky.same(found, turned)


@pytest.mark.parametrize(
    "name", ["transformer", "grid-1000", "radius", "outliers", "dbscan", "umap", "sky-match", "sky-around"]
)
def test_versions_can_be_compared(name: str) -> None:
    assert consumers.workload(a_run(), SMALL[name])() is not None


def test_pynndescent_gets_what_umap_gives_it() -> None:
    settings = umap.settings_of(consumers.SUITE.chosen("cpu", ["umap"])[0])
    assert (settings["n_neighbors"], settings["n_trees"], settings["n_iters"]) == (15, 17, 16)
    (defaults,) = consumers.SUITE.chosen("cpu", ["*-defaults"])
    assert umap.settings_of(defaults) == {"n_neighbors": 15}


def test_components_of_descriptors_keep_the_distances_that_they_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = made_up_descriptors(600, tmp_path, monkeypatch).astype(np.float64)
    points = data.points_of(a_run(), SMALL["umap-sift"])
    assert (points.shape, points.dtype) == ((600, 50), np.float32)
    assert np.all(np.diff(points.var(axis=0)) <= 1e-3)
    whole = data.components(rows, 128)
    np.testing.assert_allclose(np.linalg.norm(whole[0] - whole[1]), np.linalg.norm(rows[0] - rows[1]), rtol=1e-5)
    np.testing.assert_allclose(np.abs(whole[:, :50]), np.abs(points), rtol=1e-3, atol=1e-2)


def _spoiled(spoil: Any) -> Any:
    """Make a library whose graphs are exported with a fault."""

    class Graph:
        def __init__(self, graph: Any) -> None:
            self._graph = graph

        def to_umap(self) -> Any:
            return spoil(*self._graph.to_umap())

    return SimpleNamespace(
        knn_graph=lambda *given, **options: Graph(tonari.knn_graph(*given, **options)), search=tonari.search
    )


@pytest.mark.parametrize(
    ("spoil", "note"),
    [
        (lambda indices, distances: (indices[:, ::-1], distances), "does not begin with the point itself"),
        (lambda indices, distances: (indices, distances[:, ::-1]), "does not begin with the point itself"),
        (lambda indices, distances: (indices[:, [0, 0, *range(2, 15)]], distances), "names the point itself"),
        (lambda indices, distances: (indices, distances * np.float32(1.0000002)), "distance of row"),
    ],
)
def test_wrong_neighbours_of_umap_are_not_timed(spoil: Any, note: str) -> None:
    ran = done(a_run(_spoiled(spoil)), SMALL["umap"].resized(peers=()))
    assert ran.wrong == 1
    assert note in notes(ran)


def test_wrong_lists_of_the_transformer_are_found() -> None:
    points = data.points_of(a_run(), SMALL["transformer"])
    rows, k = np.arange(5), SMALL["transformer"].k
    lists = tonari.search(points[rows], points, k + 1)
    assert estimators.prove_lists(lists, rows, points, k)["proved"] == 5
    for wrong in (
        lists._replace(distances=lists.distances + np.float32(1e-3)),
        lists._replace(indices=np.roll(lists.indices, 1, axis=1)),
        lists._replace(indices=lists.indices[:, [0, 2, 1, *range(3, k + 1)]]),
    ):
        with pytest.raises(WrongAnswer):
            estimators.prove_lists(wrong, rows, points, k)
    with pytest.raises(WrongAnswer, match="of our neighbours"):
        estimators.agreeing(lists.indices, np.roll(lists.indices, 1, axis=0), rows)


def test_wrong_classes_and_scores_are_found() -> None:
    rows = data.points_of(a_run(), SMALL["grid-1000"])
    points, queries = rows[:30], rows[30:]
    labels = data.labels_of(points)
    found = tonari.search(queries, points, 5)
    votes = (labels[found.indices][:, :, None] == np.arange(data.CLASSES)).sum(axis=1)
    right = Searched(np.array([0.5, 0.25]), 5, votes.argmax(axis=1))
    assert estimators.prove_classes(right, queries, points, labels) == len(queries)
    estimators.same_search(right, right)
    with pytest.raises(WrongAnswer, match="another class"):
        estimators.prove_classes(right._replace(classes=right.classes + 1), queries, points, labels)
    with pytest.raises(WrongAnswer, match="scores"):
        estimators.same_search(right, right._replace(scores=right.scores + 1))
    with pytest.raises(WrongAnswer, match="other classes"):
        estimators.same_search(right, right._replace(classes=right.classes + 1))


@pytest.mark.parametrize("name", ["radius", "outliers", "dbscan"])
def test_wrong_lists_factors_and_clusters_are_found(name: str) -> None:
    case = SMALL[name]
    points, (estimator, parameters) = data.points_of(a_run(), case), density.asked(case)
    parameters |= {"radius": 1.0} if name == "radius" else {"eps": 1.0} if name == "dbscan" else {}
    right = peers._found(density.call(a_run(), case.resized(parameters={"estimator": estimator} | parameters))())
    rows = np.arange(len(points))
    density.PROOFS[estimator](right, points, parameters, rows)
    density.same(estimator, right, right)
    for part, values in enumerate(right):
        wrong = [*right]
        wrong[part] = values[1:] if name == "dbscan" and part else values[::-1] + (name != "radius")
        with pytest.raises(WrongAnswer, match=f"{estimator} of {SKLEARN} finds something else"):
            density.same(estimator, tuple(wrong), right)
        with pytest.raises(WrongAnswer, match=r"^row \d+ has"):
            density.PROOFS[estimator](tuple(wrong), points, parameters, rows)


@pytest.mark.process
def test_a_first_call_is_timed_in_a_process_of_its_own() -> None:
    assert children.first_call(_nothing, variables={}) >= 0
    with pytest.raises(RuntimeError, match="no such work"):
        children.first_call(_failing, variables={})


def _nothing() -> None:
    """Do nothing."""


def _failing() -> None:
    raise ValueError("no such work")
