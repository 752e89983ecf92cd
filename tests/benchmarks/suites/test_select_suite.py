"""k-selection: wrong answers are not timed; verdicts; and the table of auto is learnt from rows.

All seconds are made up.
"""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still, done

torch = pytest.importorskip("torch", reason="the benchmarks of k-selection make their data with torch")

from benchmarks import __main__ as main  # noqa: E402
from benchmarks.harness import device, rows  # noqa: E402
from benchmarks.harness.case import Bar  # noqa: E402
from benchmarks.harness.proof import WrongAnswer  # noqa: E402
from benchmarks.harness.proof import selection as proof  # noqa: E402
from benchmarks.suites.select import SUITE, bars, grid, learn, measure, topk  # noqa: E402

Selected = tuple[Any, Any]
ROWS = np.random.default_rng(3).standard_normal((9, 40)).astype(np.float32)
ROWS[0] = 1


def stable(values: Any, k: int, counters: Any = None, **_: Any) -> Selected:
    """Select by a stable sort, for NumPy and torch."""
    lines = torch.as_tensor(values)
    order = torch.sort(lines, dim=1, stable=True)
    found = order.values[:, :k], order.indices[:, :k].to(torch.int32)
    if counters is not None:
        counters.updates = np.full(k, 2 * len(lines))
        counters.merges, counters.lanes, counters.compression_ratio, counters.threshold_ratio = 3, 16, 8.0, 0.5
    return found if torch.is_tensor(values) else (found[0].numpy(), found[1].numpy())


def a_run(path: Path | None = None, select: Callable[..., Any] = stable, **changes: Any) -> Any:
    """Make a run with a stand-in library on a machine with fixed times."""
    defaults: dict[str, Any] = {"device": Still(slice_rows=4), "repeats": 3}
    return bench_checks.a_run(SimpleNamespace(select_k=select), path=path, **defaults | changes)


def a_case(**changes: Any) -> Any:
    """Make a case for one shape of select_k; ``changes`` replace its fields."""
    options = {"name": "bars-tiny", "n": 100, "m": 8, "d": 0, "k": 4, "data": "random", "work": bars.judge}
    options |= {"peers": bars.PEERS_OF["cpu"]}
    return bench_checks.a_case(**options | changes)


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
    monkeypatch.setattr(measure, "take_turns", lambda *_, **__: pytest.fail("a wrong answer was timed"))
    run = a_run(select=select)
    assert measure.measure(run, proof.Proof(torch.from_numpy(ROWS), 4), "heap", {}) == {"note": note}
    assert run.wrong == wrong


def test_slow_cases_are_left_out_after_their_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def select(values: Any, k: int, **_: Any) -> Selected:
        asked.append(len(values))
        return stable(values, k)

    monkeypatch.setitem(measure.CAPS, "cpu", 2.0)
    run = a_run(select=select, device=Still(lambda: 1.0, slice_rows=4))
    note = measure.measure(run, proof.Proof(torch.from_numpy(ROWS), 4), "heap", {})["note"]
    assert note == "over the cap: 2.25 s at least"  # 4 of 9 rows took one second
    assert set(asked) == {4}
    monkeypatch.setitem(measure.CAPS, "cpu", 3.0)
    measured = measure.measure(run, proof.Proof(torch.from_numpy(ROWS), 4), "heap", {})
    assert (measured["seconds_median"], measured["repeats"], measured["proved"]) == (1.0, 1, 4)
    run.deadline = 0.0
    assert measure.measure(run, proof.Proof(torch.from_numpy(ROWS), 4), "heap", {}) == {"note": "not reached"}


def test_speed_counts_the_input_once() -> None:
    speed = measure.speed(a_run(), device.Timing(0.5, 0.4, 0.6, 3), 4_000_000_000)
    assert speed["extras"] == {"gbps": 8.0, "read_gbps": 10.0, "copy_gbps": 20.0}
    assert (speed["seconds_min"], speed["seconds_max"], speed["repeats"]) == (0.4, 0.6, 3)


def test_numpy_gets_few_rows_and_its_time_is_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure.time, "perf_counter", iter(range(100)).__next__)
    run = a_run()
    rows = torch.arange(64.0).repeat(64, 1)
    found = measure.measure(run, proof.Proof(rows, 4), "numpy", {})
    assert (found["seconds_median"], found["rows_timed"], found["note"]) == (4.0, 16, "one core, scaled")


