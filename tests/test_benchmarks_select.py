"""The promises of the benchmarks of k-selection: no timing of a wrong answer, verdicts, results that can be read back.

Nothing here is timed for its own sake: seconds are made up wherever a number decides.
"""

from __future__ import annotations

import csv
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the benchmarks of k-selection make their data with torch")

# The benchmarks are no part of the installed package: they are found from the repository's root.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
main, bars, data, device, grid, learn, plots, proof, runs, sweeps, topk = (
    importlib.import_module(f"benchmarks.select{name}")
    for name in ("", "_bars", "_data", "_device", "_grid", "_learn", "_plots", "_proof", "_run", "_sweep", "_topk")
)
PAPERS = {name: main.paper_of(name) for name in main.PAPERS}
datasets = importlib.import_module("benchmarks.datasets")
tang2015 = importlib.import_module("benchmarks.select_tang2015")
komarov2014 = importlib.import_module("benchmarks.select_komarov2014")

Selected = tuple[Any, Any]


def stable(values: Any, k: int, counters: Any = None, **_: Any) -> Selected:
    """A selection by a stable sort, for NumPy and torch."""
    lines = torch.as_tensor(values)
    order = torch.sort(lines, dim=1, stable=True)
    found = order.values[:, :k], order.indices[:, :k].to(torch.int32)
    if counters is not None:
        counters.updates = np.full(k, 2 * len(lines))
        counters.merges, counters.lanes, counters.compression_ratio, counters.threshold_ratio = 3, 16, 8.0, 0.5
    return found if torch.is_tensor(values) else (found[0].numpy(), found[1].numpy())


class Still(device.Cpu):  # type: ignore[name-defined, misc]
    """A CPU that stands still: every call takes ``seconds``; rates are 10 and 20 GB/s."""

    def __init__(self, seconds: Callable[[], float] = lambda: 0.001, kind: str = "cpu") -> None:
        self.threads, self.kind, self.slice_rows, self._seconds = 2, kind, 4, seconds

    def title(self) -> str:
        return "a still machine"

    def once(self, call: Callable[[], object]) -> float:
        call()
        return self._seconds()

    def settle(self) -> None:
        pass

    def read_rate(self) -> float:
        return 1e10

    def copy_rate(self) -> float:
        return 2e10


def a_run(path: Path | None = None, select: Callable[..., Any] = stable, **changes: Any) -> Any:
    """A run of the stand-in on a still machine."""
    still = changes.pop("device", Still())
    return runs.Run(SimpleNamespace(select_k=select), still, path, **changes)


# --- data --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "int32", "uint8"])
@pytest.mark.parametrize("kind", ["random", "ascending", "descending", "equal"])
def test_data_have_their_type_and_come_twice_the_same(kind: str, dtype: str) -> None:
    first, second = (data.make(kind, 3, 5000, dtype, "cpu") for _ in range(2))
    assert first.shape == (3, 5000)
    assert first.dtype == getattr(torch, dtype)
    assert first.is_contiguous()
    assert torch.equal(first, second)
    steps = first[:, 1:].double() - first[:, :-1].double()
    if kind == "random":
        assert (steps < 0).any(dim=1).all()
        assert len(first.double().unique()) > 200
    else:
        assert (steps * {"ascending": 1, "descending": -1, "equal": 1}[kind] >= 0).all()
        distinct = {"ascending": data.LEVELS[dtype], "descending": data.LEVELS[dtype], "equal": 1}[kind]
        assert len(first[0].double().unique()) == min(5000, distinct)


def test_leading_bits_are_equal_and_the_others_are_not() -> None:
    bits = data.make("leading", 4, 4000, "float32", "cpu").view(torch.int32)
    assert (bits >> 12).unique().tolist() == [0x3F800000 >> 12]
    for bit in range(12):
        assert 0.4 < (bits >> bit & 1).double().mean() < 0.6


def test_data_refuse_what_they_cannot_give() -> None:
    with pytest.raises(ValueError, match="leading bits come as float32, got 'uint8'"):
        data.make("leading", 1, 1, "uint8", "cpu")
    with pytest.raises(ValueError, match="got 'gauss'"):
        data.make("gauss", 1, 1, "float32", "cpu")


def test_shapes_of_a_pool_are_views_of_its_beginning() -> None:
    pool = data.Pool(60, "float32", "cpu")
    wide, tall = pool.view(3, 20), pool.view(10, 5)
    assert torch.equal(wide.flatten()[:50], tall.flatten())
    assert wide.data_ptr() == tall.data_ptr()


