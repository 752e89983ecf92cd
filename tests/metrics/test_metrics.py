"""Metrics are complete records in Python and C++, and all other code reads their fields instead of their names."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.core import _native
from tonari.core.errors import Unsupported
from tonari.core.process.workers import Workers
from tonari.kdtree.cpu.build import build
from tonari.metrics import BIT_METRICS, CHANGED, MAPPED, METRICS, MISSING_METRICS, cuda_terms, get_metric
from tonari.metrics.names import UNSUPPORTED
from tonari.metrics.reference import pairwise

SOURCE = Path(tonari.__file__).parent
NATIVE = Path(__file__).parents[2] / "native"
NAMES = "|".join(METRICS)


def test_no_code_asks_for_a_name() -> None:
    """Only the metrics' own code may; defaults and examples may name a metric."""
    python = re.compile(rf"(?:==|!=|\bin) *\(?\"(?:{NAMES})\"|\bMETRIC *[!=]=|\"(?:{NAMES})\":")
    native = re.compile(rf"[!=]= *Metric::|case Metric::|\"(?:{NAMES})\"")
    files = [(path, python) for path in SOURCE.rglob("*.py") if SOURCE / "metrics" not in path.parents]
    files += [(path, native) for path in NATIVE.rglob("*.?pp") if path.name != "metrics.hpp"]
    assert len(files) > 100
    asked = [f"{path.name}: {line.strip()}" for path, name in files for line in path.read_text().split("\n")
             if name.search(line)]  # fmt: skip
    assert asked == []


@pytest.mark.parametrize("metric", METRICS)
def test_a_record_is_complete(metric: str) -> None:
    record = METRICS[metric]
    assert record.name == metric
    assert record.value is not None
    assert record.root == (record.before_root is not record)
    if not record.elementwise:
        assert (record.maximum, record.divides, record.degree, record.stretch) == (False, False, 1.0, 1.0)


@pytest.mark.parametrize("metric", METRICS)
def test_facts_of_a_record_are_those_of_its_values(metric: str) -> None:
    record, rows = METRICS[metric], checks.accepted(checks.gaussian(6, 9, 0, np.float64), metric)
    values = pairwise(rows, rows, metric)
    if record.self_value is None:
        assert np.ptp(np.diag(values)) > 1
    else:
        np.testing.assert_allclose(np.diag(values), record.self_value, atol=1e-15)
    if record.elementwise:
        columns = np.array([pairwise(rows[:, i : i + 1], rows[:, i : i + 1], metric) for i in range(9)])
        np.testing.assert_allclose(values, columns.max(axis=0) if record.maximum else columns.sum(axis=0), rtol=1e-13)
        assert pairwise(np.zeros((1, 3)), np.zeros((1, 3)), metric) == 0
        scaled = pairwise(16 * rows, 16 * rows, metric)
        assert scaled.tobytes() == (16**record.degree * values).tobytes()
    if record.in_trees and record.elementwise:
        distances = np.abs(rows.T[:, :, None] - rows.T[:, None, :]).ravel()
        terms = columns.ravel()[np.argsort(distances)]
        assert (np.diff(terms) >= 0).all()
        np.testing.assert_allclose(terms, np.sort(distances) ** record.degree, rtol=1e-15)


