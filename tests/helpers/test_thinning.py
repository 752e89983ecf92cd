"""The covering arrays of the thin suite contain every pair in few cases, and are the same in every run."""

from __future__ import annotations

import itertools

import pytest

from tests.helpers.thinning import _cases, chosen, covering, markers_of


def pairs(cases: list[tuple[int, ...]], strength: int = 2) -> set[object]:
    return {values for case in cases for values in itertools.combinations(enumerate(case), strength)}


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 4, 5), (9, 6, 3), (2, 3, 4, 5), (1, 1, 7), (5, 1, 5)])
def test_every_pair_is_met(sizes: tuple[int, ...]) -> None:
    cases = list(itertools.product(*map(range, sizes)))
    taken = [cases[at] for at in covering(cases)]
    assert pairs(taken) == pairs(cases)
    largest = sorted(sizes)[-2:]
    assert largest[0] * largest[1] <= len(taken) <= 1.6 * largest[0] * largest[1] + 2


def test_every_value_is_met() -> None:
    cases = list(itertools.product(range(3), range(5), range(2)))
    taken = [cases[at] for at in covering(cases, strength=1)]
    assert len(taken) == 5
    for place, size in enumerate((3, 5, 2)):
        assert {case[place] for case in taken} == set(range(size))


def test_pairs_that_no_case_holds_are_not_asked_for() -> None:
    cases = [case for case in itertools.product(range(4), repeat=3) if case[0] != case[1]]
    taken = [cases[at] for at in covering(cases)]
    assert pairs(taken) == pairs(cases)
    assert len(taken) < len(cases)


@pytest.mark.parametrize("cases", [[], [()], [(0,), (1,)], [(0, 0), (0, 1), (1, 0)]])
def test_of_two_parameters_or_fewer_all_cases_stay(cases: list[tuple[int, ...]]) -> None:
    assert covering(cases) == list(range(len(cases)))


def test_the_same_cases_in_every_run() -> None:
    cases = list(itertools.product(range(5), range(4), range(3)))
    assert covering(cases) == covering(cases)


def test_values_are_the_same_where_they_look_the_same() -> None:
    given = [{"metric": "l1", "k": 3}, {"metric": "l1", "k": 5}, {"metric": "linf", "k": 3}]
    assert _cases(given) == [(0, 0), (1, 0), (0, 1)]


def test_every_three_values_meet() -> None:
    cases = list(itertools.product(range(2), range(3), range(4), range(5)))
    taken = [cases[at] for at in covering(cases, strength=3)]
    assert pairs(taken, 3) == pairs(cases, 3)
    assert 3 * 4 * 5 <= len(taken) < len(cases) * 0.7


def test_metrics_with_the_kernels_of_others_are_left_out_of_the_interpreter() -> None:
    metrics = ["euclidean", "sqeuclidean", "l1", "correlation"]
    given = [{"metric": metric, "k": k} for metric in metrics for k in (1, 2)]
    assert chosen(given, 2) == set(range(8))
    # Of the others, each metric and each k occurs once; correlation does, because cosine is missing.
    assert chosen(given, 1, interpreted=True) == {0, 5, 6}


def test_beyond_pairs_and_triples() -> None:
    given = [{"a": a, "b": b, "c": c, "d": d} for a in "xyz" for b in (1, 2) for c in (1, 2) for d in (1, 2)]
    cases, markers = _cases(given), markers_of(given, interpreted=False)
    thin, all_but = covering(cases), covering(cases, strength=3)
    assert [at for at, of_case in enumerate(markers) if not of_case] == thin
    assert [at for at, of_case in enumerate(markers) if "exhaustive" not in of_case] == sorted({*thin, *all_but})
    assert {tuple(of_case) for of_case in markers} == {(), ("full",), ("full", "exhaustive")}


def test_beyond_single_values_the_interpreter_leaves_cases_to_a_card() -> None:
    given = [{"a": a, "b": b, "c": c} for a in "xyz" for b in (1, 2) for c in (1, 2)]
    markers = markers_of(given, interpreted=True)
    thin = covering(_cases(given), strength=1)
    assert [at for at, of_case in enumerate(markers) if not of_case] == thin
    assert {tuple(of_case) for of_case in markers} == {(), ("full", "exhaustive")}
    assert {tuple(of_case) for of_case in markers_of(given, interpreted=False)} == {(), ("full",)}