def test_sift_distances_are_those_of_the_rows(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = np.random.default_rng(1).integers(0, 256, (30, 128), dtype=np.uint8)
    datasets.write_bvecs(tmp_path / "rows.bvecs", rows)
    monkeypatch.setenv("TONARI_SIFT", str(tmp_path / "rows.bvecs"))
    found = data.make("sift", 6, 20, "float32", "cpu").numpy()
    apart = rows[20:26, None].astype(np.float64) - rows[None, :20]
    # The squares are exact, torch's square root is not always the nearest float.
    np.testing.assert_allclose(found, np.sqrt((apart**2).sum(2)), rtol=2e-7)


def test_sift_makes_do_with_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONARI_SIFT", raising=False)
    monkeypatch.setattr(datasets, "SIFT_DIRECTORIES", ())
    assert data.sift_size(100, 5000) == (100, 5000)
    assert data.sift_size(8192, 65536) == (2000, 8000)
    assert data.sift_rows(10_000).shape == (10_000, 128)
    with pytest.raises(ValueError, match="holds 10000 descriptors, 10001 were asked for"):
        data.sift_rows(10_001)


# --- proof -------------------------------------------------------------------------------------------------------


def test_smallest_is_the_beginning_of_a_stable_sort() -> None:
    rng = np.random.default_rng(2)
    for row in (rng.standard_normal(200), rng.integers(0, 3, 200), np.zeros(200), np.array([0.0, -0.0, np.inf, -1.0])):
        for k in (1, 3, len(row)):
            np.testing.assert_array_equal(proof.smallest(row, k), np.argsort(row, kind="stable")[:k])


def swapped(values: Any, indices: Any) -> Selected:
    values, indices = values.copy(), indices.copy()
    values[-1, [0, 1]], indices[-1, [0, 1]] = values[-1, [1, 0]], indices[-1, [1, 0]]
    return values, indices


def next_best(tensor: np.ndarray) -> Callable[[Any, Any], Selected]:
    """An answer whose last row lacks its smallest value: consistent in itself."""

    def spoil(values: Any, indices: Any) -> Selected:
        order = np.argsort(tensor[-1], kind="stable")[1:5]
        return np.vstack([values[:-1], tensor[-1:, order]]), np.vstack([indices[:-1], order[None].astype(np.int32)])

    return spoil


def other_tie(values: Any, indices: Any) -> Selected:
    """Row 0 is all ones: columns 1 to 4 instead of 0 to 3."""
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
    known = proof.Proof(torch.from_numpy(ROWS), 4)
    values, indices = stable(ROWS, 4)
    assert known.check((values, indices)) == 4
    with pytest.raises(runs.WrongAnswer, match=message):
        known.check(spoil(values, indices))


def test_a_narrowed_proof_is_that_of_the_smaller_k() -> None:
    wide, narrow = proof.Proof(torch.from_numpy(ROWS), 7), proof.Proof(torch.from_numpy(ROWS), 4)
    np.testing.assert_array_equal(wide.narrowed(4).indices, narrow.indices)
    assert wide.narrowed(4).check(stable(ROWS, 4)) == 4
    assert wide.check(stable(ROWS, 7)) == 4
    with pytest.raises(runs.WrongAnswer, match=r"expected .9, 4."):
        wide.narrowed(4).check(stable(ROWS, 7))


def test_bfloat16_is_proved_by_value() -> None:
    rows = torch.from_numpy(ROWS).bfloat16()
    assert proof.Proof(rows, 7).check(stable(rows, 7)) == 4


def test_peers_break_ties_their_own_way_and_are_proved() -> None:
    known = proof.Proof(torch.from_numpy(ROWS), 4)
    for select in (runs.numpy_select(ROWS, 4), runs.torch_select(torch.from_numpy(ROWS), 4)):
        known.check_values(select[0])
    with pytest.raises(runs.WrongAnswer, match="peer"):
        known.check_values(stable(ROWS, 5)[0][:, 1:])


# --- measuring ---------------------------------------------------------------------------------------------------


def refuse(*_: Any, **__: Any) -> Any:
    raise ValueError("k = 4 is not for me")


def crash(*_: Any, **__: Any) -> Any:
    raise RuntimeError("illegal\naddress")


def exhaust(*_: Any, **__: Any) -> Any:
    raise torch.OutOfMemoryError("CUDA out of memory")


def first_columns(values: Any, k: int, **_: Any) -> Selected:
    return values[:, :k], np.tile(np.arange(k, dtype=np.int32), (len(values), 1))


@pytest.mark.parametrize(
    ("select", "note", "wrong"),
    [
        (refuse, "refused: k = 4 is not for me", 0),
        (crash, "FAILED: RuntimeError: illegal address", 1),
        (exhaust, "out of memory", 0),
        (first_columns, "WRONG: row 1 is out of order", 1),
    ],
)
def test_what_cannot_be_measured_is_noted(
    select: Callable[..., Any], note: str, wrong: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "take_turns", lambda *_, **__: pytest.fail("a wrong answer was timed"))
    run = a_run(select=select)
    assert run.measure(proof.Proof(torch.from_numpy(ROWS), 4), "heap", {}) == {"note": note}
    assert run.wrong == wrong


def test_slow_cases_are_left_out_after_their_first_rows() -> None:
    asked: list[int] = []

    def select(values: Any, k: int, **_: Any) -> Selected:
        asked.append(len(values))
        return stable(values, k)

    run = a_run(select=select, cap=2.0, device=Still(lambda: 1.0))
    note = run.measure(proof.Proof(torch.from_numpy(ROWS), 4), "heap", {})["note"]
    assert note == "over the cap: 2.25 s at least"  # 4 of 9 rows took one second
    assert set(asked) == {4}
    run.cap = 3.0
    measured = run.measure(proof.Proof(torch.from_numpy(ROWS), 4), "heap", {})
    assert (measured["seconds_median"], measured["repeats"], measured["verified"]) == (1.0, 1, 4)
    run.deadline = 0.0
    assert run.measure(proof.Proof(torch.from_numpy(ROWS), 4), "heap", {}) == {"note": "not reached"}


def test_turns_end_when_their_seconds_are_spent() -> None:
    ticks = iter([3.0, 1.0, 2.0] * 3)
    calls: dict[str, Callable[[], object]] = {"one": lambda: None}
    found = device.take_turns(Still(lambda: next(ticks)), calls, seconds=8.0)["one"]
    assert found == (2.5, 1.0, 3.0, 4)  # the fourth makes nine seconds
    assert device.take_turns(Still(), calls, seconds=9.0, most=4)["one"].repeats == 4
    assert device.take_turns(Still(), calls, seconds=0.0, least=2)["one"].repeats == 2


def test_speed_counts_the_input_once() -> None:
    speed = a_run().speed(device.Timing(0.5, 0.4, 0.6, 3), 4_000_000_000)
    assert (speed["gbps"], speed["fraction_read"], speed["fraction_copy"]) == (8.0, 0.8, 0.4)
    assert (speed["seconds_min"], speed["seconds_max"], speed["repeats"]) == (0.4, 0.6, 3)


def test_numpy_gets_few_rows_and_its_time_is_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.time, "perf_counter", iter(range(100)).__next__)
    run = a_run()
    rows = torch.arange(64.0).repeat(64, 1)
    found = run.measure(proof.Proof(rows, 4), "numpy", {})
    assert (found["seconds_median"], found["note"]) == (4.0, "one core, 16 rows, scaled")