def test_the_cpu_gives_numpy_where_numpy_has_the_type() -> None:
    cpu = device.open_device("cpu", 1)
    assert isinstance(cpu.values(torch.zeros(2, 2)), np.ndarray)
    assert torch.is_tensor(cpu.values(torch.zeros(2, 2, dtype=torch.bfloat16)))
    assert cpu.kind == "cpu"
    assert cpu.threads == 1
    assert cpu.isa() in ("generic", "avx2", "avx512", "neon")
    assert cpu.whole(0.5, 10, 40) == 2.0
    assert cpu.memory() > 1 << 28


def test_peers_break_ties_their_own_way_and_are_proved() -> None:
    known = proof.Proof(torch.from_numpy(ROWS), 4)
    tensor = torch.from_numpy(ROWS)
    for select in (measure.numpy_select(ROWS, 4), measure.numpy_values(ROWS, 4), measure.torch_select(tensor, 4)):
        known.check_values(select[0])
    with pytest.raises(WrongAnswer, match="peer"):
        known.check_values(stable(ROWS, 5)[0][:, 1:])


# --- bars --------------------------------------------------------------------------------------------------------


def test_what_select_is_held_to() -> None:
    held = {
        case.device: {
            (other.m, other.n, other.k, other.data): {bar.on: bar.bound for bar in other.bars}
            for other in SUITE.chosen(case.device, ["bars-*"])
        }
        for case in SUITE.cases
    }
    here = held["cpu"]
    assert here[8192, 32768, 64, "random"] == {"numpy": 5, "torch.topk": 2, "read": 0.5}
    assert here[8192, 32768, 1024, "random"] == {"numpy": 5, "torch.topk": 2}
    assert here[8192, 32768, 64, "descending"] == {"random": 1 / 1.5}
    assert here[1_000_000, 20, 5, "random"] == {"numpy-values": 1.25}
    assert len(here) == 12
    card = held["cuda"]
    assert len(card) == 3 * 3 * 6 + 3 * 4 + 4 * 3 + 4
    expected = {
        (2**11, 2**20, 256, "random"): {"GB/s": 1800, "torch.topk": 5},
        (2**13, 2**15, 512, "random"): {"GB/s": 1000},
        (16, 2**24, 1024, "random"): {"GB/s": 1500, "torch.topk": 2},
        (2**13, 2**13, 64, "random"): {"torch.topk": 2},
        (2**12, 2**17, 64, "leading"): {"random": 1 / 1.5},
    }
    assert {key: card[key] for key in expected} == expected
    # Every other kind of data is compared with the random case of the same shape, which is timed first.
    for cases in held.values():
        order = list(cases)
        for m, n, k, kind in order:
            if kind != "random":
                assert order.index((m, n, k, "random")) < order.index((m, n, k, kind))
    homes = {(case.device, bar.home) for case in SUITE.cases if case.name.startswith("bars") for bar in case.bars}
    assert homes == {("cpu", ""), ("cuda", "H100")}


def judged(run: Any, case: Any, seconds: dict[str, float], monkeypatch: pytest.MonkeyPatch) -> dict[Any, Any]:
    """Return the verdicts of a case by (nan, bar), if its contestants take these seconds."""
    timings = {name: device.Timing(value, value, value, 3) for name, value in seconds.items()}
    monkeypatch.setattr(bars, "take_turns", lambda *_, **__: timings)
    run.rows.clear()
    done(run, case)
    ours = [row for row in run.rows if row["who"] == "tonari"]
    assert {row["who"] for row in run.rows} == {"tonari", "torch.topk", "numpy"}
    return {(row["parameters"]["nan"], row.get("bar_on")): (row.get("value"), row.get("passed")) for row in ours}


