"""The covering arrays of the thin suite: every pair is there, few cases are, and they are the same in every run."""

from __future__ import annotations

import itertools

import pytest

from tests.helpers.thinning import _cases, beyond_pairs, covering, markers_of


def pairs(cases: list[tuple[int, ...]]) -> set[object]:
    return {pair for case in cases for pair in itertools.combinations(enumerate(case), 2)}


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 4, 5), (9, 6, 3), (2, 3, 4, 5), (1, 1, 7), (5, 1, 5)])
def test_every_pair_is_met(sizes: tuple[int, ...]) -> None:
    cases = list(itertools.product(*map(range, sizes)))
    chosen = [cases[at] for at in covering(cases)]
    assert pairs(chosen) == pairs(cases)
    largest = sorted(sizes)[-2:]
    assert largest[0] * largest[1] <= len(chosen) <= 1.6 * largest[0] * largest[1] + 2


def test_every_value_is_met() -> None:
    cases = list(itertools.product(range(3), range(5), range(2)))
    chosen = [cases[at] for at in covering(cases, strength=1)]
    assert len(chosen) == 5
    for place, size in enumerate((3, 5, 2)):
        assert {case[place] for case in chosen} == set(range(size))


def test_pairs_that_no_case_holds_are_not_asked_for() -> None:
    cases = [case for case in itertools.product(range(4), repeat=3) if case[0] != case[1]]
    chosen = [cases[at] for at in covering(cases)]
    assert pairs(chosen) == pairs(cases)
    assert len(chosen) < len(cases)


@pytest.mark.parametrize("cases", [[], [()], [(0,), (1,)], [(0, 0), (0, 1), (1, 0)]])
def test_of_two_parameters_or_fewer_all_cases_stay(cases: list[tuple[int, ...]]) -> None:
    assert covering(cases) == list(range(len(cases)))


def test_the_same_cases_in_every_run() -> None:
    cases = list(itertools.product(range(5), range(4), range(3)))
    assert covering(cases) == covering(cases)


def test_values_are_the_same_where_they_look_the_same() -> None:
    given = [{"metric": "l1", "k": 3}, {"metric": "l1", "k": 5}, {"metric": "linf", "k": 3}]
    assert _cases(given) == [(0, 0), (1, 0), (0, 1)]


def test_metrics_with_the_kernels_of_others_are_left_out_of_the_interpreter() -> None:
    metrics = ["euclidean", "sqeuclidean", "l1", "correlation"]
    given = [{"metric": metric, "k": k} for metric in metrics for k in (1, 2)]
    assert beyond_pairs(given) == []
    # Of the others each metric and each k stays once; correlation does, since there is no cosine.
    assert beyond_pairs(given, interpreted=True) == [1, 2, 3, 4, 7]


def test_beyond_single_values_the_interpreter_leaves_cases_to_a_card() -> None:
    given = [{"a": a, "b": b, "c": c} for a in "xyz" for b in (1, 2) for c in (1, 2)]
    compiled, interpreted = (markers_of(given, interpreted=interpreted) for interpreted in (False, True))
    assert [at for at, markers in enumerate(compiled) if markers] == beyond_pairs(given)
    assert {tuple(markers) for markers in compiled} == {(), ("full",)}
    thin = [at for at, markers in enumerate(interpreted) if not markers]
    assert thin == covering(_cases(given), strength=1)
    left = [at for at, markers in enumerate(interpreted) if "exhaustive" in markers]
    assert left == [at for at in range(len(given)) if at not in thin]
    assert all(markers in ([], ["full", "exhaustive"]) for markers in interpreted)


def test_what_is_left_out_is_what_the_covering_array_lacks() -> None:
    given = [{"a": a, "b": b, "c": c} for a in "xyz" for b in (1, 2) for c in (1, 2)]
    cases = _cases(given)
    assert beyond_pairs(given) == [at for at in range(12) if at not in covering(cases)]
    assert len(beyond_pairs(given)) == 12 - 6