def test_the_cpu_gives_numpy_where_numpy_has_the_type() -> None:
    cpu = device.open_device("cpu", 1)
    assert isinstance(cpu.values(torch.zeros(2, 2)), np.ndarray)
    assert torch.is_tensor(cpu.values(torch.zeros(2, 2, dtype=torch.bfloat16)))
    assert cpu.kind == "cpu"
    assert cpu.threads == 1
    assert cpu.isa() in ("generic", "avx2", "avx512")
    assert cpu.whole(0.5, 10, 40) == 2.0
    assert cpu.memory() > 1 << 28


# --- bars --------------------------------------------------------------------------------------------------------


def test_bars_are_judged_at_home_and_at_full_size_only() -> None:
    at_home = {(cell.rows, cell.n, cell.k, cell.data): cell.bars for cell in bars.cells_of(a_run())}
    assert at_home[8192, 32768, 64, "random"] == {"numpy": 5, "torch.topk": 2, "read": 0.5}
    assert at_home[8192, 32768, 1024, "random"] == {"numpy": 5, "torch.topk": 2}
    assert at_home[8192, 32768, 64, "descending"] == {"random": 1 / 1.5}
    assert len(at_home) == 10
    cut = bars.cells_of(a_run(rows=64, n=600))
    assert {(cell.rows, cell.n, cell.k) for cell in cut} == {(64, 600, k) for k in (32, 64, 128, 256, 512)}
    others = Still()
    others.threads = 4
    assert not any(cell.bars for cell in [*cut, *bars.cells_of(a_run(device=others))])


@pytest.mark.parametrize(("name", "judged"), [("NVIDIA H100 80GB HBM3", True), ("NVIDIA H200", False)])
def test_bars_of_a_gpu_are_an_h100s(name: str, judged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Still, "title", lambda _: name)
    cells = bars.cells_of(a_run(device=Still(kind="cuda")))
    at = {(cell.rows, cell.n, cell.k, cell.data): cell.bars for cell in cells}
    assert len(at) == 3 * 3 * 6 + 3 * 4 + 4 * 3 + 4
    expected = {
        (2**11, 2**20, 256, "random"): {"GB/s": 1800, "torch.topk": 5},
        (2**13, 2**15, 512, "random"): {"GB/s": 1000},
        (16, 2**24, 1024, "random"): {"GB/s": 1500, "torch.topk": 2},
        (2**13, 2**13, 64, "random"): {"torch.topk": 2},
        (2**12, 2**17, 64, "leading"): {"random": 1 / 1.5},
    }
    assert {key: at[key] for key in expected} == {key: found if judged else {} for key, found in expected.items()}
    # Every other kind of data is compared with a random cell of its shape, timed before.
    order = list(at)
    for rows, n, k, kind in order:
        if kind != "random":
            assert order.index((rows, n, k, "random")) < order.index((rows, n, k, kind))


def judged(cell: Any, seconds: dict[str, float], monkeypatch: pytest.MonkeyPatch, reference: Any) -> dict[Any, Any]:
    """What a cell's rows say, by (nan, bar or peer), when its contestants take these seconds."""
    timings = {name: device.Timing(value, value, value, 3) for name, value in seconds.items()}
    monkeypatch.setattr(bars, "take_turns", lambda *_, **__: timings)
    known = proof.Proof(data.make(cell.data, cell.rows, cell.n, "float32", "cpu"), cell.k)
    rows = bars.judged_rows(a_run(), cell, known, reference)
    return {(row["nan"], row["bar_on"] or row["peer"]): (row["ratio"], row["bar"], row["passed"]) for row in rows}


