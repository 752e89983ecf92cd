"""docs/papers.md: verdicts follow from two numbers, and every named file and test exists."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.harness.machine import ROOT
from benchmarks.harness.report.results import Missing, Results
from benchmarks.harness.report.table import render
from benchmarks.suites.tables.papers import claims, measures
from benchmarks.suites.tables.papers.claims import Claim, Rule, always, at_most, reaches, replaced, table
from tests.helpers.report_rows import Judge, earlier, row

OURS, THEIRS = {"who": "tonari"}, {"who": "peer"}
RIVALRY = measures.speed_up(OURS, THEIRS)
HOW = "`python -m benchmarks run exact_cpu --case tiny`"


def cells(claim: Claim, *rows: Any) -> list[str]:
    """Return the cells of a claim's line."""
    return rendered(claim, *rows).splitlines()[2].strip("| ").split(" | ")


def rendered(claim: Claim, *rows: Any) -> str:
    """Return the table of a claim."""
    return render(table([claim]), Results.of(rows), Judge())


# --- verdicts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "numbers", "verdict"),
    [
        (reaches, (0.5, 4.2), "holds"),
        (reaches, (0.5, 4.1), "holds, by less"),
        (reaches, (0.5, 1.0), "does not hold"),
        (always, (4.2, 9.0), "holds"),
        (always, (4.1, 4.2), "in part"),
        (always, (1.5, 4.1), "does not hold"),
        (at_most, (1.0, 4.2), "holds"),
        (at_most, (4.2, 4.3), "in part"),
        (at_most, (4.3, 9.0), "does not hold"),
        (replaced, (4.2, 9.0), "replaced, faster"),
        (replaced, (4.1, 9.0), "replaced, faster in part"),
        (replaced, (4.0, 4.1), "replaced, slower"),
    ],
)
def test_a_verdict_follows_from_the_papers_number_and_ours(rule: Rule, numbers: Sequence[float], verdict: str) -> None:
    assert rule(4.2, numbers) == verdict
    assert rule(4.2, numbers[::-1]) == verdict


def test_a_line_has_the_papers_figure_ours_where_it_was_measured_and_the_verdict() -> None:
    claim = Claim("faster", "up to 3× (IV)", HOW, RIVALRY, 3)
    rows = (row(seconds=2.0), row(who="peer", seconds=8.0))
    assert cells(claim, *rows) == ["faster", "up to 3× (IV)", "4.0×", "a machine, 2026-01-01", "holds"]


def test_without_a_row_the_command_is_shown_and_the_verdict_open() -> None:
    claim = Claim("faster", "up to 3× (IV)", HOW, RIVALRY, 3)
    open_line = ["faster", "up to 3× (IV)", f"not measured yet: {HOW}", "", "open"]
    measured = Claim("slower", "", "", measures.seconds(OURS), form=claims.SECONDS)
    lines = render(table([claim, measured]), Results.of([row()]), Judge()).splitlines()
    assert [cell.strip() for cell in lines[2].strip("|").split("|")] == open_line
    assert "1.00 s" in lines[3]
    nothing = Claim("faster", "", "no case does")
    assert nothing.here(Results.of([row()]), {}).text == "not measured: no case does"


def test_a_figure_older_than_the_code_is_marked_and_its_verdict_stays() -> None:
    claim = Claim("fast", "2 s", HOW, measures.seconds(OURS), 2, at_most, claims.SECONDS)
    other = Claim("faster", "", HOW, measures.seconds(THEIRS), 2, at_most, claims.SECONDS)
    rows = (earlier(seconds=1.5), row(who="peer", seconds=3.0))
    text = render(table([claim, other]), Results.of(rows), Judge("0fedcba"))
    assert "| fast | 2 s | 1.50 s † | a machine, 2025-12-31 | holds |" in text
    assert "| faster | | 3.00 s | a machine, 2026-01-01 | does not hold |" in text


def test_of_up_to_the_largest_is_shown_with_its_place_else_the_range() -> None:
    points = {f"k = {k}": measures.speed_up({**OURS, "k": k}, {**THEIRS, "k": k}) for k in (1, 2, 3)}
    rows = [row(k=k) for k in (1, 2)] + [row(who="peer", seconds=4.0 * k, k=k, rows_timed=5) for k in (1, 2)]
    assert cells(Claim("a", "b", HOW, measures.over(points)), *rows)[2] == r"8.0×\* (k = 2)"
    assert cells(Claim("a", "b", HOW, measures.over(points), rule=always), *rows)[2] == r"4.0 to 8.0×\*"
    assert cells(Claim("a", "b", HOW, measures.over(points)))[2] == f"not measured yet: {HOW}"


# --- what is measured --------------------------------------------------------------------------------------------


def numbers(measure: measures.Measure, *rows: Any) -> list[float]:
    return [found.number for found in measure(Results.of(rows))]


def test_the_machine_that_was_measured_last_counts() -> None:
    rows = (earlier(seconds=3.0, machine="old"), row(seconds=2.0, machine="new"), earlier(seconds=9.0, machine="new"))
    assert numbers(measures.seconds(OURS), *rows) == [2.0]


def test_a_ratio_is_of_the_last_machine_that_has_both() -> None:
    both = (earlier(seconds=3.0, machine="old"), earlier(who="peer", seconds=9.0, machine="old"))
    assert numbers(RIVALRY, *both, row(seconds=2.0, machine="new")) == [3.0]
    assert numbers(RIVALRY, *both, row(seconds=2.0), row(who="peer", seconds=8.0)) == [4.0]
    with pytest.raises(Missing, match="no run has both"):
        RIVALRY(Results.of([both[0], row(who="peer")]))


