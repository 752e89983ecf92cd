"""Conversion of a caller's radius to limits."""

from __future__ import annotations

import numpy as np
import pytest

from tonari.metrics import METRICS
from tonari.metrics.radius import limits_of


@pytest.mark.parametrize("similarity", [0.95, 0.1, 0.3, -0.7])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_similarity_is_taken_from_1_in_float64(similarity: float, dtype: str) -> None:
    given = {"radius": None, "min_similarity": similarity, "closed": True}
    limit = limits_of(METRICS["cosine"], 1, dtype, **given)[0]
    assert limit.dtype == dtype
    assert float(limit) <= 1.0 - similarity < float(np.nextafter(limit, limit.dtype.type(np.inf)))


def test_a_similarity_of_products_is_taken_as_it_is() -> None:
    given = {"radius": None, "min_similarity": [0.95, -2.0], "closed": True}
    assert limits_of(METRICS["inner_product"], 2, "float64", **given).tolist() == [0.95, -2.0]
