"""Rows with lists of different lengths are divided among threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tonari.core.rows.listed import in_blocks


def blocks_of(lengths: list[int], seconds: float, threads: int | None = 1) -> list[slice]:
    made: list[slice] = []
    told: list[tuple[int, int]] = []
    lock = threading.Lock()

    def call(rows: slice) -> None:
        with lock:
            made.append(rows)

    def progress(done: int, total: int) -> None:
        told.append((done, total))

    in_blocks(np.array(lengths, np.int64), seconds, call, threads=threads, progress=progress)
    if lengths:
        assert told[-1] == (len(lengths), len(lengths))
    return sorted(made, key=lambda rows: rows.start)


@pytest.mark.parametrize("lengths", [[0], [0, 0, 0], [5], [1] * 100, [10_000, *[0] * 50, 10_000], list(range(60))])
@pytest.mark.parametrize("seconds", [0.0, 0.001, 0.5])
@pytest.mark.parametrize("threads", [None, 1, 3])
def test_blocks_are_all_rows_once(lengths: list[int], seconds: float, threads: int | None) -> None:
    rows = [row for block in blocks_of(lengths, seconds, threads) for row in range(block.start, block.stop)]
    assert rows == list(range(len(lengths)))


def test_a_block_takes_about_a_hundredth_of_a_second() -> None:
    assert len(blocks_of([7] * 1000, 0.005)) == 1
    lengths = np.random.default_rng(0).integers(1, 100, 1000)
    sums = [lengths[block].sum() / lengths.sum() for block in blocks_of(lengths.tolist(), 1.0)]
    assert 90 <= len(sums) <= 100
    assert max(sums) < 0.013
    assert len(blocks_of([0] * 1000, 1.0)) == 100  # rows without lists all cost the same


def test_without_rows_nothing_is_called() -> None:
    assert blocks_of([], 0.0) == []


def test_an_error_of_a_call_comes_through() -> None:
    def call(rows: slice) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        in_blocks(np.ones(10, np.int64), 1.0, call, threads=2, progress=False)