def test_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    nbytes = 4 * 8 * 100
    held = {"numpy": 5, "torch.topk": 2, "read": 0.5, "GB/s": 6}
    case = a_case(bars=tuple(Bar(on, bound, home="") for on, bound in held.items()))
    # At a read rate of 10 GB/s the input takes nbytes / 1e10 seconds: "refuse" takes twice that, "last" four times.
    seconds = {"refuse": 2 * nbytes / 1e10, "last": 4 * nbytes / 1e10}
    peers = {"numpy": 18 * nbytes / 1e10, "torch.topk": 4 * nbytes / 1e10}
    run = a_run()
    assert judged(run, case, seconds | peers, monkeypatch) == {
        ("refuse", "numpy"): (pytest.approx(9), True),
        ("refuse", "torch.topk"): (pytest.approx(2), True),
        ("refuse", "read"): (pytest.approx(0.5), True),
        ("refuse", "GB/s"): (pytest.approx(5), False),
        ("last", "numpy"): (pytest.approx(4.5), False),
        ("last", "torch.topk"): (pytest.approx(1), False),
        ("last", "read"): (pytest.approx(0.25), False),
        ("last", "GB/s"): (pytest.approx(2.5), False),
    }
    hard = a_case(data="equal", bars=(Bar("random", 1 / 1.5, home=""),))
    slower = {"refuse": 1.4 * seconds["refuse"], "last": 1.6 * seconds["last"]}
    found = judged(run, hard, slower | peers, monkeypatch)
    assert found["refuse", "random"] == (pytest.approx(1 / 1.4), True)
    assert found["last", "random"] == (pytest.approx(1 / 1.6), False)
    # Without a case to compare with there is no verdict.
    assert set(judged(a_run(), hard, slower | peers, monkeypatch)) == {("refuse", None), ("last", None)}


def test_a_wrong_case_is_noted_and_the_others_go_on(tmp_path: Path) -> None:
    def select(values: Any, k: int, **options: Any) -> Selected:
        return first_columns(values, k) if k == 64 else stable(values, k, **options)

    path = tmp_path / "select.csv"
    run = a_run(path, select=select)
    for changes in ({"k": 32}, {"k": 64}, {"k": 64, "data": "descending"}, {"k": 64, "data": "ascending"}):
        done(run, a_case(n=200, m=6, **changes))
    assert run.wrong == 2  # the first columns of ascending rows are right
    wrong = [row for row in rows.read(path) if row["note"]]
    assert [(row["k"], row["data"]) for row in wrong] == [(64, "random"), (64, "descending")]
    assert all(row["note"].startswith("WRONG: ") and row["seconds_median"] is None for row in wrong)
    right = {(row["k"], row["data"]) for row in rows.read(path) if not row["note"]}
    assert right == {(32, "random"), (64, "ascending")}


def test_what_has_no_room_is_left_out() -> None:
    run = done(a_run(), a_case(n=2**20, m=2**10))
    assert [row["note"] for row in run.rows] == ["larger than half of the memory"]


# --- against torch.topk over shapes of every kind ----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cpu", "cuda"])
def test_every_shape_that_fits_comes_once_and_long_rows_first(kind: str) -> None:
    cells = list(topk.cells_of(a_run(device=Still(kind=kind, slice_rows=4))))
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


def test_cells_are_as_small_as_a_run_is() -> None:
    cut = list(topk.cells_of(a_run(scale=2**-10)))
    assert {(cell.rows, cell.n) for cell in cut} == {(1, n) for n in (1, 8, 2**7, 2**10)}
    assert [cell.k for cell in cut if cell.n == 8] == [1, 8]


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


def test_each_order_is_judged_by_its_own_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def select(values: Any, k: int, **options: Any) -> Selected:
        asked.append(options)
        return stable(values, k)

    def verdicts(**seconds: float) -> list[tuple[Any, ...]]:
        names = {"ours": "in order", "loose": "in any order", "peer": "peer sorted", "peer_loose": "peer"}
        timings = {names[name]: device.Timing(value, value, value, 3) for name, value in seconds.items()}
        monkeypatch.setattr(topk, "take_turns", lambda *_, **__: timings)
        (case,) = SUITE.chosen("cpu", ["topk"])
        found = topk.measure_cell(a_run(select=select), case, topk.Cell(9, 40, 4), torch.from_numpy(ROWS))
        assert {(row["m"], row["n"], row["k"]) for row in found} == {(9, 40, 4)}
        ours, theirs = found[::2], found[1::2]
        assert [row["who"] for row in theirs] == ["torch.topk"] * 2
        assert {(row["who"], row["proved"], row["bar"]) for row in ours} == {("tonari", 9, 1.5)}
        assert [row["parameters"]["sorted"] for row in ours] == [True, False]
        assert [row["stage"] for row in found] == ["in order"] * 2 + ["in any order"] * 2
        return [
            (one["seconds_median"], other["seconds_median"], one["value"], one["passed"])
            for one, other in zip(ours, theirs, strict=True)
        ]

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


