"""Plans of searches among sparse rows."""

from __future__ import annotations

from typing import Any

import pytest

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import uniform  # noqa: E402
from tonari.core.errors import BudgetExceeded, Unsupported  # noqa: E402
from tonari.metrics.problem import make_problem  # noqa: E402
from tonari.sparse.plan import SparsePlan, plan_sparse, refusal  # noqa: E402
from tonari.sparse.rows import Ranking, SparseRows, as_sparse_rows  # noqa: E402


def planned(rows: SparseRows, k: int = 3, **options: Any) -> SparsePlan:
    problem = make_problem(len(rows), len(rows), rows.d, k, **{"dtype": rows.dtype, "metric": "cosine", **options})
    return plan_sparse(problem, rows, rows, Ranking(rows))


def test_a_smaller_budget_takes_smaller_blocks_and_too_small_a_one_is_refused() -> None:
    rows = as_sparse_rows(sparse.csr_array(uniform(300, 50)), "points")
    large = planned(rows, threads=1)
    small = planned(rows, threads=1, memory=large.total_bytes - 1)
    assert small.query_block < large.query_block
    assert small.total_bytes < large.total_bytes
    with pytest.raises(BudgetExceeded, match="allow at least") as error:
        planned(rows, threads=1, memory=1000)
    assert planned(rows, threads=1, memory=error.value.least).query_block == 1


def test_other_metrics_are_refused() -> None:
    rows = as_sparse_rows(sparse.csr_array(uniform(30, 5)), "points")
    assert refusal("cosine") is None
    with pytest.raises(Unsupported, match=r"metric='l1' does not support sparse rows; .*\.toarray\(\)"):
        planned(rows, metric="l1")
