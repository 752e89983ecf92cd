"""What the benchmarks of the exact engine on GPUs prove before they time: right answers pass, wrong ones do not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the benchmarks on GPUs make their data with torch")

from tonari.exact.cuda.groups import LEAST_GROUP, LISTED, POINT_TILE, group_count, members  # noqa: E402
from tonari.metrics import reference  # noqa: E402
from tonari.metrics.reference import brute  # noqa: E402

# The benchmarks are no part of the installed package: they are found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
bounds, data, proofs = (importlib.import_module(f"benchmarks.exact_gpu_{name}") for name in ("bounds", "data", "proof"))
datasets = importlib.import_module("benchmarks.datasets")
WrongAnswer = importlib.import_module("benchmarks.exact_cpu").WrongAnswer


def a_proof(*, graph: bool = False, k: int = 6) -> tuple[Any, Any]:
    """A proof over points with ties, and the right answer."""
    points = data.make("copies 16", 320, 0, 7, "cpu").points
    queries = points if graph else data.make("gaussian", 40, 0, 7, "cpu").points
    own = np.arange(len(queries)) if graph else None
    right = brute(queries.numpy(), points.numpy(), k, self_ids=own)
    return proofs.Proof(queries, points, k, "cpu", graph=graph), proofs.as_answer(right, "cpu")


# --- data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in data.KINDS if kind != "sift"])
def test_data_have_their_shape_and_come_twice_the_same(kind: str) -> None:
    first, second = (data.make(kind, 300, 20, 9, "cpu") for _ in range(2))
    assert tuple(first.points.shape) == (300, 9)
    assert tuple(first.queries.shape) == (20, 9)
    assert first.points.dtype == torch.float32
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(first.points[:20], first.queries)
    assert data.make(kind, 300, 0, 9, "cpu").queries is None


def test_data_do_not_depend_on_where_they_are_kept_and_barely_on_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = data.make("tight", 300, 0, 9, "cpu").points
    assert torch.equal(whole, data.make("tight", 300, 0, 9, "cpu", host=True).points)
    monkeypatch.setattr(data, "BLOCK", 9 * 64)
    assert data.make("tight", 300, 0, 9, "cpu").points.shape == whole.shape


def test_hard_data_are_what_their_names_say() -> None:
    far = data.make("offset 1e6", 2000, 0, 4, "cpu").points.double()
    assert abs(far.mean() - 1e6) < 1
    assert torch.equal(far, (far * 16).round() / 16)
    assert len(data.make("copies", 5000, 0, 4, "cpu").points.unique(dim=0)) == data.DISTINCT
    assert 150 < len(data.make("copies 16", 3200, 0, 4, "cpu").points.unique(dim=0)) <= 200
    tight = data.make("tight", 500, 0, 16, "cpu").points.double()
    apart = torch.cdist(tight, tight)
    same = apart < 100
    assert len(same.unique(dim=0)) == 20
    assert apart[~same].min() > 1e4


def test_real_descriptors_are_those_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    descriptors = np.random.default_rng(1).integers(0, 256, (30, 128), dtype=np.uint8)
    datasets.write_bvecs(tmp_path / "rows.bvecs", descriptors)
    monkeypatch.setenv("TONARI_SIFT", str(tmp_path / "rows.bvecs"))
    points, queries = data.make("sift", 20, 10, 128, "cpu")
    assert points.dtype == torch.float32
    np.testing.assert_array_equal(points.numpy(), descriptors[:20])
    np.testing.assert_array_equal(queries.numpy(), descriptors[20:])
    with pytest.raises(ValueError, match="128 dimensions, not 64"):
        data.make("sift", 20, 0, 64, "cpu")
    with pytest.raises(ValueError, match="got 'gauss'"):
        data.make("gauss", 20, 0, 64, "cpu")


# --- the proof ---------------------------------------------------------------------------------------------------


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


# --- the screen --------------------------------------------------------------------------------------------------


def a_screen(group: int = 16) -> tuple[Any, Any]:
    """Minima of a screen of float16 rows, in float64, with errors as measured; and what their check asks for."""
    points, queries = data.make("gaussian", 300, 9, 12, "cpu")
    form = SimpleNamespace(centre=points.double().mean(dim=0), scale=torch.tensor([16.0], dtype=torch.float64))
    x, q = ((rows.double() - form.centre) * form.scale for rows in (points, queries))
    low_x, low_q = x.half().double(), q.half().double()
    tiles = -(-300 // POINT_TILE)

    def largest(values: Any) -> Any:
        padded = torch.zeros(tiles * POINT_TILE, dtype=torch.float64)
        padded[:300] = values
        return padded.view(tiles, POINT_TILE).amax(dim=1)

    packed_points = SimpleNamespace(e1=largest(2 * (x - low_x).norm(dim=1)), e2=largest(2 * low_x.norm(dim=1)))
    packed_queries = SimpleNamespace(norm=q.norm(dim=1), rest=(q - low_q).norm(dim=1))
    scores = torch.full((9, tiles * POINT_TILE), torch.inf, dtype=torch.float64)
    scores[:, :300] = (x * x).sum(dim=1) - 2 * low_q @ low_x.T
    bound = packed_queries.norm[:, None] * packed_points.e1 + packed_queries.rest[:, None] * packed_points.e2
    columns = torch.from_numpy(members(np.arange(group_count(300, group)), group))
    minima = scores[:, columns].amin(dim=2) - bound.repeat_interleave(POINT_TILE // group, dim=1)
    rows = data.DeviceData(points, queries)
    return minima.float(), bounds.Packed(rows, packed_queries, packed_points, form, group)


def check_minima(minima: Any, packed: Any) -> int:
    rows = bounds.proved_rows(len(minima))
    checked: int = bounds.check_bounds(minima, torch.ones_like(minima, dtype=torch.bool), rows, packed)
    return checked


@pytest.mark.parametrize("group", [8, 16, 32])
def test_a_right_screen_passes_in_blocks_too(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_minima(*a_screen(group)) == 9
    monkeypatch.setattr(bounds, "BLOCK", 12 * POINT_TILE)
    assert check_minima(*a_screen(group)) == 9


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda minimum: minimum + 12, "group 5 for query 4 is above a member's score"),
        (lambda minimum: minimum - 40, "group 5 for query 4 is below what the bound allows"),
        (lambda minimum: torch.nan, "group 5 for query 4 is above a member's score"),
    ],
)
def test_a_wrong_minimum_does_not_pass(change: Callable[[Any], Any], message: str) -> None:
    minima, packed = a_screen()
    minima[4, 5] = change(minima[4, 5])
    with pytest.raises(WrongAnswer, match=message):
        check_minima(minima, packed)


def some_lists() -> tuple[Any, Any, Any]:
    """The six lowest groups of each row, in no order, with holes; thresholds that let just these pass; the rest."""
    minima, packed = a_screen(LISTED)
    parts, _ = a_screen(LEAST_GROUP)
    lowest = minima.topk(6, dim=1, largest=False)
    thresholds = lowest.values[:, -1].clone()
    numbers = (lowest.indices // 4 * 16 + lowest.indices % 4)[:, :, None] + 4 * torch.arange(4)
    below = torch.stack([parts[row][numbers[row]] <= thresholds[row] for row in range(len(minima))])
    masks = (below.int() << torch.arange(4)).sum(dim=2)
    places = torch.randperm(9, generator=torch.Generator().manual_seed(0))[:6]
    values = torch.full((len(minima), 9), torch.inf)
    entries = torch.full((len(minima), 9), -7, dtype=torch.int32)
    values[:, places], entries[:, places] = lowest.values, (lowest.indices * 16 + masks).int()
    return SimpleNamespace(values=values, entries=entries, counts=torch.full((9, 3), 3), room=3), thresholds, packed


def test_right_lists_pass() -> None:
    lists, thresholds, packed = some_lists()
    rows = bounds.proved_rows(9)
    assert len(rows) == 9
    assert bounds.check_lists(lists, thresholds, rows, packed) == 9
    lists.counts[2, 1] = 4  # overflowed: proves nothing
    assert bounds.check_lists(lists, thresholds, rows, packed) == 8


def drop(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] = torch.inf


def unmark(lists: Any, lowest: int) -> None:
    lists.entries[4, lowest] &= ~15


def twice(lists: Any, lowest: int) -> None:
    others = lists.values[4].isfinite().nonzero()[:, 0]
    lists.entries[4, lowest] = lists.entries[4, others[others != lowest][0]]


def raised(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] += 1e4


def too_high(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] = lists.values[4][lists.values[4].isfinite()].max()


def loose(lists: Any, lowest: int) -> None:
    lists.values[4, lowest] -= 1e4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (drop, "for query 4 is above a member's score"),
        (unmark, "for query 4 is above a member's score"),
        (twice, "the list of query 4 names a group twice"),
        (raised, "the list of query 4 holds a minimum above its threshold"),
        (too_high, "for query 4 is above a member's score"),
        (loose, "for query 4 is below what the bound allows"),
    ],
)
def test_wrong_lists_do_not_pass(change: Callable[[Any, int], None], message: str) -> None:
    lists, thresholds, packed = some_lists()
    change(lists, int(lists.values[4].argmin()))
    with pytest.raises(WrongAnswer, match=message):
        bounds.check_lists(lists, thresholds, bounds.proved_rows(9), packed)
