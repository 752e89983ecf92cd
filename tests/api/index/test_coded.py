"""An Index with only codes in memory: same bits as in memory, few rows read, and changes of the file detected."""

from __future__ import annotations

import pickle
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.checks import DTYPES, HOSTILE, assert_same_neighbors
from tonari.api.tuning import CODED_QUERIES
from tonari.core import _native
from tonari.core.errors import BudgetExceeded, Unsupported
from tonari.core.process.isa import chosen_isa
from tonari.core.results.neighbors import Neighbors
from tonari.exact.cpu.rows.code_forms import overrides_of
from tonari.exact.planning.planner import plan_on_cpu
from tonari.metrics.problem import make_problem
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation", "inner_product")
N, M, D, K = 500, 20, 24, 17


def written(path: Path, rows: Array) -> Path:
    np.save(path, rows)
    return path


@cache
def truth(maker: str, metric: str) -> tuple[Array, Neighbors]:
    points = checks.in_range(HOSTILE[maker](N, D, 0), metric)
    return points, brute(points[:M], points, K, metric)


@pytest.mark.parametrize("columns", [{}, {"form_dim": 7}], ids=["chosen", "few"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("maker", HOSTILE)
def test_hostile_rows_of_a_file(maker: str, metric: str, columns: dict[str, int], tmp_path: Path) -> None:
    points, expected = truth(maker, metric)
    index = tonari.Index(written(tmp_path / "points.npy", points), metric=metric, codes="int8", **columns)
    assert_same_neighbors(index.search(points[:M], K), expected, metric=metric)
    assert_same_neighbors(index.search(points[:1], K), Neighbors(*(part[:1] for part in expected)), metric=metric)


WITH_INT8 = [isa for isa in _native.supported_isas() if f"inner/int8/{isa}" in _native.kernel_names()]


@pytest.mark.parametrize("isa", WITH_INT8)
def test_every_instruction_set(isa: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TONARI_ISA", isa)
    for maker in ("tight_far_clusters", "duplicates", "offset_1e4"):
        points, expected = truth(maker, "euclidean")
        index = tonari.Index(written(tmp_path / f"{maker}.npy", points), codes="int8", form_dim=9, threads=2)
        assert_same_neighbors(index.search(points[:M], K), expected)
        index.save(tmp_path / "codes.index")
        assert_same_neighbors(tonari.Index.load(tmp_path / "codes.index").search(points[:M], K), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype: str) -> None:
    points = np.abs(checks.gaussian(300, 21, 3) * 20).astype(dtype)
    expected = brute(points[:M], points, 9)
    for columns in (2, 10, 20):
        index = tonari.Index(points, codes="int8", form_dim=columns)
        assert_same_neighbors(index.search(points[:M], 9), expected)
        queries = points[:M].astype(np.float64)
        assert_same_neighbors(index.search(queries, 9), brute(queries, points, 9))


@pytest.mark.parametrize("n", [1, 2, 7, 15, 17, 97])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_small_shapes_up_to_all_points(n: int, d: int) -> None:
    points = checks.duplicates(n, d)
    index = tonari.Index(points, codes="int8", **({"form_dim": 2} if d > 2 else {}))
    for m in (1, 7):
        queries = checks.gaussian(m, d, 1)
        for k in {1, (n + 1) // 2, n}:
            assert_same_neighbors(index.search(queries, k), brute(queries, points, k))
    none = index.search(np.empty((0, d), np.float32), 1)
    assert none.indices.shape == (0, 1)
    with pytest.raises(ValueError, match=f"k={n + 1}"):
        index.search(points[:1], n + 1)


SUFFIXES = {".npy": "float32", ".fbin": "float32", ".u8bin": "uint8", ".fvecs": "float32", ".bvecs": "uint8"}


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_of_every_format_that_is_mapped(suffix: str, tmp_path: Path) -> None:
    points = (checks.gaussian(700, 19, 2) ** 2 * 9).astype(SUFFIXES[suffix])
    path = tmp_path / f"points{suffix}"
    tonari.io.write(path, points)
    expected = brute(points[:M], points, 9)
    for given in (path, str(path), tonari.io.read(path), tonari.io.read(path)[:]):
        index = tonari.Index(given, codes="int8", form_dim=8)
        assert not index.points.flags.owndata
        assert_same_neighbors(index.search(points[:M], 9), expected)
    within = index.radius_search(points[:M], 9.0)
    known = tonari.radius_search(points[:M], points, 9.0)
    assert within.indices.tobytes() == known.indices.tobytes()
    assert within.distances.tobytes() == known.distances.tobytes()
    assert index.radius_count(points[:M], 9.0).tolist() == np.diff(known.indptr).tolist()
    index.save(tmp_path / "codes.index")
    assert_same_neighbors(tonari.Index.load(tmp_path / "codes.index").search(points[:M], 9), expected)


def test_a_part_of_a_mapped_array_with_gaps(tmp_path: Path) -> None:
    whole = checks.gaussian(900, 12, 5)
    mapped = np.load(written(tmp_path / "points.npy", whole), mmap_mode="r")
    for part, rows in ((mapped[100:], whole[100:]), (mapped[3::2], whole[3::2]), (mapped[:, 2:10], whole[:, 2:10])):
        index = tonari.Index(part, codes="int8", form_dim=5)
        queries, expected = rows[:9], brute(rows[:9], rows, 8)
        assert_same_neighbors(index.search(queries, 8), expected)
        index.save(tmp_path / "codes.index")
        assert_same_neighbors(tonari.Index.load(tmp_path / "codes.index").search(queries, 8), expected)


def test_few_rows_are_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.standard_normal((48, 48)))[0]
    points = ((rng.standard_normal((20_000, 48)) / np.arange(1, 49) ** 2) @ turned).astype(np.float32)
    queries = points[:50] + np.float32(0.01)
    path = written(tmp_path / "points.npy", points)
    index = tonari.Index(path, codes="int8", threads=1)
    expected = brute(queries, points, 10)
    assert_same_neighbors(index.search(queries, 10), expected)
    held = index._state.largest.held_bytes
    code = 64 if chosen_isa() == "amx" else 48  # most bytes per point: AMX reads 64 columns
    assert 16 * 20_000 < held < 20_000 * (code + 32) <= points.nbytes / 2
    prepared = index._state.largest.first.prepared
    assert prepared.form_dim < 48  # the rows vary in few directions


def test_the_columns_of_rows_without_a_direction_are_all_kept() -> None:
    points = checks.gaussian(6000, 40)
    index = tonari.Index(points, codes="int8")
    assert index._state.largest.first.prepared.form_dim == 40
    assert_same_neighbors(index.search(points[:5], 3), brute(points[:5], points, 3))


def test_less_memory_means_fewer_columns(tmp_path: Path) -> None:
    points = checks.gaussian(20_000, 64, 1)
    path = written(tmp_path / "points.npy", points)
    whole = tonari.Index(path, codes="int8", threads=1)
    assert whole._coded is not None
    isa = "avx512" if chosen_isa() == "amx" else None  # codes for AMX always take 64 bytes
    problem = make_problem(20_000, CODED_QUERIES, 64, 10, dtype="float32", metric="euclidean", threads=1)
    memory = plan_on_cpu(problem, **overrides_of(40, isa)).total_bytes + whole._coded.beside
    less = tonari.Index(path, codes="int8", threads=1, memory=memory)
    columns = [index._state.largest.first.prepared.form_dim for index in (whole, less)]
    assert columns[0] == 64 > columns[1] >= 16
    assert less._state.largest.held_bytes < memory
    assert_same_neighbors(less.search(points[:3], 3), brute(points[:3], points, 3))
    with pytest.raises(BudgetExceeded, match="allow at least"):
        tonari.Index(path, codes="int8", memory="4MB")
    with pytest.raises(BudgetExceeded, match="allow at least"):  # codes are never dropped and computed again
        less.search(points, 1000)
    assert_same_neighbors(less.search(points[:3], 3), brute(points[:3], points, 3))


def test_rows_in_memory_are_pickled_but_not_saved(tmp_path: Path) -> None:
    points = checks.gaussian(300, 8)
    index = tonari.Index(points, codes="int8", form_dim=5)
    again = pickle.loads(pickle.dumps(index))
    assert_same_neighbors(again.search(points[:5], 4), brute(points[:5], points, 4))
    with pytest.raises(ValueError, match="save: the rows are in memory"):
        index.save(tmp_path / "codes.index")
    points[0] = 7
    with pytest.raises(RuntimeError, match="the array has changed"):
        index.search(points[:5], 4)


def test_values_that_are_refused(tmp_path: Path) -> None:
    points = checks.gaussian(40_000, 3)
    points[39_000, 1], points[31_007, 2] = np.nan, np.inf
    path = written(tmp_path / "points.npy", points)
    with pytest.raises(ValueError, match="points: row 31007 has a value that is not finite"):
        tonari.Index(path, codes="int8", threads=2)
    with pytest.raises(ValueError, match="points: row 0 has a value that is not finite"):
        tonari.Index(np.full((5, 3), np.nan), codes="int8")
    with pytest.raises(ValueError, match="points: row 1 has a value whose square overflows float64"):
        tonari.Index(np.array([[1.0], [1e160]]), codes="int8")


def test_refusals(tmp_path: Path) -> None:
    points = checks.gaussian(50, 6)
    path = written(tmp_path / "points.npy", points)
    refused: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"codes": "int4"}, Unsupported, "the CPU has codes in int8"),
        ({"codes": "float16"}, Unsupported, "the CPU has codes in int8"),
        ({"codes": 8}, ValueError, "codes=8: expected one of 'auto'"),
        ({"metric": "l1"}, Unsupported, "metric='l1' has no codes, only 'euclidean'"),
        ({"metric": "haversine"}, Unsupported, "transformed first have no codes"),
        ({"weights": [2.0] * 6}, Unsupported, "transformed first have no codes"),
        ({"method": "kdtree"}, Unsupported, "method='kdtree' searches no codes"),
        ({"copy": True}, Unsupported, "leave copy out"),
        ({"look_dim": 2}, ValueError, "sets look_dim itself"),
        ({"form_dim": 7}, ValueError, "form_dim=7: rows have 6 columns"),
        ({"form_dim": 1}, ValueError, "form_dim"),
    ]
    for given, error, words in refused:
        with pytest.raises(error, match=words):
            tonari.Index(path, **({"codes": "int8"} | given))
    index = tonari.Index(path, codes="int8")
    for call in (lambda: index.add(points), lambda: index.remove([1])):
        with pytest.raises(Unsupported, match="an Index with codes='int8' supports none; change the file"):
            call()
    with pytest.raises(Unsupported, match="filters: an Index with codes='int8' supports none"):
        index.search(points[:2], 1, where=np.ones(50, bool))
    with pytest.raises(TypeError, match="a path, a memory map or an array, got list"):
        tonari.Index(points.tolist(), codes="int8")
    with pytest.raises(ValueError, match="would be copied to memory"):
        tonari.Index(np.asfortranarray(points), codes="int8")
    with pytest.raises(ValueError, match="would be copied to memory"):
        tonari.Index(points.astype(">f4"), codes="int8")
    with pytest.raises(ValueError, match=r"points: shape \(0, 6\) is empty"):
        tonari.Index(written(tmp_path / "none.npy", points[:0]))
    np.savez(tmp_path / "points.npz", points)
    with pytest.raises(ValueError, match="needs a file that can be mapped"):
        tonari.Index(tmp_path / "points.npz", codes="int8")
    with pytest.raises(Unsupported, match=r"tonari\.io\.read"):
        tonari.Index(path, metric="l1")
    assert "codes=" not in repr(tonari.Index(np.load(path, mmap_mode="r")))


def test_streams_and_read_only_rows(tmp_path: Path) -> None:
    points = checks.gaussian(2000, 20, 8)
    points.setflags(write=False)
    index = tonari.Index(points, codes="int8", form_dim=8)
    expected = brute(points[:70], points, 6)
    found = list(index.search_chunks(points[:70], 6, chunk_rows=32))
    assert_same_neighbors(Neighbors(*(np.concatenate(parts) for parts in zip(*found, strict=True))), expected)
    shutil.rmtree(tmp_path)
