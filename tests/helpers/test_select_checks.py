"""The assertion of ``select_checks.py`` fails when it should, and its values have the named properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers import select_checks
from tests.helpers.devices import HAS_TORCH, needs_torch
from tests.helpers.select_checks import assert_same, assert_selection, assert_smallest, make
from tests.helpers.select_reference import select_k_reference
from tonari.select import Selection

VALUES = np.array([[3, 1, 2, 1, 5], [7, 7, 7, 0, -0.0], [np.inf, 1, 1, 4, 4]], np.float32)
K = 3


def _truth() -> Selection:
    return select_k_reference(VALUES, K)


def _changed(**cells: Any) -> Selection:
    """Return the truth with changed cells: values={(row, column): value}, indices={...}."""
    answer = Selection(*(part.copy() for part in _truth()))
    for name, changes in cells.items():
        for place, value in changes.items():
            getattr(answer, name)[place] = value
    return answer


def test_right_answers_pass() -> None:
    assert_selection(_changed(), VALUES, K)
    backwards = Selection(*(part[:, ::-1].copy() for part in _truth()))
    assert_selection(backwards, VALUES, K, sorted=False)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (_changed(indices={(0, 0): 3, (0, 1): 1}), r"1 of 3 rows differ; the first is row 0, in columns \[0, 1\]"),
        (_changed(values={(2, 2): np.nextafter(np.float32(4), np.float32(5))}), r"first is row 2, in columns \[2\]"),
        (_changed(values={(1, 0): -0.0, (1, 1): 0.0}), r"first is row 1, in columns \[0, 1\]"),
        (_changed(indices={(2, 2): 4}), r"first is row 2, in columns \[2\]"),
        (_changed(indices={(1, 2): -1}), r"first is row 1"),
        (Selection(*(part[:, ::-1].copy() for part in _truth())), "3 of 3 rows differ"),
        (_truth()._replace(values=_truth().values.astype(np.float64)), "values: float64 instead of float32"),
        (_truth()._replace(indices=_truth().indices.astype(np.int64)), "indices: int64 instead of int32"),
        (_truth()._replace(indices=_truth().indices[:, :2]), r"indices: shape \(3, 2\) instead of \(3, 3\)"),
        (_truth()._replace(values=_truth().values.tolist()), "values: list instead of ndarray"),
        (tuple(_truth()), "a tuple is not a Selection"),
    ],
)
def test_wrong_answers_fail(answer: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        assert_selection(answer, VALUES, K)


@pytest.mark.parametrize(
    "answer", [_changed(indices={(2, 2): 4}), _changed(values={(2, 2): 5}), _changed(indices={(0, 1): 1})]
)
def test_wrong_sets_fail(answer: Selection) -> None:
    with pytest.raises(AssertionError, match="1 of 3 rows differ"):
        assert_selection(answer, VALUES, K, sorted=False)


@needs_torch
def test_tensors_are_compared() -> None:
    tensors = Selection(*map(select_checks.torch.from_numpy, _truth()))
    assert_same(tensors, Selection(*(part.clone() for part in tensors)))
    with pytest.raises(AssertionError, match="values: Tensor instead of ndarray"):
        assert_same(tensors, _truth())
    half = make("random", 2, 5, "bfloat16")
    found = select_k_reference(half, 2)
    assert_selection(found, half, 2)
    found.values[1, 1] += 1
    with pytest.raises(AssertionError, match="the first is row 1"):
        assert_selection(found, half, 2)


@needs_torch
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("maker", ["random", "equal", "two_valued", "infinities", "zeros"])
def test_the_smallest_pass_without_sorting(maker: str, largest: bool) -> None:
    values = select_checks.torch.from_numpy(make(maker, 3, 40, "float32"))
    for k in (1, 7, 40):
        assert_smallest(select_k_reference(values, k, largest=largest), values, k, largest=largest)
        if k < 40 and maker != "equal":
            with pytest.raises(AssertionError, match=r"row \d: "):
                assert_smallest(select_k_reference(values, k, largest=largest), values, k, largest=not largest)


@needs_torch
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (_changed(indices={(0, 1): 1, (0, 0): 3}), "row 0: out of order at 0"),
        (_changed(indices={(0, 1): 1}), "row 0: out of order at 0"),  # the same pair twice
        (_changed(values={(2, 2): 5}), "row 2: value of another column at 2"),
        (_changed(indices={(2, 2): 4}), "row 2: other than 3 pairs come no later than the last"),
        (_changed(indices={(2, 0): 0}, values={(2, 0): np.inf}), "row 2: out of order at 0"),
        (_changed(indices={(1, 2): -1}), "row 1: index out of range at 2"),
        (_changed(indices={(1, 2): 5}), "row 1: index out of range at 2"),
        (Selection(*(part[:, :2] for part in _truth())), r"shapes \(3, 2\) and \(3, 2\)"),
        (Selection(*(part[:2] for part in _truth())), r"shapes \(2, 3\) and \(2, 3\)"),
        (_truth()._replace(values=_truth().values.astype(np.float64)), "float64 instead of"),
        (_truth()._replace(indices=_truth().indices.astype(np.int64)), "indices are .*int64"),
    ],
)
def test_what_is_not_the_smallest_fails_without_sorting(answer: Selection, message: str) -> None:
    tensors = Selection(*map(select_checks.torch.from_numpy, answer))
    with pytest.raises(AssertionError, match=message):
        assert_smallest(tensors, select_checks.torch.from_numpy(VALUES), K)


@pytest.mark.parametrize("maker", select_checks.MAKERS)
@pytest.mark.parametrize("dtype", select_checks.DTYPES)
def test_values_have_their_dtype_and_repeat(maker: str, dtype: str) -> None:
    if dtype == "bfloat16" and not HAS_TORCH:
        pytest.skip("torch is not installed")
    for shape in ((0, 4), (1, 1), (3, 50)):
        values, again = make(maker, *shape, dtype), make(maker, *shape, dtype)
        assert tuple(values.shape) == shape
        assert str(values.dtype).removeprefix("torch.") == dtype
        assert (values == again).all()
        assert not (values != values).any()  # no NaN


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int32", "uint8"])
def test_values_are_what_their_names_say(dtype: str) -> None:
    shape = (20, 64)
    assert (np.diff(make("ascending", *shape, dtype).astype(float)) >= 0).all()
    assert (np.diff(make("descending", *shape, dtype).astype(float)) <= 0).all()
    assert (make("equal", *shape, dtype) == make("equal", *shape, dtype)[:, :1]).all()
    assert len(np.unique(make("equal", *shape, dtype))) > 5
    assert len(np.unique(make("two_valued", *shape, dtype))) == 2
    pipe = make("organ_pipe", *shape, dtype)
    assert (pipe == pipe[:, ::-1]).all()
    assert pipe[0, 31] > pipe[0, 0]
    some = make("infinities", *shape, dtype)
    extremes = (-np.inf, np.inf) if dtype.startswith("float") else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    assert all((some == extreme).sum() > 100 for extreme in extremes)
    killer = make("median_of_three_killer", *shape, dtype)[0]
    if dtype != "uint8":  # dtypes that have too few values
        assert len(np.unique(killer)) == 64
        assert sorted([killer[0], killer[32], killer[63]])[1] == np.sort(killer)[1]
    bits = make("leading_bits", *shape, dtype)
    whole = bits.view(f"u{bits.itemsize}")
    assert len(np.unique(whole)) == 16
    assert whole.max() - whole.min() == 15
    if dtype.startswith("float"):
        both = make("zeros", *shape, dtype)
        assert (np.signbit(both) & (both == 0)).sum() > 100
        assert (~np.signbit(both) & (both == 0)).sum() > 100
        small = make("subnormal", *shape, dtype)
        assert (np.abs(small) < np.finfo(dtype).smallest_normal).all()
        assert len(np.unique(small)) > 100


@needs_torch
def test_bfloat16_keeps_what_matters() -> None:
    small = make("subnormal", 20, 64, "bfloat16")
    assert len(np.unique(small.float().numpy())) > 100
    assert len(np.unique(make("leading_bits", 20, 64, "bfloat16").float().numpy())) == 16


def test_lengths_have_both_ends() -> None:
    lengths = select_checks.some_lengths(30, 9)
    assert lengths.shape == (30,)
    assert (lengths[0], lengths[1]) == (0, 9)
    assert lengths.min() == 0
    assert len(np.unique(lengths)) > 5
