"""The claims on selection find the rows that their cases write."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import bench_checks
from tests.helpers.bench_checks import Still, done
from tests.helpers.report_rows import row

torch = pytest.importorskip("torch", reason="these benchmarks make their data with torch")

from benchmarks import __main__ as main  # noqa: E402
from benchmarks.harness.report.results import Results  # noqa: E402
from benchmarks.papers.komarov2014 import graphs  # noqa: E402
from benchmarks.papers.komarov2014.selection import PAPER as KOMAROV  # noqa: E402
from benchmarks.papers.matsumoto2015 import PAPER as MATSUMOTO  # noqa: E402
from benchmarks.papers.tang2015 import share  # noqa: E402
from benchmarks.papers.tang2015.selection import PAPER as TANG  # noqa: E402
from benchmarks.suites.tables.papers import komarov2014, matsumoto2015, tang2015  # noqa: E402
from benchmarks.suites.tables.papers.claims import Claim, found_of  # noqa: E402

COUNTERS = {"compression_ratio": 8.0, "threshold_ratio": 0.5}


def rows_of(paper: Any, kind: str) -> list[Any]:
    """Return the rows that a run of all figures writes, with one second each."""
    cases = {case.figure: case.name for case in paper.suite().cases}
    return [
        row(
            suite=paper.name,
            case=cases[point.figure],
            device=kind,
            data=point.data,
            n=point.n,
            m=point.rows,
            k=point.k,
            parameters={"method": point.method, **point.options},
            extras={"series": point.series} | ({"counters": COUNTERS} if point.counted else {}),
            seconds=None if point.counted else 1.0,
        )
        for point in paper.points(bench_checks.a_run(device=Still(kind=kind)))
    ]


def rows_of_run(run: Any) -> list[Any]:
    """Return the rows of a small run as if it had the full size."""
    return [row(**{"seconds": one["seconds_median"]} | one | {"scale": 1.0, "date": "now"}) for one in run.rows]


def finished() -> list[Any]:
    run = bench_checks.a_run(suite="matsumoto2015", scale=2**-7)
    return rows_of_run(done(run, *main.load("matsumoto2015").chosen("cpu", ["finish"])))


def whole_graphs(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    def measure(run: Any, metric: str, points: Any, k: int) -> list[Any]:
        return [
            {"who": who, "n": len(points), "m": len(points), "k": k, "seconds_median": 1.0}
            for who in ("tonari", graphs.WHO)
        ]

    monkeypatch.setattr(graphs, "measure", measure)
    monkeypatch.setattr(graphs.hard, "make", lambda kind, n, m, d, where: SimpleNamespace(points=range(n)))
    run = bench_checks.a_run(suite="komarov2014", device=Still(kind="cuda"))
    for case in main.load("komarov2014").chosen("cuda", ["graph-*"]):
        done(run, case)
    return rows_of_run(run)


def shared(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The case for CUDA, with all arrays in host memory."""
    empty: Callable[..., Any] = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *args, pin_memory=False, **options: empty(*args, **options))
    run = bench_checks.a_run(suite="tang2015", device=Still(kind="cuda"))
    (case,) = main.load("tang2015").chosen("cuda", ["share"])
    done(run, case.resized(n=1100, m=20, d=8))
    assert [one["k"] for one in run.rows if one["extras"]["series"] == "host"] == list(share.KS)
    assert run.wrong == 0
    return rows_of_run(run)


def found(claims: tuple[Claim, ...], paper: str, rows: list[Any]) -> dict[str, int]:
    """Return for each claim, by its first words, how many of its numbers the paper's own cases measure."""
    results = Results.of(rows)
    own = [claim for claim in claims if f"benchmarks run {paper}" in claim.how]
    return {claim.said: len(found_of(claim, results)) for claim in own}


def test_claims_of_matsumoto2015() -> None:
    rows = [*rows_of(MATSUMOTO, "cpu"), *rows_of(MATSUMOTO, "cuda"), *finished()]
    counts = found(matsumoto2015.CLAIMS, "matsumoto2015", rows)
    counts.pop(next(said for said in counts if "the whole of TH-heap" in said))
    assert all(counts.values())
    assert [count for said, count in counts.items() if "the paper's n" in said] == [4, 4]
    (beside_the_heap,) = (count for said, count in counts.items() if "on the same survivors" in said)
    assert beside_the_heap >= 10
    (falls,) = (claim for claim in matsumoto2015.CLAIMS if claim.said.startswith("With n_S = 8 k"))
    assert [one.number for one in found_of(falls, Results.of(rows))] == [1.0, 1.0]


def test_claims_of_komarov2014(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*rows_of(KOMAROV, "cuda"), *whole_graphs(monkeypatch)]
    counts = found(komarov2014.CLAIMS, "komarov2014", rows)
    assert all(counts.values())
    assert counts["Faster than insertion: 8192 rows of 2¹³ to 2¹⁶ values"] == 4 * 5
    assert counts["Faster than insertion: 32 to 16384 rows of 2¹⁵ values"] == 10 * 5
    assert [count for said, count in counts.items() if "quick multi-select, d = 128" in said] == [4 * 3] * 3


def test_claims_of_tang2015(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*rows_of(TANG, "cuda"), *shared(monkeypatch)]
    counts = found(tang2015.CLAIMS, "tang2015", rows)
    assert all(counts.values())
    assert counts["Instead: exact search compared with distances and then that merge queue, k = 2⁸ and 2¹⁰"] == 2