@pytest.mark.parametrize("metric", checks.ELEMENTWISE)
def test_bounds_of_a_record_bound(metric: str) -> None:
    """Assumptions of screens about terms, for elements of all sizes, rounded and flushed to zero."""
    record, rng = METRICS[metric], np.random.default_rng(3)
    x = np.ldexp(rng.uniform(-1, 1, 4000), rng.integers(-40, 40 if record.largest == np.inf else 3, 4000))
    x[::7] = 0
    x = checks.accepted(x, metric)[:, None]
    q = rng.permutation(np.vstack([x, x * rng.uniform(0.5, 2, x.shape)]))[: len(x)]
    x[1], q[1], x[2], q[2] = 2, -2, -2, 2
    x, q = (checks.accepted(np.clip(part, -record.largest, record.largest), metric) for part in (x, q))
    y = np.where(
        rng.random(x.shape) < 0.1, 0, x * (1 + rng.uniform(-1, 1, x.shape) * 2.0 ** -rng.integers(1, 40, x.shape))
    )
    y = np.clip(y, -record.largest, record.largest)

    def term(a: checks.Array, b: checks.Array) -> checks.Array:
        assert record.value is not None
        return record.value(a.T, b.T)

    size = [checks.sizes(part, metric) for part in (q, x, y)]
    difference = checks.differences(x, y, metric)[:, 0]
    slack = 1 + 1e-12
    assert (term(q, x) <= (size[0] + size[1])[:, 0] * slack).all()
    assert (np.abs(term(q, x) - term(q, y)) <= record.stretch * difference * slack + 1e-12 * term(q, x)).all()
    assert ((size[2] - size[1])[:, 0] <= record.stretch * difference * slack).all()


@pytest.mark.parametrize("metric", [name for name, record in METRICS.items() if not record.angular and not record.root])
def test_underflow_of_a_record_bounds_what_is_lost(metric: str) -> None:
    """Loss of single terms, from where squares begin to lose bits to the end of float64, compared with long double."""
    record, rng = METRICS[metric], np.random.default_rng(7)
    for power in range(-1074, -480, 6):
        q, x = (checks.accepted(np.ldexp(rng.uniform(-1, 1, (1, 300)), power), metric) for _ in "qx")
        assert record.value is not None
        lost = record.value(q, x) - record.value(q.astype(np.longdouble), x.astype(np.longdouble))
        assert (np.abs(lost) <= record.underflow + 2.0**-50 * np.abs(record.value(q, x))).all()


def test_the_compiled_trees_refuse_what_they_cannot_bound() -> None:
    """The record's `in_trees` and that of native/core/metrics.hpp are equal."""
    rows = checks.gaussian(100, 3)
    tree = build(rows, height=2, double=False, workers=Workers(1)).native
    for metric, record in METRICS.items():
        out = np.empty((5, 2), np.float32), np.empty((5, 2), np.int32)
        if record.in_trees:
            _native.TreeSearch(tree, "generic", metric, 2, rows[:5], None, None, *out)
            continue
        with pytest.raises(ValueError, match=f"no tree serves {metric}"):
            _native.TreeSearch(tree, "generic", metric, 2, rows[:5], None, None, *out)


def test_what_fits_no_family_is_refused_with_its_reason() -> None:
    rows = np.abs(checks.gaussian(30, 4, 0, np.float64))
    reason = r"metric 'dice' is not supported: it is j / \(2 - j\) of the Jaccard distance"
    with pytest.raises(Unsupported, match=reason):
        tonari.search(rows, rows, 2, metric="dice")
    with pytest.raises(Unsupported, match=reason):
        tonari.plan(100, 10, 4, 2, metric="dice")
    assert not UNSUPPORTED.keys() & (METRICS | CHANGED | MAPPED | BIT_METRICS | MISSING_METRICS).keys()


def test_a_kernel_depends_on_what_a_record_shows() -> None:
    """Triton identifies a compiled kernel by the text of its constants, which must contain every field that kernels
    read.
    """
    for record in METRICS.values():
        for field in dataclasses.fields(record):
            value = getattr(record, field.name)
            assert (f"{field.name}={value!r}" in repr(record)) == (not callable(value) and field.repr)
        assert " at 0x" not in repr(record)


def test_terms_of_families_without_them() -> None:
    pytest.importorskip("triton")
    for metric, record in METRICS.items():
        assert (cuda_terms(metric).term is None) == (not record.elementwise)
    with pytest.raises(ValueError, match="a Triton function that this process has not seen"):
        cuda_terms("triton:nowhere")
    assert get_metric("triton:nowhere").own
