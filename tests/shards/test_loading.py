"""Rows of a source, loaded on the worker's device."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.devices import HAS_TORCH, on_cuda
from tonari.inputs import BFLOAT16, as_floats, held
from tonari.shards.loading import Loader, loader_for
from tonari.shards.source import FileSource, ObjectSource, Source

if not HAS_TORCH:
    pytest.skip("torch and Triton are not installed", allow_module_level=True)

import torch

from tonari.shards import loading_cuda
from tonari.shards.loading_cuda import CudaLoader

PLACES = [
    pytest.param("host", id="host"),
    pytest.param("cpu", id="tensors"),  # the loader of devices, without a stream
    pytest.param("cuda:0", id="cuda", marks=[pytest.mark.gpu, on_cuda]),
]
N, D = 1000, 7


def loader(source: Source, place: str, metric: str = "euclidean") -> Loader:
    return loader_for(source, metric, 2, "cpu") if place == "host" else CudaLoader(source, metric, place)


def values(rows: Any) -> Any:
    return rows if isinstance(rows, np.ndarray) else held(rows.cpu())


def points(dtype: str = "float32", n: int = N) -> Any:
    return (np.random.default_rng(0).standard_normal((n, D)) * 50).astype(dtype)


class Made:
    """A source that makes rows on request."""

    def __init__(self, rows: Any, convert: Any = lambda part: part) -> None:
        self.shape, self._rows, self._convert = rows.shape, rows, convert

    def rows(self, begin: int, end: int) -> Any:
        return self._convert(self._rows[begin:end])


@functools.cache
def three_files(folder: Path, dtype: str) -> FileSource:
    whole = points(dtype)
    paths = [folder / f"{dtype}-{at}.npy" for at in range(3)]
    for path, part in zip(paths, np.split(whole, [1, 600]), strict=True):
        np.save(path, part)
    return FileSource(paths)


IDS = {
    "none": np.arange(0),
    "first": np.arange(1),
    "last": np.array([N - 1]),
    "across files": np.array([0, 1, 2, 599, 600, 601]),
    "all": np.arange(N),
    "some": np.arange(3, N, 7),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("ids", list(IDS))
def test_rows_by_number(place: str, dtype: str, ids: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp()
    made = loader(three_files(folder, dtype), place)
    np.testing.assert_array_equal(values(made.at(IDS[ids])), points(dtype)[IDS[ids]])
    waiting = made.at_later(IDS[ids])
    for _ in range(2):  # a failed task requests them again
        np.testing.assert_array_equal(values(waiting.arrive()), points(dtype)[IDS[ids]])
    made.close()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", ["files", "object", "tensors"])
def test_ranges_of_rows(place: str, kind: str, tmp_path: Path) -> None:
    whole = points()
    source: Source = {
        "files": lambda: three_files(tmp_path, "float32"),
        "object": lambda: ObjectSource(Made(whole)),
        "tensors": lambda: ObjectSource(Made(whole, lambda part: torch.from_numpy(part).to(device_of(place)))),
    }[kind]()
    made = loader(source, place)
    np.testing.assert_array_equal(values(made.range(0, N)), whole)
    np.testing.assert_array_equal(values(made.range(599, 602)), whole[599:602])
    parts = [slice(900, 1000), slice(0, 1), slice(300, 700)]
    np.testing.assert_array_equal(values(made.ranges(parts)), np.concatenate([whole[part] for part in parts]))
    np.testing.assert_array_equal(values(made.at(IDS["some"])), whole[IDS["some"]])
    waiting = made.ranges_later(parts), made.at_later(IDS["some"])  # the second read does not overwrite the first
    np.testing.assert_array_equal(values(waiting[0].arrive()), np.concatenate([whole[part] for part in parts]))
    np.testing.assert_array_equal(values(waiting[1].arrive()), whole[IDS["some"]])
    made.close()


def device_of(place: str) -> str:
    return "cpu" if place == "host" else place


@pytest.mark.parametrize("place", PLACES)
def test_rows_of_bfloat16(place: str) -> None:
    whole = torch.from_numpy(points()).to(torch.bfloat16)
    made = loader(ObjectSource(Made(whole)), place)
    expected = whole.float().numpy()
    some = IDS["some"]
    for rows, part in (
        (made.range(10, 20), expected[10:20]),
        (made.at(some), expected[some]),
        (made.at_later(some).arrive(), expected[some]),
    ):
        found = rows if isinstance(rows, np.ndarray) else held(rows.cpu())
        assert found.dtype == BFLOAT16
        np.testing.assert_array_equal(as_floats(found), part)
    made.close()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("value", "metric", "said"), [(np.nan, "euclidean", "not finite"), (-1.0, "chi2", "negative")])
def test_a_bad_value_is_named_by_its_row(place: str, value: float, metric: str, said: str) -> None:
    whole = np.abs(points())
    whole[777, 3] = value
    made = loader(ObjectSource(Made(whole)), place, metric)
    made.range(0, 777)
    with pytest.raises(ValueError, match=rf"points: row 777 has .*{said}"):
        made.range(700, 800)
    with pytest.raises(ValueError, match=rf"points: row 777 has .*{said}"):
        made.ranges_later([slice(0, 10), slice(700, 800)]).arrive()
    made.close()


@pytest.mark.parametrize("place", PLACES)
def test_rows_wider_than_a_buffer(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.cuda.tuning.PIECE_BYTES", 16)  # less than a row
    source = three_files(tmp_path, "float32")
    made = loader(source, place)
    np.testing.assert_array_equal(values(made.at(IDS["some"])), points()[IDS["some"]])
    np.testing.assert_array_equal(values(made.at_later(IDS["some"]).arrive()), points()[IDS["some"]])
    made.close()


def test_an_object_makes_rows_on_the_device_and_the_stream_of_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    current: list[Any] = [None]
    seen: list[Any] = []

    @contextlib.contextmanager
    def stream(entered: Any) -> Iterator[None]:
        current.append(entered)
        yield
        current.pop()

    def convert(rows: Any) -> Any:
        seen.append(current[-1])
        return rows

    made = CudaLoader(ObjectSource(Made(points(), convert)), "euclidean", "cpu")
    monkeypatch.setattr(torch.cuda, "stream", stream)
    own = made._stream = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setattr(loading_cuda, "empty_on_host", lambda shape, dtype, locked: torch.empty(shape))
    monkeypatch.setattr(made, "_whole", lambda out: out)
    seen.clear()
    made.range(0, 10), made.at(IDS["some"]), made.ranges_later([slice(0, 10)]), made.at_later(IDS["some"])
    assert seen == [own] * 4


@pytest.mark.parametrize("place", PLACES[1:])
@pytest.mark.parametrize("kind", ["files", "host", "device"])
@pytest.mark.parametrize("pieces", [1, 64, 1 << 20])
def test_rows_wait_in_pieces_of_page_locked_memory(
    pieces: int, kind: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pieces of one row, of two rows, and of all rows."""
    monkeypatch.setattr(loading_cuda.shards_tuning, "LOCKED_BYTES", pieces)
    monkeypatch.setattr(loading_cuda.shards_tuning, "BLOCK_BYTES", 700)  # of an object: 25 rows
    whole = points()
    convert = (lambda part: part) if kind == "host" else lambda part: torch.from_numpy(part).to(place)
    source = three_files(tmp_path, "float32") if kind == "files" else ObjectSource(Made(whole, convert))
    made, sizes = loader(source, place), []
    usual = loading_cuda.empty_on_host

    def noting(shape: Any, dtype: str, **given: Any) -> Any:
        sizes.append(shape[0])
        return usual(shape, dtype, **given)

    monkeypatch.setattr(loading_cuda, "empty_on_host", noting)
    for ids in IDS.values():
        np.testing.assert_array_equal(values(made.at_later(ids).arrive()), whole[ids])
    parts = [slice(0, 1), slice(3, 40), slice(599, 603), slice(900, 1000)]
    expected = np.concatenate([whole[part] for part in parts])
    np.testing.assert_array_equal(values(made.ranges_later(parts).arrive()), expected)
    assert max(sizes) == {1: 1, 64: 2, 1 << 20: 1000}[pieces]
