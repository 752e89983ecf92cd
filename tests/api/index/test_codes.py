"""An Index whose points stay in host memory while a device holds their codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors, gaussian
from tests.helpers.devices import needs_torch
from tonari.metrics.reference import brute

N, M, D, K = 60, 3, 12, 3
POINTS, QUERIES = gaussian(N, D), gaussian(M, D, 1)


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_answers_are_those_of_the_reference(tmp_path: Path) -> None:
    index = tonari.Index(POINTS, device="cuda", codes="int8")
    assert index.method == "exact"
    index.save(tmp_path / "points.index")
    for each in (index, tonari.Index.load(tmp_path / "points.index")):
        plan = next(iter(each._state.parts)).segment.first.plan
        assert (plan.route, plan.form_dim) == ("codes", D - 1)
        assert_same_neighbors(each.search(QUERIES, K), brute(QUERIES, POINTS, K))


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_the_path_of_a_file_and_its_map(tmp_path: Path) -> None:
    np.save(tmp_path / "points.npy", POINTS)
    truth = brute(QUERIES, POINTS, K)
    for points in (tmp_path / "points.npy", np.load(tmp_path / "points.npy", mmap_mode="r")):
        index = tonari.Index(points, device="cuda", codes="int8")
        assert isinstance(index.points, np.memmap) or not index.points.flags.owndata
        assert_same_neighbors(index.search(QUERIES, K), truth)


@pytest.mark.full  # takes ten seconds and more in the interpreter
@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
def test_a_changed_index_and_filters() -> None:
    index = tonari.Index(POINTS[:40], device="cuda", codes="int8", metric="cosine")
    index.add(POINTS[40:])
    index.remove([7])
    left = np.delete(np.arange(N), 7)
    truth = brute(QUERIES, POINTS[left], K, "cosine")
    assert_same_neighbors(index.search(QUERIES, K), truth._replace(indices=left[truth.indices].astype(np.int32)))
    mask = np.arange(N) % 2 == 0
    truth = brute(QUERIES, POINTS[::2], K, "cosine")
    found = index.search(QUERIES, K, where=mask)
    assert np.array_equal(found.indices, 2 * truth.indices)


@needs_torch
@pytest.mark.usefixtures("cpu_for_cuda")
@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"codes": "float16"}, "codes='float16': there are no such codes yet; pass 'auto', 'int8', or"),
        ({"codes": "int4"}, "codes='int4': there are no such codes yet"),
        ({"codes": "pq"}, "codes='pq': expected one of 'auto', 'float16', 'int8', 'int4'"),
        ({"metric": "inner_product"}, "there are none for metric='inner_product', only for euclidean"),
        ({"metric": "l1"}, "there are none for metric='l1'"),
        ({"route": "streamed"}, "codes='int8' and route='streamed': leave one of them out"),
        ({"method": "kdtree"}, "cannot override route"),
    ],
    ids=str,
)
def test_what_cannot_work_is_refused(choices: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tonari.Index(POINTS, **{"device": "cuda", "codes": "int8"} | choices)


def test_nothing_is_chosen_by_default() -> None:
    assert tonari.Index(POINTS, codes="auto")._overrides == {}
