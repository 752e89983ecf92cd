"""`tonari.compat.sentence_transformers` compared with its definitions in NumPy and, if installed, with the original."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, consumers
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda
from tests.helpers.refusals import assert_refused_by_name
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.compat import sentence_transformers as compat

pytestmark = needs_torch
everywhere = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])

METRICS = {"cos_sim": "cosine", "dot_score": "inner_product", "euclidean_sim": "euclidean", "manhattan_sim": "l1"}
NAMES = ("gaussian", "duplicates", "one_hot", "zero_rows")


def scores_of(distances: Any, function: str) -> Any:
    values = distances.astype(np.float64)
    return {"cos_sim": 1 - values, "dot_score": values}.get(function, -values)


def clustered(n: int = 90, d: int = 16) -> Any:
    """Make embeddings in three directions of unequal weight, and some in none of them."""
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((3, d))
    rows = centres[rng.choice(3, n, p=(0.6, 0.3, 0.1))] + 0.3 * rng.standard_normal((n, d))
    rows[::9] = rng.standard_normal((n // 9, d))
    return rows.astype(np.float32)


@everywhere
@pytest.mark.parametrize("function", METRICS)
@pytest.mark.parametrize("top_k", [1, 10, 40])
@pytest.mark.parametrize("name", NAMES)
def test_a_search_finds_the_highest_scores(name: str, top_k: int, function: str, device: str) -> None:
    corpus, queries = checks.HOSTILE[name](30, 6, 0), checks.HOSTILE[name](7, 6, 1)
    truth = brute(queries, corpus, min(top_k, 30), METRICS[function])
    made = [torch.from_numpy(part).to(device) for part in (queries, corpus)]
    found = compat.semantic_search(*made, top_k=top_k, score_function=function)
    assert [[hit["corpus_id"] for hit in row] for row in found] == truth.indices.tolist()
    assert [[hit["score"] for hit in row] for row in found] == scores_of(truth.distances, function).tolist()
    assert {(type(hit["corpus_id"]), type(hit["score"])) for row in found for hit in row} == {(int, float)}


@everywhere
@pytest.mark.parametrize("function", METRICS)
@pytest.mark.parametrize("top_k", [1, 3, 100])
@pytest.mark.parametrize("max_pairs", [1, 20, 10_000])
@pytest.mark.parametrize("name", NAMES)
def test_mining_finds_the_best_pairs(name: str, max_pairs: int, top_k: int, function: str, device: str) -> None:
    rows = checks.HOSTILE[name](24, 6, 0)
    truth = brute(rows, rows, 24, METRICS[function])
    scores, pairs = scores_of(truth.distances, function), {}
    for i in range(24):
        others = [(j, score) for j, score in zip(truth.indices[i], scores[i], strict=True) if i != j]
        pairs |= {(min(i, int(j)), max(i, int(j))): float(score) for j, score in others[:top_k]}
    expected = [[score, i, j] for (i, j), score in sorted(pairs.items(), key=lambda each: (-each[1], each[0]))]
    options: dict[str, Any] = {"max_pairs": max_pairs, "top_k": top_k, "score_function": function}
    found = compat.paraphrase_mining_embeddings(torch.from_numpy(rows).to(device), **options)
    assert found == expected[:max_pairs]
    assert {tuple(map(type, each)) for each in found} == {(float, int, int)}


def communities_by_definition(rows: Any, threshold: float, least: int) -> list[list[int]]:
    truth = brute(rows, rows, len(rows), "cosine")
    near = [
        ids[distances.astype(np.float64) <= 1 - threshold].tolist()
        for distances, ids in zip(truth.distances, truth.indices, strict=True)
    ]
    taken: set[int] = set()
    found = []
    for centre in sorted((i for i in range(len(rows)) if len(near[i]) >= least), key=lambda i: -len(near[i])):
        free = [i for i in near[centre] if i not in taken]
        if centre not in taken and len(free) >= least:
            found.append([centre, *(i for i in free if i != centre)])
            taken |= set(found[-1])
    return sorted(found, key=lambda each: -len(each))


@everywhere
@pytest.mark.parametrize("least", [1, 3, 10, 91])
@pytest.mark.parametrize("threshold", [-1.0, 0.3, 0.75, 0.9, 2.0])
def test_communities_are_those_of_the_definition(threshold: float, least: int, device: str) -> None:
    rows = clustered()
    found = compat.community_detection(torch.from_numpy(rows).to(device), threshold, least)
    assert found == communities_by_definition(rows, threshold, least)
    assert all(type(i) is int for each in found for i in each)
    if (threshold, least) == (0.75, 3):
        assert len(found) > 2
        assert len({i for each in found for i in each}) == sum(map(len, found))


def test_communities_of_copies_have_their_first_row_as_the_centre() -> None:
    rows = np.eye(3, dtype=np.float32)[[2, 0, 0, 1, 1, 1, 0, 1]]
    assert compat.community_detection(rows, 0.99, 2) == [[3, 4, 5, 7], [1, 2, 6]]


def test_a_community_that_lost_members_comes_after_larger_ones() -> None:
    """The second proposal has five members, and loses three of them to the first; the third keeps its four."""
    degrees = np.array([0, 2, 4, 6, 8, -9, -8, -7, 12, 13, 100, 101, 102, 103], np.float64)
    rows = np.stack([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], axis=1)
    near = np.cos(np.radians(9.9))
    found = compat.community_detection(rows, near, 2)
    assert [len(each) for each in found] == [8, 4, 2]
    assert found == communities_by_definition(rows, near, 2)


def test_embeddings_come_in_every_form() -> None:
    rows = clustered(12)
    expected = compat.semantic_search(rows, rows, top_k=3)
    tensor = torch.from_numpy(rows)
    for form in (tensor, list(tensor), list(rows), tensor.clone().requires_grad_()):
        assert compat.semantic_search(form, rows, top_k=3) == expected
        assert compat.semantic_search(rows, form, top_k=3) == expected
        assert compat.paraphrase_mining_embeddings(form, top_k=2) == compat.paraphrase_mining_embeddings(rows, top_k=2)
        assert compat.community_detection(form, 0.5, 2) == compat.community_detection(rows, 0.5, 2)
    assert compat.semantic_search(tensor[3], rows, top_k=3) == expected[3:4]
    for sizes in ({"query_chunk_size": 1}, {"corpus_chunk_size": 5}):
        assert compat.semantic_search(rows, rows, top_k=3, **sizes) == expected


def test_nothing_finds_nothing() -> None:
    none, one = torch.empty(0, 4), torch.ones(1, 4)
    assert compat.semantic_search(none, one) == []
    assert compat.semantic_search(one, none) == [[]]
    assert compat.paraphrase_mining_embeddings(none) == compat.paraphrase_mining_embeddings(one) == []
    assert compat.community_detection(none) == compat.community_detection(one) == []
    assert compat.community_detection([], min_community_size=1) == []


ROWS = (None, 5, "abc", [[1.0], [1.0, 2.0]], np.ones((2, 2, 2)), np.ones((4, 3), complex), np.full((4, 3), np.nan))
COUNT = (0, -1, 2.5, None, True)
SCORES = (None, "cosine", len, lambda a, b: a @ b.T)
GOOD = checks.gaussian(20, 3)
BAD: dict[str, tuple[Any, ...]] = {
    "query_chunk_size": COUNT,
    "corpus_chunk_size": COUNT,
    "batch_size": COUNT,
    "top_k": COUNT,
    "max_pairs": COUNT,
    "min_community_size": COUNT,
    "score_function": SCORES,
    "threshold": (math.nan, math.inf, None, "1", True),
    "show_progress_bar": (1, None),
    "embeddings": ROWS,
    "query_embeddings": (*ROWS, GOOD[:, :2]),
    "corpus_embeddings": (*ROWS, GOOD[:, :2]),
}
SIZES = ("query_chunk_size", "corpus_chunk_size")
ARGUMENTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "semantic_search": (("query_embeddings", "corpus_embeddings"), (*SIZES, "top_k", "score_function")),
    "paraphrase_mining_embeddings": (("embeddings",), (*SIZES, "max_pairs", "top_k", "score_function")),
    "community_detection": (("embeddings",), ("threshold", "min_community_size", "batch_size", "show_progress_bar")),
}


@pytest.mark.parametrize(
    ("call", "name"), [(call, name) for call, (rows, others) in ARGUMENTS.items() for name in (*rows, *others)]
)
def test_no_argument_is_ignored_or_fails_in_raw_words(call: str, name: str) -> None:
    function: Callable[..., Any] = getattr(compat, call)
    good = dict.fromkeys(ARGUMENTS[call][0], GOOD)
    assert_refused_by_name(function, good, name, BAD[name])


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore")
def test_sentence_transformers_gives_the_same() -> None:
    original = consumers.consumer("sentence_transformers.util")
    rows = torch.from_numpy(clustered())
    for name in METRICS:
        function = getattr(original, name)
        theirs = original.semantic_search(rows[:9], rows, top_k=7, score_function=function)
        for given in (function, name):
            ours = compat.semantic_search(rows[:9], rows, top_k=7, score_function=given)
            assert [[hit["corpus_id"] for hit in row] for row in ours] == [
                [hit["corpus_id"] for hit in row] for row in theirs
            ]
        np.testing.assert_allclose(
            [[hit["score"] for hit in row] for row in ours],
            [[hit["score"] for hit in row] for row in theirs],
            atol=2e-3,
        )
        options: dict[str, Any] = {"max_pairs": 100, "top_k": 5, "score_function": function}
        mine, other = (each.paraphrase_mining_embeddings(rows, **options) for each in (compat, original))
        if name != "dot_score":  # the original may count a score for only one point of a pair
            assert [each[1:] for each in mine] == [each[1:] for each in other]
        np.testing.assert_allclose([each[0] for each in mine], [each[0] for each in other], atol=2e-3)
    for threshold in (0.3, 0.75, 0.9):
        for least in (1, 3, 10):
            ours, theirs = (each.community_detection(rows, threshold, least) for each in (compat, original))
            assert [each[0] for each in ours] == [each[0] for each in theirs]
            assert [set(each) for each in ours] == [set(each) for each in theirs]
    assert compat.semantic_search(rows[:2], rows) == compat.semantic_search(
        rows[:2], rows, score_function=original.pytorch_cos_sim
    )
