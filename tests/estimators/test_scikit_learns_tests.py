"""scikit-learn's own tests pass with tonari's classes in place of its own, except for known differences."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import tonari

pytest.importorskip("sklearn", reason="the estimators need scikit-learn")

ROOT = Path(__file__).parents[2]
MODULES = (
    "sklearn.neighbors.tests.test_neighbors",
    "sklearn.neighbors.tests.test_lof",
    "sklearn.neighbors.tests.test_graph",
    "sklearn.cluster.tests.test_dbscan",
    "sklearn.impute.tests.test_knn",
)
# Hundreds of combinations of metrics, which tonari's own tests cover.
LONG = "algorithm_agnosticity or test_unsupervised_kneighbors or for_auto_algorithm or brute_backend"

# A test may end with one of these errors, which are documented refusals.
REFUSALS = (
    r"TypeError: (queries|points): is sparse, expected all distances; use \.toarray\(\)",
    r"TypeError: queries: sparse input is not supported; use \.toarray\(\)",  # a metric that is a function
    r"Unsupported: metric=.*: distances of the caller are not clustered here",
    r"ValueError: metric='\w+': compares rows of bits",
    r"ValueError: unknown metric <sklearn\.metrics\._dist_metrics",
    r"ValueError: metric='(mahalanobis|seuclidean)' ",
    r"ValueError: metric_params=.*: (p is an argument of its own|expected None or \{'w')",
    r"Unsupported: weights: metric='minkowski:3' has none",
)

# All other failures, with their reasons.
EXPECTED = {
    "test_auto_algorithm": "reads the private attribute _fit_method",
    "test_k_and_radius_neighbors_duplicates": "expects the order of a tree's nodes; ours is that of distances",
    "test_k_and_radius_neighbors_train_is_not_query": "expects the order of a tree's nodes; ours is that of distances",
    "test_KNeighborsClassifier_raise_on_all_zero_weights": "the error has other words",
    "test_kneighbors_regressor_sparse": "sparse distances of the caller are refused with other words",
    "test_lof": "reads the private attribute _fit_X",
    "test_lof_dtype_equivalence": "float32 rows have float32 distances, of which more are equal than float64 ones",
    "test_lof_error_n_neighbors_too_large": "the error has other words",
    "test_lof_precomputed": "calls the private method _predict",
    "test_metric_params_interface": "p in metric_params is refused instead of preferred with a warning",
    "test_nearest_neighbors_validate_params": "the error has other words",
    "test_neighbors_minkowski_semimetric_algo_error": "the error has other words",
    "test_neighbors_minkowski_semimetric_algo_warn": "no warning that p < 1 is searched by brute force",
    "test_neighbors_validate_parameters": "the error has other words",
    "test_predict_sparse_ball_kd_tree": "sparse queries are answered by a tree of dense rows, too",
    "test_radius_neighbors_classifier_outlier_labeling": "predict computes no probabilities and does not warn of them",
    "test_unsupervised_inputs": "trees and estimators are no rows",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Run the tests, with "kd_tree" for "ball_tree", which tonari refuses, and return the outcomes of each test."""
    folder = tmp_path_factory.mktemp("scikit-learn")
    for name in MODULES:
        found = find_spec(name)
        if found is None or found.origin is None:
            pytest.skip(f"{name} is not installed")
        source = Path(found.origin)
        text = source.read_text(encoding="utf-8").replace('"ball_tree"', '"kd_tree"')
        (folder / source.name).write_text(text, encoding="utf-8")
    plugins = ("sklearn.conftest", "tests.helpers.swapped", "no:cacheprovider", "no:xdist")
    options = [word for plugin in plugins for word in ("-p", plugin)]
    path = folder / "outcomes.json"
    folders = [str(Path(tonari.__file__).parents[1]), str(ROOT)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=no", *options, "-k", f"not ({LONG})", str(folder)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders), "OUTCOMES": str(path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    ends: dict[str, list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return ends


@pytest.mark.interop
@pytest.mark.process
def test_only_known_differences_fail(outcomes: dict[str, list[str]]) -> None:
    refused = re.compile("|".join(REFUSALS))
    failed = {
        name: [each for each in ends if each not in ("passed", "skipped") and not refused.match(each)]
        for name, ends in outcomes.items()
    }
    failed = {name: ends for name, ends in failed.items() if ends}
    assert {name: ends for name, ends in failed.items() if name not in EXPECTED} == {}
    assert [name for name in EXPECTED if name in outcomes and name not in failed] == [], "passes: take it out"
    assert sum(ends.count("passed") for ends in outcomes.values()) > 200
