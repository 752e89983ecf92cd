"""The file of an Index of sparse rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari

sparse = pytest.importorskip("scipy.sparse", reason="matrices")

from tests.helpers.sparse_rows import METRICS, same_bits, words  # noqa: E402
from tonari.api.index.files import dense as file  # noqa: E402
from tonari.io import FileFormatError  # noqa: E402

POINTS = sparse.csr_array(words(90, 20).astype(np.float32))


def made(metric: str = "cosine", dtype: Any = np.float32, **options: Any) -> tonari.Index:
    index = tonari.Index(POINTS.astype(dtype), metric=metric, **options)
    index.add(POINTS[:7].astype(dtype))
    index.remove([3, 91])
    return index


@pytest.mark.parametrize("metric", [*METRICS, "jaccard"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answers_of_a_loaded_index_have_the_same_bits(metric: str, dtype: Any, tmp_path: Path) -> None:
    index = made(metric, dtype)
    index.save(tmp_path / "a.index")
    again = tonari.Index.load(tmp_path / "a.index", threads=1)
    assert repr(again) == repr(index)
    same_bits([again.ids], [index.ids])
    same_bits(again.search(POINTS, 9), index.search(POINTS, 9))
    assert again.add(POINTS[:1].astype(dtype)).tolist() == [97]
    again.save(tmp_path / "a.index")
    assert len(tonari.Index.load(tmp_path / "a.index")) == 96


def test_weights_and_an_index_without_points(tmp_path: Path) -> None:
    index = made("euclidean", weights=np.arange(20) % 3, memory="1GB")
    index.save(tmp_path / "a.index")
    again = tonari.Index.load(tmp_path / "a.index")
    assert (again.weights, again.memory) == (index.weights, 10**9)
    same_bits(again.search(POINTS, 9), index.search(POINTS, 9))
    again.remove(again.ids)
    again.save(tmp_path / "a.index")
    empty = tonari.Index.load(tmp_path / "a.index")
    assert (len(empty), empty.next_id, empty.d, empty.dtype) == (0, 97, 20, "float64")
    assert empty.add(POINTS[:2]).tolist() == [97, 98]


def test_every_changed_byte_and_every_cut_is_found(tmp_path: Path) -> None:
    path, spoilt = tmp_path / "a.index", tmp_path / "b.index"
    made().save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 97):
        spoilt.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(FileFormatError):
            tonari.Index.load(spoilt)
    for size in (10, 100, len(whole) - 1, len(whole) + 1):
        spoilt.write_bytes((whole + b"\0")[:size])
        with pytest.raises(FileFormatError):
            tonari.Index.load(spoilt)


@pytest.mark.parametrize(
    "changes",
    [
        {"metric": "l1"},
        {"metric": "Cosine"},
        {"metric": "jaccard"},
        {"dtype": "float16"},
        {"n": 5},
        {"d": 3},
        {"entries": 7},
        {"next_id": 3},
        {"next_id": 90},
        {"device": "cuda"},
        {"version": 2},
        {"weights": [1.0]},
    ],
)
def test_a_header_that_fits_no_rows_is_refused(
    changes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tonari.api.index.files import sparse as sparse_file

    header_of = sparse_file.header_of
    monkeypatch.setattr(sparse_file, "header_of", lambda about: header_of(about | changes))
    made().save(tmp_path / "a.index")
    with pytest.raises(FileFormatError):
        tonari.Index.load(tmp_path / "a.index")


def test_the_header_describes_the_rows(tmp_path: Path) -> None:
    made().save(tmp_path / "a.index")
    about = file.describe(tmp_path / "a.index")
    assert (about["n"], about["d"], about["metric"], about["method"]) == (95, 20, "cosine", "exact")
