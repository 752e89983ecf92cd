"""`tonari.farthest`: its arguments, and the arrays that it returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.core.errors import Unsupported

if HAS_TORCH:
    import torch

X = checks.gaussian(50, 3)


def test_the_farthest_are_the_last_of_a_search() -> None:
    found, every = tonari.farthest(X[:9], X, 4), tonari.search(X[:9], X, 50)
    np.testing.assert_array_equal(found.indices, every.indices[:, :-5:-1])
    np.testing.assert_array_equal(found.distances, every.distances[:, :-5:-1])
    none = tonari.farthest(X[:0], X, 4)
    assert (none.indices.shape, none.indices.dtype, none.distances.dtype) == ((0, 4), np.int32, np.float32)


@needs_torch
def test_tensors_and_other_layouts() -> None:
    found = tonari.farthest(torch.from_numpy(X), torch.from_numpy(X), 2)
    assert isinstance(found.indices, torch.Tensor)
    truth = tonari.farthest(X, X, 2)
    np.testing.assert_array_equal(found.indices.numpy(), truth.indices)
    np.testing.assert_array_equal(tonari.farthest(np.asfortranarray(X), X[::-1][::-1], 2).indices, truth.indices)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: tonari.farthest(X, X, 51), ValueError, "k=51"),
        (lambda: tonari.farthest(X, X, 2, metric="l1"), Unsupported, "metric='l1': .*'euclidean' and 'sqeuclidean'"),
        (lambda: tonari.farthest(X, X, 2, metric="cosine"), Unsupported, "the nearest of the negated queries"),
        (
            lambda: tonari.farthest(X, scipy.sparse.csr_array(X), 2),
            Unsupported,
            "points: sparse rows are not supported",
        ),
        (lambda: tonari.farthest(X, X[:, :2], 2), ValueError, "columns"),
        (lambda: tonari.farthest(X * np.float32(1e30), X, 2, metric="sqeuclidean"), ValueError, "float32"),
    ],
)
def test_what_has_no_farthest_is_refused(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
