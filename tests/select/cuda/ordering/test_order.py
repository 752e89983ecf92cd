"""Lists of (value, id) of any width are sorted and merged on a device by value, then id."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch, on_device

if HAS_TORCH:
    import torch

    from tonari.select.cuda.ordering.order import by_value, decode, encode, merge_lists

pytestmark = needs_torch
WIDTHS = [("float32", "int32"), ("float32", "int64"), ("float64", "int32")]


@on_device
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_keys_ascend_by_value_and_then_id_and_come_back(metric: str, device: str) -> None:
    sign = -1 if metric == "inner_product" else 1
    values = sign * np.array([[0.0, 0.0, 1e-30, 1.0, 1.0, np.inf]], np.float32)
    ids = np.array([[3, 2**31 - 2, 0, 4, 9, -1]], np.int32)
    given = tuple(torch.from_numpy(part).to(device) for part in (values, ids))
    keys = torch.empty((1, 6), dtype=torch.float64, device=device)
    encode(*given, metric, keys)
    assert (keys.diff() > 0).all()
    distances, indices = decode(keys, metric)
    assert indices.tolist() == ids.tolist()
    assert distances.cpu().numpy().tolist() == values.tolist()


@on_device
@pytest.mark.parametrize(("value", "number"), WIDTHS)
@pytest.mark.parametrize("metric", ["euclidean", "inner_product"])
def test_merged_lists_are_those_of_a_sort(metric: str, value: str, number: str, device: str) -> None:
    rng, sign = np.random.default_rng(0), -1 if metric == "inner_product" else 1
    values = sign * rng.integers(0, 4, (5, 9)).astype(value)  # many ties
    ids = np.stack([rng.permutation(50)[:9] for _ in range(5)]).astype(number)
    ids[1, 2:] = -1
    values[ids < 0] = sign * np.inf
    parts = [(values[:, :4], ids[:, :4]), (values[:, 4:], ids[:, 4:])]

    def there(part: Any) -> Any:
        return tuple(torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in part)

    for k in (3, 9, 12):
        distances, indices = merge_lists(*map(there, parts), k, metric=metric)
        assert (str(distances.dtype), str(indices.dtype)) == (f"torch.{value}", f"torch.{number}")
        for row in range(5):
            kept = [at for at in range(9) if ids[row, at] >= 0]
            kept.sort(key=lambda at: (sign * values[row, at], ids[row, at]))
            missing = max(0, k - len(kept))
            assert indices[row].tolist() == [int(ids[row, at]) for at in kept[:k]] + [-1] * missing
            expected = [float(values[row, at]) for at in kept[:k]] + [sign * np.inf] * missing
            assert distances[row].tolist() == expected


@on_device
def test_equal_values_go_to_the_column_of_the_smaller_id(device: str) -> None:
    values = torch.tensor([[2.0, 1.0, 1.0, 0.0]], dtype=torch.float64, device=device)
    ids = torch.tensor([[5, 6, 7, 8]], device=device)
    distances, indices = by_value(values, ids, 2, "euclidean")
    assert (distances.tolist(), indices.tolist()) == ([[0.0, 1.0]], [[8, 6]])
    distances, _ = by_value(values, ids, 2, "inner_product")
    assert distances.tolist() == [[0.0, -1.0]]
    assert not np.signbit(distances[0, 0].item())
