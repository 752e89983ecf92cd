"""Refusals of select_k and their messages."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import select_checks
from tests.helpers.devices import interpreted, needs_torch
from tests.helpers.select_checks import make, select_by_kernels
from tonari import inputs
from tonari.select import Counters

X = make("random", 6, 5, "float32")

# A fault of the values -> the values, the error, and words of the message.
BAD_VALUES: dict[str, tuple[Any, type[Exception], str]] = {
    "one dimension": (X[0], ValueError, r"expected shape \(rows, n\), got \(5,\); use .reshape\(1, -1\)"),
    "three dimensions": (X[None], ValueError, r"expected shape \(rows, n\), got \(1, 6, 5\)"),
    "a number": (3.0, ValueError, r"expected shape \(rows, n\), got \(\)"),
    "no columns": (X[:, :0], ValueError, r"shape \(6, 0\) has no columns, expected at least one"),
    "too many columns": (
        np.broadcast_to(np.uint8(0), (1, 2**31)),
        ValueError,
        "2147483648 columns, expected at most 2147483647",
    ),
    "int64": (X.astype(np.int64), TypeError, r"int64 is not supported, only float32.*\.astype\(numpy.float64\)"),
    "uint32": (np.abs(X).astype(np.uint32), TypeError, r"uint32 .*float64\), exact for whole numbers up to 2\*\*53"),
    "int8": (X.astype(np.int8), TypeError, r"int8 .*\.astype\(numpy.int32\)"),
    "uint16": (np.abs(X).astype(np.uint16), TypeError, r"uint16 .*\.astype\(numpy.int32\)"),
    "bool": (X > 0, TypeError, r"bool is not supported.*\.astype\(numpy.int32\)"),
    "long double": (X.astype(np.longdouble), TypeError, r"(longdouble|float128) .*\.astype\(numpy.float64\)"),
    "complex": (X.astype(np.complex64), TypeError, "complex64 .*have no order"),
    "objects": (X.astype(object), TypeError, r"object \(mixed or unequal rows\) is not supported"),
    "text": (np.array([["a", "b"]]), TypeError, "text is not supported"),
    "lists of whole numbers": ([[1, 2]], TypeError, "int64 is not supported"),
    "unequal lists": ([[1.0, 2.0], [3.0]], ValueError, r"cannot be read as an array of shape \(rows, n\)"),
    "masked": (np.ma.array(X, mask=X > 0), ValueError, r"masked values; .*\.filled"),
    "sparse": (SimpleNamespace(tocsr=None), TypeError, r"sparse input is not supported; use \.toarray"),
    "NaN": (np.where(X[4, 2] == X, np.float32(np.nan), X), ValueError, "row 4 has NaN in column 2"),
}


@pytest.mark.parametrize("what", BAD_VALUES)
@pytest.mark.parametrize("method", ["auto", "heap"])
def test_bad_values(what: str, method: str) -> None:
    values, error, message = BAD_VALUES[what]
    with pytest.raises(error, match="^values: .*" + message):
        tonari.select_k(values, 1, method=method)


# A fault of an argument -> the argument, the error, and words of the message.
BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "k of zero": ({"k": 0}, ValueError, "k=0: the smallest k is 1"),
    "k beyond n": ({"k": 6}, ValueError, "k=6: the largest k is 5, as there are 5 columns$"),
    "fractional k": ({"k": 2.5}, TypeError, "k=2.5: expected a whole number"),
    "k as bool": ({"k": True}, TypeError, "got a bool"),
    "method": ({"method": "heep"}, ValueError, "unknown method 'heep'; expected one of auto, insertion,.*mean 'heap'"),
    "method of None": ({"method": None}, ValueError, "unknown method None"),
    "largest": ({"largest": "yes"}, TypeError, "largest='yes': expected True or False, got str"),
    "sorted": ({"sorted": 1}, TypeError, "sorted=1: expected True or False, got int"),
    "nan": ({"nan": "first"}, ValueError, 'nan=\'first\': expected "refuse" or "last"'),
    "threads of zero": ({"threads": 0}, ValueError, "threads=0: expected at least 1"),
    "threads as text": ({"threads": "2"}, TypeError, "threads='2': expected a whole number"),
    "counters": ({"counters": {}}, TypeError, r"counters: expected tonari.select.Counters\(\), got dict"),
    "too few lengths": ({"lengths": [1, 2]}, ValueError, r"lengths: expected shape \(6,\), .*got \(2,\)"),
    "one length": ({"lengths": 3}, ValueError, r"expected shape \(6,\), one number for each row, got \(\)"),
    "fractional lengths": ({"lengths": [1.0] * 6}, TypeError, "lengths: expected whole numbers, got float64"),
    "bool lengths": ({"lengths": [True] * 6}, TypeError, "lengths: expected whole numbers, got bool"),
    "negative length": ({"lengths": [5, 5, -1, 5, -2, 5]}, ValueError, "row 2 has length -1; .*from 0 to 5"),
    "length beyond n": ({"lengths": [0, 1, 2, 3, 4, 6]}, ValueError, "row 5 has length 6; there are 5 columns"),
    "options of auto": ({"buffer": "full", "m": 8}, TypeError, 'got buffer, m with method="auto"'),
    "unknown argument": ({"axis": 1}, TypeError, 'got axis with method="auto"'),
    "option of another": (
        {"method": "heap", "m": 8},
        TypeError,
        "method 'heap' has no option m on cpu; it has buffer, buffer_size, group, levels",
    ),
    "options of none": ({"method": "bitonic", "bits": 8}, TypeError, "has no option bits on cpu; it has none"),
    "unit on the CPU": ({"method": "quick", "unit": "warp"}, TypeError, "has no option unit on cpu; it has none"),
    "misspelt option": ({"method": "insertion", "bufer": "own"}, TypeError, "has no option bufer"),
    "buffer": ({"method": "heap", "buffer": "half"}, ValueError, "buffer"),
    "buffer_size": ({"method": "heap", "buffer": "own", "buffer_size": 0}, ValueError, "buffer_size"),
    "group of one": ({"method": "insertion", "group": 1}, ValueError, "group"),
    "no levels": ({"method": "insertion", "group": 2, "levels": 0}, ValueError, "levels"),
    "levels without a group": ({"method": "insertion", "levels": 2}, ValueError, "levels"),
    "group alone": ({"method": "hierarchical", "group": 1}, ValueError, "group"),
    "m": ({"method": "merge_queue", "m": 12}, ValueError, "m=12"),
    "samples": ({"method": "threshold", "samples": 0}, ValueError, "samples"),
    "batch": ({"method": "threshold", "batch": 0}, ValueError, "batch"),
    "finish": ({"method": "threshold", "finish": "quick"}, ValueError, "finish"),
    "bits": ({"method": "radix", "bits": 0}, ValueError, "bits"),
}


@pytest.mark.parametrize("what", BAD_ARGUMENTS)
def test_bad_arguments(what: str) -> None:
    arguments, error, message = BAD_ARGUMENTS[what]
    with pytest.raises(error, match=message):
        tonari.select_k(X, **({"k": 2} | arguments))


def test_what_is_given_by_numpy_is_accepted() -> None:
    found = tonari.select_k(
        X, np.int64(2), largest=np.True_, sorted=np.False_, lengths=np.full(6, 3, np.uint8), threads=np.int32(1)
    )
    assert found.indices.shape == (6, 2)
    assert tonari.select_k(X[:0], 2, lengths=[]).indices.shape == (0, 2)


def test_extreme_options_cost_nothing() -> None:
    large = 2**40
    for method, options in {
        "heap": {"buffer": "full", "buffer_size": large, "group": large, "levels": large},
        "hierarchical": {"group": large},
        "threshold": {"samples": large, "batch": 2**20},
    }.items():
        select_checks.assert_selection(tonari.select_k(X, 2, method=method, **options), X, 2)


def test_counters_are_filled_anew() -> None:
    counters = Counters()
    tonari.select_k(X, 2, method="merge_queue", counters=counters)
    assert counters.merges is not None
    first = counters.examined
    tonari.select_k(X, 2, method="heap", counters=counters)
    assert counters.merges is None
    assert counters.examined == first
    assert counters.updates is not None
    assert counters.updates.dtype == np.int64


@pytest.mark.parametrize("isa", ["sse9", ""])
def test_an_instruction_set_that_is_not_there(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    with pytest.raises(ValueError, match=f"cannot run the instruction set {isa!r}; it can run generic"):
        tonari.select_k(X, 2)


@needs_torch
def test_tensors_that_are_refused() -> None:
    torch = select_checks.torch
    ones = torch.ones((3, 4))
    for values, error, message in (
        (ones.to(torch.int64), TypeError, r"int64 is not supported.*\.to\(torch.float64\), exact"),
        (ones.to(torch.int8), TypeError, r"int8 .*\.to\(torch.int32\)"),
        (ones.bool(), TypeError, r"bool .*\.to\(torch.int32\)"),
        (ones.to(torch.float8_e4m3fn), TypeError, r"float8_e4m3fn .*\.to\(torch.float32\)"),
        (ones.to(torch.complex64), TypeError, "complex64 .*no order"),
        (ones.to("meta"), ValueError, "is on meta, expected the CPU or a CUDA device"),
        (ones.to_sparse(), TypeError, r"sparse input is not supported; use \.to_dense"),
        (ones[0], ValueError, r"expected shape \(rows, n\), got \(4,\); use .reshape\(1, -1\)"),
        (ones[:, :0], ValueError, r"shape \(3, 0\) has no columns"),
        (ones / 0 * 0, ValueError, "row 0 has NaN in column 0"),
        ((ones * float("nan")).to(torch.bfloat16), ValueError, "row 0 has NaN in column 0"),
    ):
        with pytest.raises(error, match="^values: .*" + message):
            tonari.select_k(values, 1)


@interpreted
def test_options_of_the_cpu_on_a_gpu() -> None:
    for options in ({"batch": 8}, {"finish": "heap"}):
        with pytest.raises(TypeError, match=r"has no option (batch|finish) on cuda; it has samples"):
            select_by_kernels("cpu", "threshold", X, 2, **options)


@interpreted
def test_a_gpu_needs_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(ImportError, match=r"needs Triton: pip install 'tonari\[gpu\]'"):
        select_by_kernels("cpu", "radix", X, 2)


def test_border_gives_what_kernels_read() -> None:
    values, dtype = inputs.as_values(X, "values")
    assert dtype == "float32"
    assert np.shares_memory(values, X)
    values, _ = inputs.as_values(X[::-2, 1:3], "values")
    assert np.shares_memory(values, X)
    assert values.strides == (-2 * X.strides[0], 4)
    values, _ = inputs.as_values(X.T, "values")
    assert values.flags.c_contiguous
    assert values.shape == (5, 6)
    lengths = np.arange(6)
    assert inputs.as_lengths(lengths, (6, 5), "lengths") is lengths
    assert inputs.as_lengths(None, (6, 5), "lengths") is None
    assert inputs.as_lengths(lengths.astype(np.uint8), (6, 5), "lengths").dtype == np.int64