def test_a_wrong_cell_is_noted_and_the_other_cells_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def select(values: Any, k: int, **options: Any) -> Selected:
        return first_columns(values, k) if k == 10 else stable(values, k)

    monkeypatch.setattr(topk, "SIZES_ROWS", {"cpu": (1,)})
    monkeypatch.setattr(topk, "SIZES_N", {"cpu": (64,)})
    path = tmp_path / "select.csv"
    (case,) = SUITE.chosen("cpu", ["topk"])
    run = done(a_run(path, select=select), case)
    assert run.wrong == 1
    assert [(row["k"], row.get("note")) for row in run.rows] == [
        *[(1, None)] * 4, (10, "WRONG: row 0 is out of order"), *[(64, None)] * 4,
    ]  # fmt: skip
    assert len(rows.read(path)) == 9
    late = done(a_run(deadline=0.0), case)
    assert [row["note"] for row in late.rows] == ["not reached: this cell and those after it"]


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
    # Rows with fewer values, another number of rows or another dtype are ignored; so are times that are too short.
    for other in ({"n": 512}, {"k": 5}, {"rows": 32}, {"rows": 8}, {"dtype": "uint8"}):
        assert history.hopeless("slow", at._replace(**other)) is None
    assert history.hopeless("bearable", at) is None
    assert history.hopeless("small", at._replace(rows=1)) is None


def grid_rows(path: Path | None, monkeypatch: pytest.MonkeyPatch, name: str = "grid-float32") -> Any:
    """Make a grid of two shapes with fixed seconds of each method: heap 2 ms, radix 1 ms (2 ms if descending) etc."""
    clock = {"now": 0.0}
    times = {"heap": 0.002, "radix": 0.001, "quick": 0.0011, "bitonic": 0.05, "auto": 0.00112}

    def select(values: Any, k: int, method: str, **options: Any) -> Selected:
        steep = values[0, 0] > values[0, 1] > values[0, 2] > values[0, 3]
        clock["now"] = times.get(method, 1.0) * (2 if steep and method == "radix" else 1)
        return stable(values, k)

    monkeypatch.setattr(grid, "SIZES_ROWS", {"cpu": (1, 4)})
    monkeypatch.setattr(grid, "SIZES_N", {"cpu": (50,)})
    monkeypatch.setattr(grid, "OTHER_ROWS", {"cpu": (2, 3)})
    monkeypatch.setattr(grid, "OTHER_N", {"cpu": (70,)})
    (case,) = SUITE.chosen("cpu", [name])
    return done(a_run(path, select=select, device=Still(lambda: clock["now"], slice_rows=4)), case)


def test_auto_is_judged_by_the_best_named_method(monkeypatch: pytest.MonkeyPatch) -> None:
    run = grid_rows(None, monkeypatch)
    assert run.wrong == 0
    cells = {(row["m"], row["n"], row["k"]) for row in run.rows}
    assert cells == {(m, 50, k) for m in (1, 4) for k in (10, 32)}
    autos = [row for row in run.rows if row["parameters"]["method"] == "auto"]
    assert [(row["bar_on"], row["passed"]) for row in autos] == [("best named", False)] * 4
    assert autos[0]["value"] == pytest.approx(1.12)
    beside = [row for row in run.rows if row.get("stage") == grid.BESIDE]
    assert {row["parameters"]["method"] for row in beside} == {"radix"}
    # Only methods near the best are tried on descending rows.
    tried = {row["parameters"]["method"] for row in run.rows if row["data"] == "descending"}
    assert tried == {"radix", "quick", "heap"}
    assert any(row.get("note", "").startswith("hopeless at 1 x 50") for row in run.rows)


def test_of_other_cells_nothing_is_learnt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "select.csv"
    run = grid_rows(path, monkeypatch, "other-float32")
    assert {(row["m"], row["n"], row["k"], row["data"]) for row in run.rows} == {(m, 70, 20, "random") for m in (2, 3)}
    autos = [row for row in run.rows if row["parameters"]["method"] == "auto"]
    assert [(row["bar_on"], row["bar"], row["passed"]) for row in autos] == [("best named", 1.15, True)] * 2
    assert learn.learn(rows.read(path)) == []