def test_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    reference: dict[Any, float] = {}
    nbytes = 4 * 8 * 100
    cell = bars.Cell(8, 100, 4, bars={"numpy": 5, "torch.topk": 2, "read": 0.5, "GB/s": 6})
    # At 10 GB/s of reading the input takes nbytes / 1e10 seconds: "refuse" takes twice that, "last" four times.
    seconds = {"refuse": 2 * nbytes / 1e10, "last": 4 * nbytes / 1e10}
    peers = {"numpy": 18 * nbytes / 1e10, "torch.topk": 4 * nbytes / 1e10}
    assert judged(cell, seconds | peers, monkeypatch, reference) == {
        ("refuse", "numpy"): (pytest.approx(9), 5, True),
        ("refuse", "torch.topk"): (pytest.approx(2), 2, True),
        ("refuse", "read"): (None, 0.5, True),
        ("refuse", "GB/s"): (None, 6, False),
        ("last", "numpy"): (pytest.approx(4.5), 5, False),
        ("last", "torch.topk"): (pytest.approx(1), 2, False),
        ("last", "read"): (None, 0.5, False),
        ("last", "GB/s"): (None, 6, False),
    }
    hard = bars.Cell(8, 100, 4, "equal", {"random": 1 / 1.5})
    slower = {"refuse": 1.4 * seconds["refuse"], "last": 1.6 * seconds["last"]}
    found = judged(hard, slower | peers, monkeypatch, reference)
    assert found["refuse", "random"] == (pytest.approx(1 / 1.4), 1 / 1.5, True)
    assert found["last", "random"] == (pytest.approx(1 / 1.6), 1 / 1.5, False)
    assert found["refuse", "numpy"][1:] == (None, None)
    # Without a cell to compare with there is no verdict.
    assert ("refuse", "random") not in judged(hard, slower | peers, monkeypatch, {})


def test_a_wrong_cell_is_noted_and_the_others_go_on(tmp_path: Path) -> None:
    def select(values: Any, k: int, **options: Any) -> Selected:
        return first_columns(values, k) if k == 64 else stable(values, k, **options)

    run = a_run(tmp_path / "select.csv", select=select, rows=6, n=200)
    rows = bars.run_bars(run)
    assert run.wrong == 3  # the first columns of ascending and of equal rows are right
    wrong = [row for row in rows if row.get("note")]
    assert [(row["k"], row["data"]) for row in wrong] == [(64, "random"), (64, "leading"), (64, "descending")]
    assert all(row["note"].startswith("WRONG: ") for row in wrong)
    assert all("seconds_median" not in row for row in wrong)
    right = {(row["k"], row["data"]) for row in rows if row not in wrong}
    assert right == {(32, "random"), (128, "random"), (64, "ascending"), (64, "equal")}
    text = bars.table(rows)
    assert "WRONG: row 0 is out of order" in text
    assert text.splitlines()[-1] == "0 of 0 bars met"


# --- against torch.topk over shapes of every kind ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_shape_that_fits_comes_once_and_long_rows_first(kind: str) -> None:
    cells = list(topk.cells_of(a_run(device=Still(kind=kind))))
    assert len(set(cells)) == len(cells)
    assert [cell.n for cell in cells] == sorted((cell.n for cell in cells), reverse=True)
    assert all(1 <= cell.k <= min(cell.n, 65_536) for cell in cells)
    assert {(cell.rows, cell.n) for cell in cells} == {
        (rows, n)
        for rows in topk.SIZES_ROWS[kind]
        for n in topk.SIZES_N[kind]
        if rows * n <= {"cuda": 2**31, "cpu": 2**24}[kind]
    }
    assert [cell.k for cell in cells if cell[:2] == (1, 2**10)] == [1, 10, 64, 256, 1024]
    assert [cell.k for cell in cells if cell[:2] == (1, 2**13)] == [1, 10, 64, 256, 1024, 4096, 8192]
    assert ((1, 2**28, 65_536) in cells) == (kind == "cuda")


def test_cells_are_cut_to_what_a_run_looks_at() -> None:
    cut = topk.cells_of(a_run(rows=6, n=70))
    assert list(cut) == [(rows, n, k) for n in (70, 64) for rows in (1, 6) for k in sorted({1, 10, 64, n})]


