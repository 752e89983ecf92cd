"""Lists and forms of points for tests of the update "gnnd", and of the updates with which wang2021 compares it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.helpers.devices import HAS_CUDA, HAS_TORCH
from tests.helpers.gnnd_reference import PlainForm, PlainLists, inserted
from tonari.nn_descent.entries import ID, MISSING

if HAS_TORCH:
    import torch

    from tonari.nn_descent.cuda.form import Form, terms_of
    from tonari.nn_descent.papers.cuda import gnnd

Array = np.ndarray[Any, Any]
DEVICE = "cuda:0" if HAS_CUDA else "cpu"  # if Triton interprets kernels


def on_device(array: Array) -> Any:
    return torch.from_numpy(np.ascontiguousarray(array)).to(DEVICE)


def mixture(n: int, d: int = 16, seed: int = 0) -> Array:
    """Make points in clusters of about 50."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.standard_normal((max(2, n // 50), d))
    return (centres[rng.integers(len(centres), size=n)] + rng.standard_normal((n, d))).astype(np.float32)


def integers(n: int, d: int = 5, *, products: bool = False, seed: int = 0) -> tuple[Form, PlainForm]:
    """Make points whose distances are whole numbers with many ties, so float32 sums of them are exact in any order."""
    rows = np.zeros((n, -(-d // 32) * 32), np.float16)
    rows[:, :d] = np.random.default_rng(seed).integers(-3, 4, (n, d))
    form = Form(on_device(rows), *terms_of(on_device(rows), products=products))
    return form, PlainForm(*(part.cpu().numpy() for part in form))


def lists_on_device(lists: PlainLists) -> Any:
    return gnnd.Lists(*(on_device(part.copy()) for part in lists))


def assert_same_lists(found: Any, wanted: PlainLists) -> None:
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(ours.cpu().numpy(), theirs)


def proposals_to_few(n: int, size: int, segment: int, values: int, shape: tuple[int, ...]) -> tuple[Any, Any, Any, Any]:
    """Make proposals (keys and ids of this shape) for the lists of only eight rows; return the lists before and after.

    Two of the rows get fewer proposals than their lists can hold. There are `values` different distances.
    """
    rng = np.random.default_rng(5)
    distances = 1 + rng.integers(0, values, (8, n)).astype(np.float32)
    start = PlainLists(np.full((n, size), MISSING, np.int32), np.full((n, size), np.inf, np.float32))
    known = [rng.choice(np.arange(8, n), rng.integers(0, size // 2), replace=False).tolist() for _ in range(8)]
    begun = ((row, id, float(distances[row, id])) for row, ids in enumerate(known) for id in ids)
    start = inserted(start, begun, segment)
    start = PlainLists(np.where(start.entries < 0, MISSING, start.entries & ID).astype(np.int32), start.distances)
    targets = rng.choice(8, shape, p=[0.005, 0.01, 0.05, 0.1, 0.2, 0.2, 0.235, 0.2])
    ids = rng.integers(8, n, shape).astype(np.int32)
    found = distances[targets, ids]
    none = rng.random(shape) < 0.1
    keys = np.where(none, -1, targets.astype(np.int64) << 32 | found.view(np.int32))
    proposed = zip(targets[~none].tolist(), ids[~none].tolist(), found[~none].tolist(), strict=True)
    return on_device(keys), on_device(ids), lists_on_device(start), inserted(start, proposed, segment)