def test_all_runs_of_a_ratio_are_shown() -> None:
    rows = (row(seconds=2.0), row(who="peer", seconds=8.0), earlier(seconds=4.0), earlier(who="peer", seconds=12.0))
    assert numbers(RIVALRY, *rows) == [3.0, 4.0]


def test_what_was_over_the_cap_is_no_number() -> None:
    over_the_cap = row(who="peer", seconds=None, extras={"series": "x"}, note="over the cap")
    with pytest.raises(Missing):
        RIVALRY(Results.of([row(), over_the_cap]))


def test_numbers_of_two_runs_have_no_ratio() -> None:
    one, other = measures.seconds(OURS), measures.seconds(THEIRS)
    assert numbers(measures.relative(one, other), row(seconds=6.0), row(who="peer", seconds=3.0)) == [2.0]
    with pytest.raises(Missing, match="not of one run"):
        measures.relative(one, other)(Results.of([row(), earlier(who="peer")]))


def test_the_fastest_of_the_newest_run_at_a_recall() -> None:
    def at(recall: float, seconds: float, **columns: Any) -> Any:
        return row(seconds=seconds, extras={"recall_10": recall}, k=int(1e4 * recall), **columns)

    rows = (at(0.98, 1.0), at(0.991, 3.0), at(0.999, 5.0), at(0.995, 2.0, date="2025-12-31T00:00Z"))
    (found,) = measures.fastest(OURS, 0.99)(Results.of(rows))
    assert (found.number, found.at) == (3.0, "recall@10 0.9910")
    with pytest.raises(Missing, match="at recall 1"):
        measures.fastest(OURS, 1.0)(Results.of(rows))


def test_other_numbers() -> None:
    few, many = row(seconds=1.0, m=1), row(who="peer", seconds=10.0, m=100)
    assert numbers(measures.per_row(OURS, THEIRS), few, many) == [pytest.approx(10.0)]
    assert numbers(measures.rate(THEIRS), many) == [10.0]
    phases = row(extras={"sort": 1.0, "find": 5.0, "process": 3.0})
    assert numbers(measures.portion(OURS, "extras.sort", "extras.process"), phases) == [0.25]
    recall = measures.entry(OURS, "recall")
    assert numbers(recall, earlier(recall=0.9), row()) == [0.9]
    assert numbers(measures.best_of(RIVALRY, recall), row(seconds=5.0, recall=0.9), many) == [2.0]


def test_counters_and_what_they_lack() -> None:
    counted = measures.counted(OURS, "threshold_ratio")
    rows = [row(seconds=None, extras={"counters": {"threshold_ratio": 0.75}})]
    assert numbers(counted, *rows) == [0.75]
    assert numbers(measures.missing_of(counted), *rows) == [0.25]


def test_the_least_of_several_ways() -> None:
    peer = row(who="peer", seconds=3.0)
    assert numbers(measures.least_of(measures.seconds(OURS), measures.seconds(THEIRS)), row(seconds=2.0), peer) == [2.0]


def test_the_deviation_over_kinds_of_data() -> None:
    measure = measures.deviation(OURS, "data", ("sift", "random"))
    rows = [row(data="sift", seconds=1.0), row(data="random", seconds=3.0)]
    assert numbers(measure, *rows) == [0.5]
    with pytest.raises(Missing, match="not of one run"):
        measure(Results.of([rows[0], earlier(data="random")]))
    with pytest.raises(Missing):
        measure(Results.of(rows[:1]))


def test_how_often_one_is_the_best() -> None:
    def point(k: int) -> dict[str, measures.Measure]:
        return {who: measures.seconds({"who": who, "k": k}) for who in ("tonari", "peer")}

    measure = measures.share_best({str(k): point(k) for k in (1, 2, 3)}, "tonari")
    rows = [row(k=k, seconds=float(k)) for k in (1, 2, 3)] + [row(who="peer", k=k, seconds=1.5) for k in (1, 2)]
    (found,) = measure(Results.of(rows))
    assert (found.number, found.at) == (0.5, "1 of 2")


# --- the page ----------------------------------------------------------------------------------------------------

NAMED = re.compile(r"`((?:benchmarks|docs|native|src|tests)/[\w./-]+)(?:::(\w+))?`")


def missing(page: str) -> list[str]:
    """Return the files and tests that a page names and that do not exist."""
    found = []
    for path, test in NAMED.findall(page):
        file: Path = ROOT / path
        if not file.exists() or (test and not re.search(rf"^ *def {test}\(", file.read_text(), re.MULTILINE)):
            found.append(f"{path}::{test}" if test else path)
    return found


def test_every_file_and_test_that_the_page_names_exists() -> None:
    page = (ROOT / "docs" / "papers.md").read_text()
    assert len(NAMED.findall(page)) > 50
    assert missing(page) == []


def test_what_does_not_exist_is_found() -> None:
    here = "tests/benchmarks/test_claims.py"
    page = f"`{here}` `{here}::test_other_numbers` `{here}::test_other` `src/gone.py` `docs`"
    assert missing(page) == [f"{here}::test_other", "src/gone.py"]


def test_every_technique_has_a_test() -> None:
    page = (ROOT / "docs" / "papers.md").read_text()
    rows = [
        line for line in page.splitlines() if line.startswith("|") and re.search(r"`(src|native|benchmarks)/", line)
    ]
    assert rows
    assert [line for line in rows if "`tests/" not in line] == []