def test_what_is_compiled_first_is_shared_among_processes_by_k(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []

    class Process:
        def __init__(self, target: Any, args: tuple[list[Any]]) -> None:
            assert target is topk.warm
            self.cells = args[0]

        def start(self) -> None:
            events.append(self.cells)

        def join(self) -> None:
            events.append("joined")

    monkeypatch.setattr(topk.multiprocessing, "get_context", lambda _: SimpleNamespace(Process=Process))
    cells = [topk.Cell(1, 2**28, 4), topk.Cell(2, 2**28, 4), topk.Cell(3, 50, 8), topk.Cell(5, 60, 4)]
    topk.warm_all(cells)
    assert events == [[cells[0], cells[3]], [cells[2]], "joined", "joined"]


def changed(part: Any, row: int, column: int, value: float) -> Any:
    part = part.clone()
    part[row, column] = value
    return part


def other_set(values: Any, indices: Any) -> Any:
    """Another tie of row 0, which is all ones."""
    return values, changed(indices, 0, 3, 4)


def keep(values: Any, indices: Any) -> Any:
    return values, indices


def turned(values: Any, indices: Any) -> Any:
    return values.flip(1), indices.flip(1)


# The answers in order and in any order, spoilt, and what is said of them.
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
    monkeypatch.setattr(topk, "PROVED_VALUES", block)  # all rows, or two at a time
    spoil, spoil_loose, message = WRONG[fault]
    rows = torch.from_numpy(ROWS)
    found = stable(rows, 4)
    assert topk.prove(rows, 4, found, turned(*found)) == 9
    with pytest.raises(runs.WrongAnswer, match=message):
        topk.prove(rows, 4, spoil(*found), spoil_loose(*found))


def test_the_next_best_are_not_the_smallest() -> None:
    rows = torch.from_numpy(ROWS)
    spoilt = tuple(map(torch.from_numpy, next_best(ROWS)(*stable(ROWS, 4))))
    with pytest.raises(runs.WrongAnswer, match="row 8 does not have the smallest"):
        topk.prove(rows, 4, spoilt, spoilt)


def test_each_order_is_judged_by_its_own_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def select(values: Any, k: int, **options: Any) -> Selected:
        asked.append(options)
        return stable(values, k)

    def verdicts(**seconds: float) -> list[tuple[Any, ...]]:
        names = {"ours": "sorted", "loose": "any order", "peer": "peer sorted", "peer_loose": "peer"}
        timings = {names[name]: device.Timing(value, value, value, 3) for name, value in seconds.items()}
        monkeypatch.setattr(topk, "take_turns", lambda *_, **__: timings)
        found = topk.measure_cell(a_run(select=select), topk.Cell(9, 40, 4), torch.from_numpy(ROWS))
        assert {(row["rows"], row["n"], row["k"], row["verified"], row["bar"]) for row in found} == {(9, 40, 4, 9, 1.5)}
        assert [json.loads(row["options"])["sorted"] for row in found] == [True, False]
        return [(row["seconds_median"], row["peer_seconds"], row["ratio"], row["passed"]) for row in found]

    assert verdicts(ours=6, loose=3, peer=4, peer_loose=1) == [(6, 4, 1.5, True), (3, 1, 3.0, False)]
    assert verdicts(ours=7, loose=3, peer=4, peer_loose=8) == [(7, 4, 1.75, False), (3, 4, 0.75, True)]
    assert {(options["method"], options["nan"], options.get("sorted", True)) for options in asked} == {
        ("auto", "last", True),
        ("auto", "last", False),
    }


def test_both_peers_have_the_smallest() -> None:
    rows = torch.from_numpy(ROWS)
    for ordered in (True, False):
        found = topk.topk(rows, 4, ordered=ordered)()
        assert torch.equal(found.values.sort(dim=1).values, stable(rows, 4)[0])


def test_a_wrong_cell_is_noted_and_the_other_cells_go_on(tmp_path: Path) -> None:
    def select(values: Any, k: int, **options: Any) -> Selected:
        return first_columns(values, k) if k == 10 else stable(values, k)

    run = a_run(tmp_path / "select.csv", select=select, rows=1, n=64)
    found = topk.run_topk(run)
    assert run.wrong == 1
    assert [(row["k"], row.get("note")) for row in found] == [
        (1, None), (1, None), (10, "WRONG: row 0 is out of order"), (64, None), (64, None),
    ]  # fmt: skip
    assert len(sweeps.read(tmp_path / "select.csv")) == 5
    run.deadline = 0.0
    assert topk.run_topk(run) == []


def test_the_worst_cells_are_listed() -> None:
    def row(rows: int, k: int, ordered: bool, ratio: float) -> dict[str, Any]:
        facts = {"rows": rows, "n": 64, "k": k, "options": json.dumps({"sorted": ordered}), "passed": ratio <= 1.5}
        return facts | {"ratio": ratio, "seconds_median": ratio / 1e3, "peer_seconds": 1e-3}

    rows = [row(rows, k, ordered, rows + k / 10 + ordered) for rows in (1, 2) for k in (1, 9) for ordered in (1, 0)]
    rows.append({"rows": 2, "n": 64, "k": 5, "note": "out of memory"})
    in_order, loose, worst, share = (block.splitlines() for block in topk.table(rows).split("\n\n"))
    assert [line.split() for line in in_order] == [
        ["in", "order:", "ours/topk", "k=1", "k=5", "k=9"],
        ["1", "x", "64", "2.10", "2.90"],
        ["2", "x", "64", "3.10", "out", "3.90"],
    ]
    assert [line.split() for line in loose[1:]] == [
        ["1", "x", "64", "1.10", "1.90"],
        ["2", "x", "64", "2.10", "out", "2.90"],
    ]
    assert len(worst) == 9
    assert worst[1].split() == ["2", "x", "64", "9", "sorted", "3.9", "1", "3.90"]
    assert worst[-1].split() == ["1", "x", "64", "1", "any", "1.1", "1", "1.10"]
    assert share == ["within 1.5 times torch.topk in 1 of 8 cells"]


# --- results -----------------------------------------------------------------------------------------------------


def test_results_can_be_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "select.csv"
    rows = bars.run_bars(a_run(path, rows=5, n=100))
    with path.open(newline="") as file:
        header, *lines = csv.reader(file)
    assert tuple(header) == runs.COLUMNS
    assert [len(line) for line in lines] == [len(header)] * len(rows)
    back = sweeps.read(path)
    assert [(row["rows"], row["n"], row["k"], row["data"], row["nan"]) for row in back] == [
        (row["rows"], row["n"], row["k"], row["data"], row["nan"]) for row in rows
    ]
    assert {row["peer"] for row in back} == {"torch.topk", "numpy"}
    assert back[0]["seconds_median"] == 0.001
    assert back[0]["options"] == {}
    assert back[0]["machine"] == "a still machine"
    assert back[0]["threads"] == "2"
    assert "torch=" in back[0]["versions"]
    assert sweeps.read(tmp_path / "none.csv") == []


def test_other_columns_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "select.csv"
    path.write_text("case,seconds\nold,1\n")
    with pytest.raises(ValueError, match="other columns"):
        a_run(path).write([{"mode": "bars"}])
    assert path.read_text() == "case,seconds\nold,1\n"


# --- grid --------------------------------------------------------------------------------------------------------


def test_cells_follow_smaller_ones_and_fit() -> None:
    for kind in ("cpu", "cuda"):
        cells = list(grid.shapes(a_run(device=Still(kind=kind)), "float32"))
        assert len(cells) == len(set(cells)) > 50
        assert max(cell.rows * cell.n for cell in cells) == grid.LARGEST[kind]
        for i, cell in enumerate(cells):
            assert cell.k <= cell.n
            assert not any(
                all(a >= b for a, b in zip(before[1:], cell[1:], strict=True)) and before != cell
                for before in cells[:i]
            )


def test_hopeless_methods_are_left_out_of_larger_cells() -> None:
    history = grid.History()
    at = grid.Shape("float32", 16, 1024, 10)
    history.learn(at, {"best": 0.001, "slow": 0.0201, "bearable": 0.02})
    history.learn(grid.Shape("float32", 1, 1024, 10), {"best": 1e-6, "small": 9e-4})
    assert history.hopeless("slow", at) == at
    assert history.hopeless("slow", at._replace(n=2048, k=64)) == at
    # Fewer values, another number of rows or another type say nothing; nor does a time too short to matter.
    for other in ({"n": 512}, {"k": 5}, {"rows": 32}, {"rows": 8}, {"dtype": "uint8"}):
        assert history.hopeless("slow", at._replace(**other)) is None
    assert history.hopeless("bearable", at) is None
    assert history.hopeless("small", at._replace(rows=1)) is None


def grid_rows(path: Path | None = None) -> tuple[Any, list[dict[str, Any]]]:
    """A grid of one shape where every method has its own seconds: heap 2 ms, radix 1 ms (descending 2 ms) and so on."""
    clock = {"now": 0.0}
    times = {"heap": 0.002, "radix": 0.001, "quick": 0.0011, "bitonic": 0.05, "auto": 0.00112}

    def select(values: Any, k: int, method: str, **options: Any) -> Selected:
        steep = values[0, 0] > values[0, 1] > values[0, 2] > values[0, 3]
        clock["now"] = times.get(method, 1.0) * (2 if steep and method == "radix" else 1)
        return stable(values, k)

    run = a_run(path, select=select, rows=4, n=50, device=Still(lambda: clock["now"]))
    return run, grid.run_grid(run, ["float32"], repeats=3)


def test_auto_is_judged_by_the_best_named_method(tmp_path: Path) -> None:
    run, rows = grid_rows()
    assert run.wrong == 0
    cells = {(row["rows"], row["n"], row["k"]) for row in rows}
    assert cells == {(rows, 50, k) for rows in (1, 4) for k in (10, 32)}
    autos = [row for row in rows if row["method"] == "auto"]
    assert [(row["peer"], row["passed"]) for row in autos] == [("radix", False)] * 4
    assert autos[0]["ratio"] == pytest.approx(1.12)
    # Only those near the best are tried on descending rows.
    tried = {(row["method"], row["options"]) for row in rows if row["data"] == "descending"}
    assert {method for method, _ in tried} == {"radix", "quick", "heap"}
    assert grid.table(rows).endswith("auto within 1.1 times the best named method in 0 of 4 cells")
    whole = grid.all_seconds(rows)
    assert "float32, 4 x 50, ms" in whole
    line = next(line for line in whole.splitlines() if line.startswith("insertion"))
    assert line.split() == ["insertion", "1000", "hopeless"]


def test_autos_table_is_learnt_from_random_and_descending_rows(tmp_path: Path) -> None:
    path = tmp_path / "select.csv"
    run, _ = grid_rows(path)
    entries = learn.learn(sweeps.read(path))
    # Descending rows take radix 2 ms: over 1.5 that is more than quick takes.
    assert entries == [
        {"device": "cpu", "rows": rows, "n": 50, "k": k, "bytes": 4, "method": "quick", "options": {}}
        for rows in (1, 4)
        for k in (10, 32)
    ]
    # A later run speaks for its cells.
    what = {"mode": "grid", "rows": 4, "n": 50, "k": 10, "dtype": "float32"}
    what |= {"method": "heap", "options": '{"group": 4}'}
    run.shared["date"] = "9999-01-01T00:00Z"
    run.write([what | {"data": kind, "seconds_median": 5.0} for kind in ("random", "descending")])
    newer = learn.learn(sweeps.read(path))
    assert [entry["options"] for entry in newer if (entry["rows"], entry["k"]) == (4, 10)] == [{"group": 4}]
    assert sum(entry["method"] == "quick" for entry in newer) == 3


def test_learning_keeps_what_was_not_measured_again(tmp_path: Path) -> None:
    table = tmp_path / "auto_table.json"
    old = {"device": "cuda", "rows": 1, "n": 64, "k": 2, "bytes": 4, "method": "radix", "options": {}}
    again = {"device": "cpu", "rows": 1, "n": 64, "k": 2, "bytes": 4, "method": "heap", "options": {"buffer": "full"}}
    learn.merge(table, [old, again])
    learn.merge(table, [again | {"method": "quick", "options": {}}])
    assert json.loads(table.read_text()) == [again | {"method": "quick", "options": {}}, old]
    learn.merge(tmp_path / "none.json", [])
    assert json.loads((tmp_path / "none.json").read_text()) == []


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_method_and_option_that_is_measured_exists(kind: str) -> None:
    make_options = importlib.import_module("tonari.select.registry").make_options
    named = list(grid.variants(kind))
    for paper in PAPERS.values():
        named += [(point.method, dict(point.options)) for point in paper.points(a_run(device=Still(kind=kind)))]
    methods = set()
    for method, options in named:
        if method not in runs.PEERS and method != "auto":
            make_options(method, options, kind)
            methods.add(method)
    assert methods == set(importlib.import_module("tonari.select.registry").METHODS)


def test_the_library_passes_its_proofs() -> None:
    run = a_run(select=importlib.import_module("tonari").select_k)
    rows = [run.measure(proof.Proof(torch.from_numpy(ROWS), 5), *variant) for variant in grid.variants("cpu")]
    assert [row.get("note") for row in rows] == [None] * len(rows)
    assert run.wrong == 0


# --- papers ------------------------------------------------------------------------------------------------------


def test_the_closed_form_is_the_mean_of_insertion_queues() -> None:
    n, k, rows = 40, 6, 4000
    values = np.random.default_rng(4).random((rows, n))
    updates = np.zeros((rows, k))
    queue = np.full((rows, k), np.inf)  # descending, head first
    for x in values.T:
        enters = x < queue[:, 0]
        place = (queue > x[:, None]).sum(axis=1) - 1  # of x, once the head is gone and the larger ones have moved
        for row in np.flatnonzero(enters):
            updates[row, : place[row] + 1] += 1
            queue[row, : place[row]] = queue[row, 1 : place[row] + 1]
            queue[row, place[row]] = x[row]
    error = 5 * updates.std(axis=0) / np.sqrt(rows)
    assert (np.abs(updates.mean(axis=0) - tang2015.closed_form(n, k)) <= error).all()
    assert error.max() < 0.3


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_tang2015_has_the_sizes_of_the_paper(kind: str) -> None:
    points = list(PAPERS["tang2015"].points(a_run(device=Still(kind=kind))))
    assert {point.figure for point in points} == set(PAPERS["tang2015"].figures)
    timed = [point for point in points if not point.counted]
    assert {point.rows for point in timed} == {2**13}
    assert {(point.n, point.k) for point in timed} == {
        *((2**15, 2**i) for i in range(5, 11)),
        *((2**i, 2**8) for i in range(13, 17)),
    }
    counted = [point for point in points if point.counted]
    assert {point.figure for point in counted} == {"5"}
    assert {(point.n, point.k) for point in counted} == {(2**15, 2**i) for i in range(5, 11)}


def test_matsumoto2015_takes_no_sample_smaller_than_k_and_varies_one_thing_at_a_time() -> None:
    points = list(PAPERS["matsumoto2015"].points(a_run()))
    assert {point.figure for point in points} == set(PAPERS["matsumoto2015"].figures)
    sampled = [point for point in points if "samples" in point.options]
    assert all(point.k <= point.options["samples"] <= point.n for point in sampled)
    for figure, varied in {"5": "samples", "7": "k", "9": "batch", "10": "n", "11": "k", "12": "rows"}.items():
        mine = [point for point in points if point.figure == figure and point.data == "uniform"]
        values = {
            name: {point.options.get(name, getattr(point, name, None)) for point in mine}
            for name in ("samples", "batch", "rows", "n", "k")
        }
        assert {name for name, found in values.items() if len(found) > 1} == {varied}
    on_gpu = PAPERS["matsumoto2015"].points(a_run(device=Still(kind="cuda")))
    assert "9" not in {point.figure for point in on_gpu}


def test_komarov2014_keeps_the_number_of_values() -> None:
    for kind in ("cpu", "cuda"):
        points = list(PAPERS["komarov2014"].points(a_run(device=Still(kind=kind))))
        assert {point.rows * point.n for point in points if point.figure in "78"} == {komarov2014.PRODUCT[kind]}
        assert {point.rows for point in points if point.figure == "9"} == {2**i for i in range(14)}


def test_equal_points_are_measured_once_and_written_for_each_figure(tmp_path: Path) -> None:
    asked: list[str] = []

    def select(values: Any, k: int, **options: Any) -> Selected:
        asked.append(str(k))
        return stable(values, k, counters=options.get("counters"))

    def points(_: Any) -> list[Any]:
        timed = [sweeps.Point(figure, "a", 3, 20, 2, "heap", {"buffer": "full"}) for figure in ("1", "2")]
        return [
            *timed,
            sweeps.Point("2", "b", 3, 20, 4, "heap", counted=True),
            sweeps.Point("2", "too large", 3, 20, 21, "heap"),
            sweeps.Point("3", "not asked for", 3, 20, 9, "heap"),
        ]

    paper = sweeps.Paper("test", ("1", "2", "3"), points, lambda *_: [], lambda c, p: {"merges": c.merges, "k": p.k})
    rows = sweeps.sweep(a_run(tmp_path / "select.csv", select=select), paper, ("1", "2"))
    assert [(row["figure"], row["series"]) for row in rows] == [("1", "a"), ("2", "a"), ("2", "b")]
    assert rows[0] | {"figure": "2"} == rows[1]
    assert set(asked) == {"2", "4"}
    assert asked.count("2") == 1 + rows[0]["repeats"]
    back = sweeps.read(tmp_path / "select.csv")
    assert back[0]["options"] == {"buffer": "full"}
    assert back[2]["counters"] == {"merges": 3, "k": 4}
    assert back[2]["seconds_median"] is None


def test_the_newest_run_that_measured_a_figure_is_drawn() -> None:
    def row(date: str, where: str, device: str = "cpu", seconds: float | None = 1.0) -> dict[str, Any]:
        facts = {"mode": "p", "figure": "5", "device": device, "counters": {}}
        return facts | {"date": date, "machine": where, "seconds_median": seconds}

    old, new = row("2026-01-01", "a"), row("2026-01-02", "a")
    rows = [old, new, row("2026-01-02", "b", "cuda"), row("2026-01-03", "a", seconds=None)]
    assert sweeps.newest(rows, "p", "5", "cpu") == [new]
    assert sweeps.newest(rows, "p", "6", "cpu") == []
    assert sweeps.newest([rows[3]], "p", "5", "cpu") == []


def test_improvements_are_over_the_bare_queue() -> None:
    found = {"bare": [(32, 4.0), (64, 9.0)], "fast": [(32, 2.0), (64, 3.0), (128, 1.0)], "none": []}
    assert sweeps.improvements(found, "bare") == {"fast": [(32, 2.0), (64, 3.0)], "none": []}
    assert sweeps.improvements({"fast": [(32, 2.0)]}, "bare") == {"fast": []}


def test_quick_is_compared_in_its_faster_form() -> None:
    found = {
        "k = 8: quick, warp": [(1, 2.0), (2, 2.0)],
        "k = 8: quick, block": [(1, 1.0), (2, 4.0)],
        "k = 8: bitonic": [(1, 3.0), (2, 3.0), (3, 3.0)],
        "k = 16: bitonic": [(1, 3.0)],
    }
    assert komarov2014.speedups(found, "bitonic") == {"k = 8": [(1, 3.0), (2, 1.5)], "k = 16": []}


@pytest.mark.parametrize("name", main.PAPERS)
def test_figures_are_drawn_from_the_results(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="only drawing needs matplotlib")
    monkeypatch.setattr(plots, "IMAGES", tmp_path / "images")
    path = tmp_path / "select.csv"
    run = a_run(path, rows=8, n=300)
    assert len(sweeps.sweep(run, PAPERS[name], PAPERS[name].figures)) > 20
    assert run.wrong == 0
    main.draw(path, [PAPERS[name]])
    drawn = {figure.name: figure.read_bytes() for figure in (tmp_path / "images").iterdir()}
    figures = [figure for figure in PAPERS[name].figures if figure not in PAPERS[name].tables]
    assert set(drawn) == {f"select-{name}-fig{figure}-cpu.svg" for figure in figures}
    for file, text in drawn.items():
        assert f"{name}, figure {file.split('fig')[1].split('-')[0]}<".encode() in text
        assert b">a still machine, 2 threads, 20" in text
        assert len(text) < 200_000
    (tmp_path / "images" / f"select-{name}-fig9-cpu.svg").unlink()
    main.draw(path, [PAPERS[name]], ["9"])
    assert drawn == {figure.name: figure.read_bytes() for figure in (tmp_path / "images").iterdir()}
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert (["insertion,", "buffer", "+", "HP", "1", "1", "1", "1"] in lines) == (name == "tang2015")


def test_nothing_is_drawn_of_nothing(tmp_path: Path) -> None:
    panel = plots.Panel("", "k", "seconds", {"series": []})
    assert not plots.draw(tmp_path / "none.svg", [panel], "")
    assert not (tmp_path / "none.svg").exists()


# --- the command line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "one of --bars"),
        (["--bars", "--learn"], "--learn goes alone or with --grid"),
        (["--topk", "--learn"], "--learn goes alone or with --grid"),
        (["--topk", "--plot-only"], "--plot-only goes alone"),
        (["--grid", "--plot-only"], "--plot-only goes alone"),
        (["--bars", "--figure", "5"], "--figure goes with --paper"),
        (["--bars", "--dtype", "uint8"], "--dtype goes with --grid"),
        (["--learn", "--no-csv"], "do not go with --no-csv"),
        (["--bars", "--rows", "0"], "--rows is above 0, got 0"),
        (["--paper", "tang2015", "--figure", "12"], "tang2015 has the figures 5, 6, 7, 8, 9, table I, not '12'"),
        (["--grid", "--dtype", "int4"], "not 'int4'"),
    ],
)
def test_the_command_line_refuses_what_does_not_go_together(arguments: list[str], message: str) -> None:
    with pytest.raises(SystemExit, match=message):
        main.main(arguments)


@pytest.mark.parametrize(("select", "status"), [(stable, 0), (first_columns, 1)])
@pytest.mark.parametrize(
    "arguments", [["--bars"], ["--grid"], ["--topk"], ["--paper", "komarov2014", "--figure", "10"]]
)
def test_the_exit_status_tells_of_wrong_answers(
    arguments: list[str],
    select: Callable[..., Any],
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(main, "open_run", lambda _: a_run(None, select=select, rows=5, n=70))
    assert main.main([*arguments, "--device", "cpu"]) == status
    assert ("WRONG" in capsys.readouterr().out) == bool(status)


def test_learning_writes_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learn, "TABLE", tmp_path / "auto_table.json")
    path = tmp_path / "select.csv"
    with pytest.raises(SystemExit, match="holds no rows of a grid"):
        main.main(["--learn", "--csv", str(path)])
    grid_rows(path)
    assert main.main(["--learn", "--csv", str(path)]) == 0
    assert len(json.loads((tmp_path / "auto_table.json").read_text())) == 4
    assert "4 cells learnt, 4 in" in capsys.readouterr().out
