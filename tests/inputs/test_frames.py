"""Objects of other libraries in place of arrays."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tonari

POINTS = np.random.default_rng(0).standard_normal((9, 3))


def _of(library: str, **members: Any) -> Any:
    return type("Table", (), members | {"__module__": f"{library}.lib"})()


def test_what_is_no_array_is_refused_with_what_works() -> None:
    for given, fix in [
        (SimpleNamespace(obsm={}, X=POINTS), 'adata.obsm["X_pca"]'),
        (_of("pyarrow", schema=[]), "table.to_pandas().to_numpy()"),
        (_of("pyarrow"), "numpy.stack(column.to_numpy())"),
    ]:
        with pytest.raises(TypeError) as caught:
            tonari.knn_graph(given, 2)
        assert fix in str(caught.value)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_numeric_frames_are_rows(library: str) -> None:
    frame = _of(library, columns=["a", "b", "c"], to_numpy=lambda self: POINTS)
    np.testing.assert_array_equal(tonari.knn_graph(frame, 2).indices, tonari.knn_graph(POINTS, 2).indices)