def test_other_cells_are_not_those_of_the_table() -> None:
    shipped = {tuple(entry[name] for name in learn.CELL[:-1]) for entry in json.loads(learn.TABLE.read_text())}
    for kind in ("cpu", "cuda"):
        cells = {(kind, *cell) for cell in itertools.product(grid.OTHER_ROWS[kind], grid.OTHER_N[kind], grid.OTHER_K)}
        assert len(cells) >= 27
        assert not shipped & cells


def test_a_grid_of_some_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid, "SIZES_ROWS", {"cpu": (4,)})
    monkeypatch.setattr(grid, "SIZES_N", {"cpu": (50,)})
    (case,) = SUITE.chosen("cpu", ["grid-uint8"])
    run = done(a_run(who=("heap",)), case)
    assert {row["parameters"]["method"] for row in run.rows} == {"heap", "auto"}
    assert {row["dtype"] for row in run.rows} == {"uint8"}


def test_autos_table_is_learnt_from_random_and_descending_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "select.csv"
    run = grid_rows(path, monkeypatch)
    entries = learn.learn(rows.read(path))
    # Radix takes 2 ms for descending rows: divided by 1.5, that is more than quick takes.
    assert entries == [
        {"device": "cpu", "rows": m, "n": 50, "k": k, "bytes": 4, "method": "quick", "options": {}}
        for m in (1, 4)
        for k in (10, 32)
    ]
    # The rows of the methods of least cost alone give the same table.
    assert learn.learn(learn.decisive(rows.read(path))) == entries
    assert {one["parameters"]["method"] for one in learn.decisive(rows.read(path))} == {"quick"}
    # A later run replaces the cells of an earlier one.
    what = {"who": "tonari", "m": 4, "n": 50, "k": 10, "dtype": "float32"}
    what |= {"parameters": {"method": "heap", "nan": "last", "group": 4}, "seconds_median": 5.0}
    what |= {"seconds_min": 5.0, "seconds_max": 5.0}
    run.shared["date"] = "9999-01-01T00:00Z"
    (case,) = SUITE.chosen("cpu", ["grid-float32"])
    run.write(case, [what | {"data": kind} for kind in ("random", "descending")])
    newer = learn.learn(rows.read(path))
    assert [entry["options"] for entry in newer if (entry["rows"], entry["k"]) == (4, 10)] == [{"group": 4}]
    assert sum(entry["method"] == "quick" for entry in newer) == 3


def test_the_shipped_table_of_auto_is_that_of_the_results() -> None:
    assert learn.learn(rows.read(SUITE.path)) == json.loads(learn.TABLE.read_text())


def test_learning_keeps_what_was_not_measured_again(tmp_path: Path) -> None:
    table = tmp_path / "auto_table.json"
    old = {"device": "cuda", "rows": 1, "n": 64, "k": 2, "bytes": 4, "method": "radix", "options": {}}
    again = {"device": "cpu", "rows": 1, "n": 64, "k": 2, "bytes": 4, "method": "heap", "options": {"buffer": "full"}}
    learn.merge(table, [old, again])
    learn.merge(table, [again | {"method": "quick", "options": {}}])
    assert json.loads(table.read_text()) == [again | {"method": "quick", "options": {}}, old]
    learn.merge(tmp_path / "none.json", [])
    assert json.loads((tmp_path / "none.json").read_text()) == []


def test_the_library_passes_its_proofs() -> None:
    run = a_run(select=importlib.import_module("tonari").select_k)
    found = [measure.measure(run, proof.Proof(torch.from_numpy(ROWS), 5), *variant) for variant in grid.variants("cpu")]
    assert [row.get("note") for row in found] == [None] * len(found)
    assert run.wrong == 0


def test_learning_writes_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learn, "TABLE", tmp_path / "auto_table.json")
    path = tmp_path / "select.csv"
    with pytest.raises(SystemExit, match="holds no rows of a grid"):
        main.main(["learn", "--csv", str(path)])
    grid_rows(path, monkeypatch)
    assert main.main(["learn", "--csv", str(path)]) == 0
    assert len(json.loads((tmp_path / "auto_table.json").read_text())) == 4
    assert "4 cells learnt, 4 in" in capsys.readouterr().out
