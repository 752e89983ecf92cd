"""Other names of metrics as other libraries spell them, names with a number, and refused names."""

from __future__ import annotations

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.core.errors import Unsupported
from tonari.metrics import BIT_METRICS, METRICS, get_metric
from tonari.metrics.names import ALIASES, MINKOWSKI, UNSUPPORTED
from tonari.metrics.reference import pairwise

# Names of other libraries, in their spelling.
OTHERS = {
    "L2": "euclidean", "l2": "euclidean", "manhattan": "l1", "cityblock": "l1", "L1": "l1", "chebyshev": "linf",
    "Euclidean": "euclidean", "dot": "inner_product", "IP": "inner_product", "angular": "cosine",
    "pearson": "correlation",
}  # fmt: skip


@pytest.mark.parametrize("other", OTHERS)
def test_other_names_are_understood_and_results_have_the_usual_one(other: str) -> None:
    name, rows = OTHERS[other], checks.gaussian(30, 4)
    index = tonari.Index(rows, metric=other)
    graph = tonari.knn_graph(rows, 3, metric=other)
    by_hand = tonari.KNNGraph(graph.indices, graph.distances, other, "exact")
    assert {index.metric, graph.metric, by_hand.metric, tonari.plan(30, 30, 4, 3, metric=other).metric} == {name}
    wanted = tonari.search(rows, rows, 3, metric=name)
    for found in (tonari.search(rows, rows, 3, metric=other), index.search(rows, 3)):
        np.testing.assert_array_equal(found.indices, wanted.indices)
        np.testing.assert_array_equal(found.distances, wanted.distances)
    np.testing.assert_array_equal(pairwise(rows, rows, other), pairwise(rows, rows, name))


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("minkowski:1", "l1"),
        ("minkowski:2.0", "euclidean"),
        ("minkowski:inf", "linf"),
        ("Minkowski:0.50", "minkowski:0.5"),
        ("minkowski:15e-1", "minkowski:1.5"),
        ("minkowski:3.0", "minkowski:3"),
        ("minkowski:4", "minkowski:4"),
    ],
)
def test_minkowski_distances_are_named_by_their_power(other: str, name: str) -> None:
    assert get_metric(other).name == name
    assert MINKOWSKI[float(other.partition(":")[2])] == name
    assert tonari.Index(checks.gaussian(3, 2), metric=other).metric == name


@pytest.mark.parametrize(
    "metric", ["minkowski", "minkowski:", "minkowski:5", "minkowski:-1", "minkowski:nan", "minkowski:p"]
)
def test_other_powers_are_refused_with_those_that_are_there(metric: str) -> None:
    message = rf"metric '{metric}' is not supported: .*expected 'minkowski:p' with p = 0.5, 1, 1.5, 2, 3, 4 or inf"
    with pytest.raises(Unsupported, match=message):
        get_metric(metric)


def test_other_names_are_of_metrics_and_are_none() -> None:
    of_bits = {alias for alias, name in ALIASES.items() if name in BIT_METRICS}
    assert set(ALIASES) - of_bits <= {other.lower() for other in OTHERS} | {"taxicab"}
    assert set(ALIASES.values()) <= set(METRICS | BIT_METRICS)
    assert not set(ALIASES) & set(METRICS | BIT_METRICS)
    assert all(name == name.lower() for name in (*ALIASES, *METRICS, *BIT_METRICS, *UNSUPPORTED))


def test_the_nearest_name_is_told() -> None:
    for wrong, near in (("chebychev", "chebyshev"), ("Manhatan", "manhattan"), ("Sqeuclid", "sqeuclidean")):
        with pytest.raises(ValueError, match=f"unknown metric '{wrong}'; .* Did you mean '{near}'"):
            get_metric(wrong)
    with pytest.raises(Unsupported, match="metric 'Dice' is not supported"):
        get_metric("Dice")
