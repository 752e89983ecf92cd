"""`tonari.compat.pytorch3d`: neighbours compared with the reference in each cloud, padding and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda
from tests.helpers.refusals import assert_refused_by_name
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.compat.pytorch3d import knn_gather, knn_points

pytestmark = needs_torch
everywhere = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])

LENGTHS = {"whole": None, "ragged": (9, 3, 0, 1), "short": (1, 1, 1, 1)}


def clouds(name: str, points: int, seed: int, dtype: Any = np.float32) -> Any:
    return np.stack([checks.HOSTILE[name](points, 3, seed + 10 * cloud) for cloud in range(4)]).astype(dtype)


def padded(cloud: Any, lengths: Any) -> Any:
    """Return the clouds with NaN after their points."""
    made = cloud.copy()
    for rows, length in zip(made, lengths or [made.shape[1]] * 4, strict=True):
        rows[length:] = np.nan
    return made


@everywhere
@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("K", [1, 3, 9, 12])
@pytest.mark.parametrize("lengths2", LENGTHS)
@pytest.mark.parametrize("lengths1", LENGTHS)
@pytest.mark.parametrize("name", ["gaussian", "duplicates", "tight_far_clusters", "offset_float64"])
def test_each_cloud_is_searched_alone(name: str, lengths1: str, lengths2: str, K: int, norm: int, device: str) -> None:
    dtype = np.float64 if name == "offset_float64" else np.float32
    p1, p2 = padded(clouds(name, 9, 0, dtype), LENGTHS[lengths1]), padded(clouds(name, 9, 5, dtype), LENGTHS[lengths2])
    lengths = [None if LENGTHS[each] is None else torch.tensor(LENGTHS[each]) for each in (lengths1, lengths2)]
    tensors = [torch.from_numpy(part).to(device) for part in (p1, p2)]
    found = knn_points(*tensors, *lengths, norm=norm, K=K, return_nn=True)
    assert found.dists.device == found.idx.device == found.knn.device == tensors[0].device
    dists, idx, knn = (part.cpu().numpy() for part in found)
    assert (dists.dtype, idx.dtype, knn.dtype) == (dtype, np.int64, dtype)
    assert (dists.shape, idx.shape, knn.shape) == ((4, 9, K), (4, 9, K), (4, 9, K, 3))
    for cloud in range(4):
        m, n = (9 if LENGTHS[each] is None else LENGTHS[each][cloud] for each in (lengths1, lengths2))
        there = min(K, n)
        if m and n:
            truth = brute(p1[cloud, :m], p2[cloud, :n], there, {1: "l1", 2: "sqeuclidean"}[norm])
            np.testing.assert_array_equal(dists[cloud, :m, :there], truth.distances)
            np.testing.assert_array_equal(idx[cloud, :m, :there], truth.indices)
            np.testing.assert_array_equal(knn[cloud, :m, :there], p2[cloud][truth.indices])
        assert not dists[cloud, m:].any()
        assert not idx[cloud, m:].any()
        assert not dists[cloud, :, there:].any()
        assert not idx[cloud, :, there:].any()
        assert not knn[cloud, :, there:].any()
    assert knn_points(*tensors, *lengths, norm=norm, K=K).knn is None


@everywhere
@pytest.mark.parametrize("norm", [1, 2])
def test_gradients_are_those_of_the_distances_and_rows(norm: int, device: str) -> None:
    lengths = torch.tensor(LENGTHS["ragged"]), torch.tensor((2, 9, 5, 0))
    made = [clouds("gaussian", 9, seed, np.float64) for seed in (0, 5)]
    ours, plain = ([torch.from_numpy(part).to(device).requires_grad_() for part in made] for _ in range(2))
    found = knn_points(*ours, *lengths, norm=norm, K=3, return_nn=True)
    weights = torch.arange(1.0, found.dists.numel() + 1, dtype=torch.float64, device=device).reshape(found.dists.shape)
    ((weights * found.dists).sum() + (weights[..., None] * found.knn.sin()).sum()).backward()

    rows = knn_gather(plain[1], found.idx, lengths[1])
    gaps = plain[0][:, :, None] - rows
    values = gaps.abs().sum(-1) if norm == 1 else gaps.square().sum(-1)
    kept = torch.zeros_like(values)
    for cloud, (m, n) in enumerate(zip(*(each.tolist() for each in lengths), strict=True)):
        kept[cloud, :m, :n] = 1
    assert torch.allclose(values * kept, found.dists)
    ((weights * values * kept).sum() + (weights[..., None] * rows.sin()).sum()).backward()
    for mine, theirs in zip(ours, plain, strict=True):
        assert mine.grad is not None
        assert mine.grad.abs().sum() > 0
        assert torch.allclose(mine.grad, theirs.grad)


def test_one_side_may_carry_gradients_and_none_has_to() -> None:
    p1, p2 = (torch.from_numpy(clouds("gaussian", 9, seed)) for seed in (0, 5))
    assert not knn_points(p1, p2, K=2).dists.requires_grad
    assert knn_points(p1, p2.clone().requires_grad_(), K=2).dists.requires_grad
    with torch.no_grad():
        assert not knn_points(p1.clone().requires_grad_(), p2, K=2).dists.requires_grad


def test_no_clouds_and_no_points_have_no_neighbours() -> None:
    for shape1, shape2 in (((0, 5, 3), (0, 4, 3)), ((2, 0, 3), (2, 4, 3)), ((2, 5, 3), (2, 0, 3))):
        found = knn_points(torch.ones(shape1), torch.ones(shape2), K=2, return_nn=True)
        assert found.dists.shape == (*shape1[:2], 2)
        assert found.knn.shape == (*shape1[:2], 2, 3)
        assert not any(part.any() for part in found)


def test_features_are_gathered() -> None:
    features = torch.arange(12.0).reshape(2, 3, 2)
    idx = torch.tensor([[[2, 0]], [[1, 1]]])
    assert knn_gather(features, idx).tolist() == [[[[4.0, 5.0], [0.0, 1.0]]], [[[8.0, 9.0], [8.0, 9.0]]]]
    assert knn_gather(features, idx, torch.tensor([3, 1]))[1].tolist() == [[[8.0, 9.0], [0.0, 0.0]]]


def test_half_precision_and_strides_are_taken() -> None:
    p = torch.from_numpy(clouds("gaussian", 9, 0)).to(torch.bfloat16)
    expected = knn_points(p.float(), p.float(), K=4)
    wide = torch.stack([p, p], dim=3)[..., 1]
    for other in (p, wide, p.float().transpose(1, 2).contiguous().transpose(1, 2)):
        found = knn_points(other, other, K=4, version=2, return_sorted=False)
        assert torch.equal(found.idx, expected.idx)
        assert torch.equal(found.dists, expected.dists)


if HAS_TORCH:
    P = torch.from_numpy(clouds("gaussian", 9, 0))
    TENSORS = (None, 5, P.numpy(), P[0], P.long(), P[:2], P[..., :2], P * torch.nan)
    LONG = (5, "a", [1, 2], [0.5] * 4, [-1] * 4, [10] * 4, [[1], [2, 3]])
    FLAG = (1, None)
    BAD: dict[str, tuple[Any, ...]] = {"lengths1": LONG, "lengths2": LONG, "return_nn": FLAG, "return_sorted": FLAG}
    BAD |= {"norm": (0, 3, 2.0, "2", None, True), "K": (0, -1, 2.5, None), "version": (-2, 4, 0.5, None)}
    IDX = knn_points(P, P, K=2).idx
    REFUSED: list[tuple[Callable[..., Any], dict[str, Any], dict[str, tuple[Any, ...]]]] = [
        (knn_points, {"p1": P, "p2": P}, BAD),
        (
            knn_gather,
            {"x": P, "idx": IDX},
            {
                "x": (None, P.numpy(), P[0], P.long()),
                "idx": (None, IDX.numpy(), IDX[0], IDX[:2], IDX.float(), IDX - 9, IDX + 9),
                "lengths": LONG,
            },
        ),
    ]
else:
    TENSORS, REFUSED = (), []


@pytest.mark.parametrize(
    ("call", "good", "name", "values"),
    [(call, good, name, values) for call, good, bad in REFUSED for name, values in bad.items()],
)
def test_no_argument_is_ignored_or_fails_in_raw_words(
    call: Callable[..., Any], good: dict[str, Any], name: str, values: tuple[Any, ...]
) -> None:
    assert_refused_by_name(call, good, name, values)


@pytest.mark.parametrize("name", ["p1", "p2"])
def test_clouds_that_cannot_be_compared_are_refused(name: str) -> None:
    for value in TENSORS:
        with pytest.raises((TypeError, ValueError), match=name):
            knn_points(**{"p1": P, "p2": P} | {name: value})
    with pytest.raises(ValueError, match="p1"):
        knn_points(P * math.inf, P)
