"""Searches of a changed Index return ids, and k may be at most the number of remaining points."""

from __future__ import annotations

import numpy as np
import pytest

import tonari

LINE = np.arange(6, dtype=np.float32)[:, None]


def changed() -> tonari.Index:
    """Make an Index of points 0 to 6 on a line: 1 is removed, 6 is added later."""
    index = tonari.Index(LINE, method="exact")
    index.add(np.array([[6.0]], np.float32))
    index.remove([1])
    return index


def test_ids_are_those_that_are_left() -> None:
    found = changed().search(np.array([[0.0], [6.0]], np.float32), 3)
    assert found.indices.tolist() == [[0, 2, 3], [6, 5, 4]]
    assert found.distances.tolist() == [[0, 2, 3], [0, 1, 2]]


def test_k_counts_the_points_that_are_left() -> None:
    for rows in [0, 1]:
        index = changed()
        assert index.search(LINE[:rows], 6).indices.shape == (rows, 6)
        for given in ({}, {"where": np.ones(7, bool)}):
            with pytest.raises(ValueError, match="k=7: the largest k is 6, as there are 6 points"):
                index.search(LINE[:rows], 7, **given)


def test_rules_are_about_ids() -> None:
    index, queries = changed(), LINE[:1]
    assert index.search(queries, 2, where=np.arange(7) % 2 == 0).indices.tolist() == [[0, 2]]
    assert index.search(queries, 2, exclude=[[0, 2]]).indices.tolist() == [[3, 4]]
    with pytest.raises(ValueError, match=r"where: expected shape \(7,\) or \(1, 7\)"):
        index.search(queries, 2, where=np.ones(6, bool))


def test_another_number_of_threads_is_that_of_one_search() -> None:
    index = tonari.Index(LINE, threads=1)
    first = index.search(LINE, 2)
    again = index.search(LINE, 2, threads=3)
    assert again.indices.tolist() == first.indices.tolist()
    with pytest.raises(ValueError, match="threads=0"):
        index.search(LINE, 2, threads=0)


def test_chunks_are_checked_at_once_and_have_the_bits_of_one_search() -> None:
    index = changed()
    with pytest.raises(ValueError, match="k=7"):
        index.search_chunks(LINE, 7)
    with pytest.raises(TypeError, match="progress"):
        index.search_chunks(LINE, 1, progress="yes")
    parts = list(index.search_chunks(LINE, 2, chunk_rows=4))
    assert [len(part.indices) for part in parts] == [4, 2]
    assert np.concatenate([part.indices for part in parts]).tolist() == index.search(LINE, 2).indices.tolist()


def test_a_number_is_refused_as_queries() -> None:
    index = tonari.Index(LINE)
    with pytest.raises(ValueError, match=r"queries: expected shape \(n, d\), got \(\)"):
        index.search(np.array(3.0), 1)
