"""The choice of a method by timings."""

from __future__ import annotations

import pytest

import tonari
from tests.helpers.select_checks import (
    DTYPES,
    assert_selection,
    make,
)
from tonari.core import _native
from tonari.select.auto import choose, load_table
from tonari.select.registry import METHODS, make_options


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_auto_knows_every_shape(device: str) -> None:
    for rows, n, k in ((0, 1, 1), (1, 2**31 - 1, 2**30), (10**9, 1, 1), (8192, 32768, 64)):
        for dtype in DTYPES:
            method, options = choose(device, rows, n, k, dtype)
            assert method in METHODS
            make_options(method, options, device)


def test_auto_takes_the_nearest_timing(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [
        {"device": "cpu", "rows": 64, "n": 1024, "k": 8, "bytes": 4, "method": "heap", "options": {}},
        {"device": "cpu", "rows": 64, "n": 1024, "k": 512, "bytes": 4, "method": "radix", "options": {"bits": 5}},
        {"device": "cpu", "rows": 64, "n": 65536, "k": 8, "bytes": 4, "method": "threshold", "options": {}},
        {"device": "cpu", "rows": 64, "n": 1024, "k": 512, "bytes": 8, "method": "quick", "options": {}},
    ]
    monkeypatch.setattr("tonari.select.auto.load_table", lambda: table)
    assert choose("cpu", 100, 2000, 10, "float32") == ("heap", {})
    assert choose("cpu", 1, 1024, 100, "int32") == ("radix", {"bits": 5})
    assert choose("cpu", 64, 40_000, 8, "float32") == ("threshold", {})
    assert choose("cpu", 64, 2000, 8, "float64") == ("quick", {})  # as many bytes before as many values
    assert choose("cpu", 64, 2000, 8, "uint8") == ("heap", {})
    assert choose("cuda", 64, 2000, 8, "float32") == ("threshold", {})  # nothing was timed for these
    values = make("random", 40, 1500, "float32")
    calls: list[str] = []
    original = _native.select_rows
    monkeypatch.setattr(
        _native,
        "select_rows",
        lambda isa, method, *a, **b: (calls.append(method), original(isa, method, *a, **b))[1],
    )
    assert_selection(tonari.select_k(values, 700), values, 700)
    assert set(calls) == {"radix"}


def test_no_network_sorts_keys_of_64_bits_by_timings_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"device": "cuda", "rows": 16, "n": 1024, "k": 8, "bytes": 4, "method": "bitonic", "options": {}}
    monkeypatch.setattr("tonari.select.auto.load_table", lambda: [entry])
    choose.cache_clear()
    assert choose("cuda", 16, 1024, 8, "float32")[0] == "bitonic"
    assert choose("cuda", 16, 1024, 8, "float64")[0] == "threshold"
    monkeypatch.setitem(entry, "bytes", 8)
    assert choose("cuda", 17, 1024, 8, "float64")[0] == "bitonic"
    choose.cache_clear()


@pytest.mark.parametrize(("dtype", "longest"), [("float32", 256), ("uint8", 256), ("float64", 128)])
def test_short_rows_are_sorted_side_by_side(dtype: str, longest: int) -> None:
    for rows, k in ((1, 1), (10**6, 20), (100, longest)):
        assert choose("cpu", rows, longest, k, dtype) == ("bitonic", {})
    assert choose("cpu", 10**6, longest + 1, 5, dtype)[0] != "bitonic"


def test_table_of_timings_is_sound() -> None:
    for entry in load_table():
        assert set(entry) == {"device", "rows", "n", "k", "bytes", "method", "options"}
        assert entry["device"] in ("cpu", "cuda")
        assert entry["bytes"] in (1, 2, 4, 8)
        assert 1 <= entry["k"] <= entry["n"]
        assert entry["rows"] >= 1
        make_options(entry["method"], entry["options"], entry["device"])
