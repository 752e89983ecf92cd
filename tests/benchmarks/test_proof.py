"""The proof before timing accepts right answers and refuses wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.harness.proof import WrongAnswer, check_rows, own_places, without_self

torch = pytest.importorskip("torch", reason="proofs on devices are in torch")

import tonari  # noqa: E402
from benchmarks.harness.datasets import hard as data  # noqa: E402
from benchmarks.harness.proof import graph as graphs  # noqa: E402
from benchmarks.harness.proof import neighbors as proofs  # noqa: E402
from benchmarks.harness.proof import selection as selections  # noqa: E402
from tonari.metrics import reference  # noqa: E402
from tonari.metrics.reference import brute, returned, values_at  # noqa: E402

Selected = tuple[Any, Any]


# --- rows, of NumPy and of torch alike -------------------------------------------------------------------------------


both = pytest.mark.parametrize("library", ["numpy", "torch"])


def arrays(library: str, *parts: Any) -> list[Any]:
    return [np.asarray(part) if library == "numpy" else torch.as_tensor(np.asarray(part)) for part in parts]


@both
def test_equal_distances_must_come_by_index(library: str) -> None:
    check_rows(*arrays(library, [[0.0, 0.0]], [[1, 5]]), 1, 9, 2)
    with pytest.raises(WrongAnswer, match="row 0 is out of order"):
        check_rows(*arrays(library, [[0.0, 0.0]], [[5, 1]]), 1, 9, 2)


@both
def test_larger_is_better_where_it_is_said(library: str) -> None:
    rising, falling = arrays(library, [[1.0, 2.0]], [[2.0, 1.0]])
    (ids,) = arrays(library, [[1, 5]])
    check_rows(falling, ids, 1, 9, 2, descending=True)
    check_rows(rising, ids, 1, 9, 2)
    for values, descending in ((rising, True), (falling, False)):
        with pytest.raises(WrongAnswer, match="row 0 is out of order"):
            check_rows(values, ids, 1, 9, 2, descending=descending)


@both
def test_a_graph_must_not_hold_self(library: str) -> None:
    found = arrays(library, [[0.0, 1.0], [0.0, 1.0]], [[1, 2], [1, 2]])
    check_rows(*found, 2, 3, 2)
    with pytest.raises(WrongAnswer, match="row 1 holds itself"):
        check_rows(*found, 2, 3, 2, graph=True)


@both
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_distance_has_to_be_a_number(library: str, value: float) -> None:
    with pytest.raises(WrongAnswer, match="row 0 has a distance that is no number"):
        check_rows(*arrays(library, [[0.0, value]], [[1, 2]]), 1, 3, 2)


@both
def test_faults_are_told_with_their_row_in_later_blocks_too(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.harness.proof.rows.CHECKED_VALUES", 6)
    values, ids = np.tile([0.0, 1.0], (9, 1)), np.tile([10, 11], (9, 1))
    ids[7] = [10, 12]
    with pytest.raises(WrongAnswer, match="row 7 names a point that does not exist"):
        check_rows(*arrays(library, values, ids), 9, 12, 2)


@both
def test_own_entries_go_once_and_else_the_last(library: str) -> None:
    (found,) = arrays(library, [[0, 5, 6], [4, 1, 7], [8, 9, 3], [3, 3, 1]])
    assert without_self(found).tolist() == [[5, 6], [4, 7], [8, 9], [3, 1]]
    (found, rows) = arrays(library, [[4, 7, 2], [7, 1, 3], [5, 6, 0]], [4, 1, 9])
    assert without_self(found, rows).tolist() == [[7, 2], [7, 3], [5, 6]]
    assert own_places(found, rows).sum() == 3


# --- exact neighbours ------------------------------------------------------------------------------------------------


def a_proof(*, graph: bool = False, k: int = 6) -> tuple[Any, Any]:
    """Make a proof over points with ties, and the right answer."""
    points = data.make("copies 16", 320, 0, 7, "cpu").points
    queries = points if graph else data.make("gaussian", 40, 0, 7, "cpu").points
    own = np.arange(len(queries)) if graph else None
    right = brute(queries.numpy(), points.numpy(), k, self_ids=own)
    return proofs.Proof(queries, points, k, "cpu", graph=graph), proofs.as_answer(right, "cpu")


@pytest.mark.parametrize("d", [1, 15, 16, 17, 40, 130])
@pytest.mark.parametrize("kind", ["gaussian", "copies 16", "offset 1e6"])
def test_truth_has_the_bits_of_the_reference(kind: str, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proofs, "PAIRS", 12 * 60)  # several slabs, the last one short
    points, queries = data.make(kind, 320, 12, d, "cpu")
    own = np.arange(0, 320, 27)
    for asked, ids in ((queries, None), (points[torch.from_numpy(own)], own)):
        expected = brute(asked.numpy(), points.numpy(), 70, self_ids=ids)
        found = proofs.truth(asked, points, 70, "cpu", own=None if ids is None else torch.from_numpy(ids))
        for ours, true in zip(found, expected, strict=True):
            np.testing.assert_array_equal(ours.numpy(), true)
            assert ours.numpy().dtype == true.dtype


def test_the_proof_is_checked_before_it_is_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs.self_check(reference, "cpu")
    monkeypatch.setattr(proofs, "lane_sum", lambda term, d: sum(term(i) for i in range(d)))
    with pytest.raises(WrongAnswer, match="the proof itself differs"):
        proofs.self_check(reference, "cpu")


@pytest.mark.parametrize(("m", "expected"), [(1, 1), (200, 200), (256, 256), (300, 200), (20_000, 256), (10**6, 256)])
def test_enough_rows_are_proved_everywhere_and_at_the_front(m: int, expected: int) -> None:
    chosen = proofs.sample_rows(m)
    assert expected <= len(chosen) <= 256
    assert (np.diff(chosen) > 0).all()
    assert chosen[0] >= 0
    assert chosen[-1] < m
    if m >= 20_000:
        assert (chosen < proofs.FIRST_ROWS).sum() >= 128
        assert (chosen > m // 2).sum() >= 40


@pytest.mark.parametrize("graph", [False, True])
def test_a_right_answer_passes(graph: bool) -> None:
    proof, right = a_proof(graph=graph)
    assert proof.check(right, 6) == len(proof.rows)
    narrow = proofs.Answer(right.distances[:, :4], right.indices[:, :4])
    assert proof.check(narrow, 4) == len(proof.rows)
    assert proof.recall(right.indices, 6) == (1.0, len(proof.rows))


def last_neighbour(answer: Any) -> None:
    answer.indices[3, -1] = (answer.indices[3, -1] + 1) % 320


def one_ulp(answer: Any) -> None:
    answer.distances[3, -1] = torch.nextafter(answer.distances[3, -1], torch.tensor(torch.inf))


def swapped(answer: Any) -> None:
    answer.indices[3, :2] = answer.indices[3, :2].flip(0)
    answer.distances[3, :2] = answer.distances[3, :2].flip(0)


def repeated(answer: Any) -> None:
    answer.indices[3, 1] = answer.indices[3, 0]
    answer.distances[3, 1] = answer.distances[3, 0]


def outside(answer: Any) -> None:
    answer.indices[3, 2] = 320


def missing(answer: Any) -> None:
    answer.indices[3, -1] = -1


def no_number(answer: Any) -> None:
    answer.distances[3, -1] = torch.nan


WRONGS: dict[Callable[[Any], None], str] = {
    last_neighbour: "index 5 of row 3|row 3 (is out of order|holds a point twice)",
    one_ulp: "distance 5 of row 3",
    swapped: "row 3 is out of order",
    repeated: "row 3 (is out of order|holds a point twice)",
    outside: "row 3 names a point that does not exist",
    missing: "row 3 names a point that does not exist",
    no_number: "row 3 has a distance that is no number",
}


@pytest.mark.parametrize("wrong", WRONGS, ids=lambda wrong: wrong.__name__)
def test_a_wrong_answer_does_not_pass(wrong: Callable[[Any], None]) -> None:
    proof, answer = a_proof()
    wrong(answer)
    with pytest.raises(WrongAnswer, match=WRONGS[wrong]):
        proof.check(answer, 6)


def test_of_a_tie_only_the_smaller_index_passes() -> None:
    proof, answer = a_proof(graph=True)
    points = proof.points
    row = next(
        row for row in range(320) if (points == points[row]).all(dim=1).sum() > 7 and answer.distances[row, -1] == 0
    )
    copies = (points == points[row]).all(dim=1).nonzero()[:, 0]
    others = copies[copies != row].to(torch.int32)
    assert torch.equal(answer.indices[row], others[:6])
    proof.rows = np.array([row])
    proof.distances, proof.indices = answer.distances[row : row + 1].clone(), answer.indices[row : row + 1].clone()
    answer.indices[row] = others[1:7]
    with pytest.raises(WrongAnswer, match=f"index 0 of row {row}"):
        proof.check(answer, 6)


def test_rows_that_are_not_proved_have_to_be_in_order_too() -> None:
    proof, answer = a_proof(graph=True)
    row = next(row for row in range(320) if row not in proof.rows)
    answer.indices[row, 0] = row
    answer.distances[row, 0] = 0
    with pytest.raises(WrongAnswer, match=f"row {row} (holds itself|is out of order)"):
        proof.check(answer, 6)


def test_other_shapes_and_types_do_not_pass() -> None:
    proof, (distances, indices) = a_proof()
    for answer, message in (
        ((distances[:-1], indices[:-1]), "shapes"),
        ((distances.double(), indices), "types torch.float64"),
        ((distances, indices.long()), "types torch.float32 and torch.int64"),
    ):
        with pytest.raises(WrongAnswer, match=message):
            proof.check(proofs.Answer(*answer), 6)
    with pytest.raises(WrongAnswer, match="expected \\(40, 5\\)"):
        proof.check(proofs.Answer(distances, indices), 5)


def test_recall_counts_by_distance_and_every_point_once() -> None:
    proof, answer = a_proof()
    ids = answer.indices.long()
    assert proof.recall(ids.flip(1), 6) == (1.0, 40)
    worst = torch.cdist(proof.queries[:1].double(), proof.points.double()).argmax()
    for entry in (worst, ids[0, 1], torch.tensor(-1), torch.tensor(320)):
        changed = ids.clone()
        changed[0, 0] = entry
        assert proof.recall(changed, 6) == ((40 * 6 - 1) / (40 * 6), 40)
    assert proof.recall(ids[:10], 6) == (1.0, 10)
    # Any copy of the farthest neighbour is as good.
    copies = (proof.points == proof.points[ids[0, -1]]).all(dim=1).nonzero()[:, 0]
    changed = ids.clone()
    changed[0, -1] = next(copy for copy in copies.flip(0) if copy not in ids[0])
    assert proof.recall(changed, 6) == (1.0, 40)


def test_recall_does_not_depend_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    proof, answer = a_proof(graph=True)
    changed = answer.indices.clone()
    changed[::2, 0] = -1
    whole = proof.recall(changed, 6)
    monkeypatch.setattr(proofs, "PAIRS", 6 * 7 * 5)
    assert proof.recall(changed, 6) == whole
    assert 0.8 < whole[0] < 1


# --- approximate graphs ----------------------------------------------------------------------------------------------


def test_recall_is_that_of_the_first_ids_by_distance() -> None:
    points = torch.rand((80, 5), generator=torch.Generator().manual_seed(2))
    points[40:] = points[:40]  # ties: any of several will do
    truth = graphs.GraphTruth(tonari, points, 6, 30, lambda rows: rows.numpy(), {})
    own = truth.rows
    true = brute(points.numpy()[own], points.numpy(), 6, self_ids=own)
    np.testing.assert_array_equal(truth.nearest.indices, true.indices)
    ids = true.indices.astype(np.int64)
    assert truth.recall(ids, 6).by_distance == 1.0
    lost = ids.copy()
    lost[:, 0] = -1
    assert truth.recall(lost, 6).by_distance == pytest.approx(5 / 6)
    assert truth.recall(lost[:, 1:], 5).by_distance < 1.0
    again = ids.copy()
    again[:, 5] = again[:, 0]
    assert truth.recall(again, 6).by_distance == pytest.approx(5 / 6)
    np.testing.assert_array_equal(
        truth.values_of(ids), returned(values_at(points.numpy()[own], points.numpy(), ids), np.float32)
    )


@pytest.mark.parametrize(
    ("ids", "expected"),
    [([[3, 1, 3, 3]], [[3, 1, -1, -1]]), ([[-1, 2, -1]], [[-1, 2, -1]]), ([[5, 5], [4, 5]], [[5, -1], [4, 5]])],
)
def test_what_is_named_twice_counts_once(ids: Any, expected: Any) -> None:
    np.testing.assert_array_equal(graphs.once(np.array(ids)), expected)


# --- selections ------------------------------------------------------------------------------------------------------


def stable(values: Any, k: int, counters: Any = None, **_: Any) -> Selected:
    """Select by a stable sort, for NumPy and torch."""
    lines = torch.as_tensor(values)
    order = torch.sort(lines, dim=1, stable=True)
    found = order.values[:, :k], order.indices[:, :k].to(torch.int32)
    if counters is not None:
        counters.updates = np.full(k, 2 * len(lines))
        counters.merges, counters.lanes, counters.compression_ratio, counters.threshold_ratio = 3, 16, 8.0, 0.5
    return found if torch.is_tensor(values) else (found[0].numpy(), found[1].numpy())


def test_smallest_is_the_beginning_of_a_stable_sort() -> None:
    rng = np.random.default_rng(2)
    for row in (rng.standard_normal(200), rng.integers(0, 3, 200), np.zeros(200), np.array([0.0, -0.0, np.inf, -1.0])):
        for k in (1, 3, len(row)):
            np.testing.assert_array_equal(selections.smallest(row, k), np.argsort(row, kind="stable")[:k])


def swapped(values: Any, indices: Any) -> Selected:
    values, indices = values.copy(), indices.copy()
    values[-1, [0, 1]], indices[-1, [0, 1]] = values[-1, [1, 0]], indices[-1, [1, 0]]
    return values, indices


def next_best(tensor: np.ndarray) -> Callable[[Any, Any], Selected]:
    """Return an answer whose last row lacks its smallest value but is otherwise consistent."""

    def spoil(values: Any, indices: Any) -> Selected:
        order = np.argsort(tensor[-1], kind="stable")[1:5]
        return np.vstack([values[:-1], tensor[-1:, order]]), np.vstack([indices[:-1], order[None].astype(np.int32)])

    return spoil


def other_tie(values: Any, indices: Any) -> Selected:
    """Replace columns 0 to 3 of row 0, which is all ones, by columns 1 to 4."""
    return values, indices + (np.arange(len(indices)) == 0)[:, None].astype(np.int32)


ROWS = np.random.default_rng(3).standard_normal((9, 40)).astype(np.float32)
ROWS[0] = 1

SPOILT: dict[str, tuple[Callable[[Any, Any], Selected], str]] = {
    "a row lost": (lambda v, i: (v[:-1], i[:-1]), "shapes .8, 4. and .8, 4., expected .9, 4."),
    "short": (lambda v, i: (v[:, :3], i[:, :3]), "expected .9, 4."),
    "wide indices": (lambda v, i: (v, i.astype(np.int64)), "types torch.float32 and torch.int64"),
    "wide values": (lambda v, i: (v.astype(np.float64), i), "types torch.float64"),
    "no such column": (lambda v, i: (v, np.where(np.arange(4) == 3, 40, i).astype(np.int32)), "outside 0 to 39"),
    "other values": (lambda v, i: (np.nextafter(v, np.float32(9)), i), "row 0 holds values of other columns"),
    "swapped": (swapped, "row 8 is out of order"),
    "not the smallest": (next_best(ROWS), "values of row 8 differ at place 0"),
    "another tie": (other_tie, "indices of row 0 differ at place 0: 1, a stable sort has 0"),
}


@pytest.mark.parametrize("fault", SPOILT)
def test_a_wrong_answer_fails_its_proof(fault: str) -> None:
    spoil, message = SPOILT[fault]
    known = selections.Proof(torch.from_numpy(ROWS), 4)
    values, indices = stable(ROWS, 4)
    assert known.check((values, indices)) == 4
    with pytest.raises(WrongAnswer, match=message):
        known.check(spoil(values, indices))


def test_a_narrowed_proof_is_that_of_the_smaller_k() -> None:
    wide, narrow = selections.Proof(torch.from_numpy(ROWS), 7), selections.Proof(torch.from_numpy(ROWS), 4)
    np.testing.assert_array_equal(wide.narrowed(4).indices, narrow.indices)
    assert wide.narrowed(4).check(stable(ROWS, 4)) == 4
    assert wide.check(stable(ROWS, 7)) == 4
    with pytest.raises(WrongAnswer, match=r"expected .9, 4."):
        wide.narrowed(4).check(stable(ROWS, 7))


def test_bfloat16_is_proved_by_value() -> None:
    rows = torch.from_numpy(ROWS).bfloat16()
    assert selections.Proof(rows, 7).check(stable(rows, 7)) == 4


# --- selections of both orders, in all rows ---------------------------------------------------------------------------


def changed(part: Any, row: int, column: int, value: float) -> Any:
    part = part.clone()
    part[row, column] = value
    return part


def other_set(values: Any, indices: Any) -> Any:
    """Replace the tied columns of row 0, which is all ones, by others."""
    return values, changed(indices, 0, 3, 4)


def keep(values: Any, indices: Any) -> Any:
    return values, indices


def turned(values: Any, indices: Any) -> Any:
    return values.flip(1), indices.flip(1)


# Answers in order and in any order, spoilt, and the message for each.
WRONG: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any], str]] = {
    "short": (lambda v, i: (v[:, :3], i), keep, r"shape \(9, 3\), expected \(9, 4\)"),
    "few": (keep, lambda v, i: (v, i[:8]), r"shape \(8, 4\), expected \(9, 4\)"),
    "column": (lambda v, i: (v, changed(i, 7, 3, 40)), keep, "row 7 has an index out of range"),
    "loose column": (keep, lambda v, i: (v, changed(i, 8, 0, -1)), "row 8 has an index out of range"),
    "value": (lambda v, i: (changed(v, 6, 3, 9.0), i), keep, "row 6 holds values of other columns"),
    "order": (turned, keep, "row 0 is out of order"),
    "tie": (other_set, other_set, "row 0 does not have the smallest"),
    "twice": (keep, lambda v, i: (v[:, [0, 0, 1, 2]], i[:, [0, 0, 1, 2]]), "row 0 in any order has other columns"),
    "loose value": (keep, lambda v, i: (changed(v, 5, 1, 9.0), i), "row 5 in any order holds values of other"),
    "loose tie": (keep, other_set, "row 0 in any order has other columns"),
}


@pytest.mark.parametrize("fault", WRONG)
@pytest.mark.parametrize("block", [2**27, 80])
def test_a_wrong_answer_of_either_order_is_told(fault: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "PROVED_VALUES", block)  # all rows, or two at a time
    spoil, spoil_loose, message = WRONG[fault]
    rows = torch.from_numpy(ROWS)
    found = stable(rows, 4)
    assert selections.prove_both(rows, 4, found, turned(*found)) == 9
    with pytest.raises(WrongAnswer, match=message):
        selections.prove_both(rows, 4, spoil(*found), spoil_loose(*found))


def test_the_next_best_are_not_the_smallest() -> None:
    rows = torch.from_numpy(ROWS)
    spoilt = tuple(map(torch.from_numpy, next_best(ROWS)(*stable(ROWS, 4))))
    with pytest.raises(WrongAnswer, match="row 8 does not have the smallest"):
        selections.prove_both(rows, 4, spoilt, spoilt)
