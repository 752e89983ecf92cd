"""Pairs in a file of records."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tonari.core.results.pairs import Pairs
from tonari.io.neighbors.pairs import write_pairs


def block(count: int, first: int = 0) -> Pairs:
    left = np.arange(first, first + count)
    return Pairs(left, left + 1, left / 2)


@pytest.mark.parametrize("counts", [[], [0], [3], [2, 0, 5], [1] * 9])
@pytest.mark.parametrize(("indices", "distances"), [("int32", "float32"), ("int64", "float64")])
def test_numpy_reads_what_is_written(counts: list[int], indices: str, distances: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.npy"
    blocks = [block(count, 10 * at) for at, count in enumerate(counts)]
    assert write_pairs(path, blocks, indices, distances) == sum(counts)
    found = np.load(path)
    assert found.dtype == [("left", indices), ("right", indices), ("distance", distances)]
    for name, part in zip(("left", "right", "distance"), zip(*blocks, strict=True), strict=False):
        np.testing.assert_array_equal(found[name], np.concatenate(part))
    assert found.shape == (sum(counts),)


def test_names_stand_in_the_place_of_row_numbers(tmp_path: Path) -> None:
    path, names = tmp_path / "pairs.npy", np.array(["ape", "bee", "cat"])
    write_pairs(path, [block(2)], "int32", "float32", names)
    assert np.load(path)[["left", "right"]].tolist() == [("ape", "bee"), ("bee", "cat")]


def test_an_interrupted_file_leaves_the_older_one(tmp_path: Path) -> None:
    def blocks() -> Iterator[Pairs]:
        yield block(3)
        raise ZeroDivisionError

    path = tmp_path / "pairs.npy"
    write_pairs(path, [block(1)], "int32", "float32")
    before = path.read_bytes()
    with pytest.raises(ZeroDivisionError):
        write_pairs(path, blocks(), "int32", "float32")
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
