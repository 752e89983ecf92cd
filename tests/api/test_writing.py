"""Queries and points of every kind are written to files while they are found, with the options of an Index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tonari
from tests.helpers.streaming import UNEVEN, K, M, cut, index_of, points, queries
from tests.streams.test_writing import truth
from tonari import io


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_files_arrays_and_iterables() -> None:
    io.write("p.fbin", points())
    io.write("q.npy", queries())
    options: dict[str, Any] = {"method": "exact", "threads": 1}
    for given, base, more in (
        ("q.npy", "p.fbin", {"chunk_rows": 9, **options}),
        (Path("q.npy"), points(), {"chunk_rows": 9, **options}),
        (io.read("q.npy"), io.read("p.fbin"), options),
        (cut(queries(), *UNEVEN), index_of(), {"rows": M}),
        (list(cut(queries(), *UNEVEN)), index_of(), {}),
    ):
        tonari.search_to_file(given, base, K, "t.ibin", overwrite=True, **more)
        assert Path("t.ibin").read_bytes() == truth()


@pytest.mark.parametrize("metric", ["l1", "inner_product"])
def test_metrics_and_options_reach_the_index(metric: str) -> None:
    out = tonari.search_to_file(queries(), points(), K, "t.ibin", metric=metric, memory="1GB", threads=2)
    assert out.read_bytes() == truth(metric=metric)
