"""Tables of documents are written from rows, a ratio comes from one run, and every document agrees with its rows."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import build_parser, load
from benchmarks.harness.machine import ROOT
from benchmarks.harness.report import AGE, cells, files, report
from benchmarks.harness.report.cells import Kind
from benchmarks.harness.report.documents import names, written
from benchmarks.harness.report.history import History
from benchmarks.harness.report.results import Ambiguous, Missing, Results, ratio
from benchmarks.harness.report.table import (
    ALL_FRESH,
    ALL_STALE,
    LEGEND,
    SLICED,
    Column,
    Line,
    Table,
    _briefly,
    age,
    command,
    fill,
    render,
    wrapped,
)
from benchmarks.harness.rows import RESULTS, Row
from benchmarks.suites.exact_cuda import figures
from benchmarks.suites.tables import CODE, TABLES
from tests.helpers.report_rows import Judge, earlier, row


def text_of(kind: Kind, *rows: Row, **where: Any) -> str:
    """Return the text of one cell."""
    return kind(Results.of(rows), where or {"who": "tonari"}).text


# --- blocks ------------------------------------------------------------------------------------------------------

BEFORE = "# Title\n\n<!-- report: one -->\nold\n| lines |\n<!-- end report -->\n\nand text\n"


def texts(**found: str) -> Mapping[str, Callable[[], str]]:
    return {name: lambda words=words: words for name, words in found.items()}


def test_the_inside_of_a_block_is_replaced_and_nothing_else() -> None:
    after = written(BEFORE, texts(one="| new |"), where="x.md")
    assert after == "# Title\n\n<!-- report: one -->\n\n| new |\n\n<!-- end report -->\n\nand text\n"
    assert written(after, texts(one="| new |"), where="x.md") == after
    assert names(after) == ["one"]


def test_a_document_without_blocks_stays() -> None:
    assert written("text\n<!-- a comment -->\n", {}, where="x.md") == "text\n<!-- a comment -->\n"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            BEFORE.replace("report: one", "report: ones"),
            r"x\.md, line 3: no table is named 'ones'; did you mean 'one'\?",
        ),
        (BEFORE.replace("report: one", "report: zzz"), "no table is named 'zzz'; there are: one"),
        (BEFORE.replace("<!-- end report -->\n", ""), "x.md, line 3: the block 'one' has no end"),
        (BEFORE.replace("old", "<!-- report: one -->"), r"line 4: a block starts inside of 'one' \(line 3\)"),
        ("text\n<!-- end report -->\n", "x.md, line 2: the end of a block that has no start"),
    ],
)
def test_blocks_that_are_none(document: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        written(document, texts(one="| new |"), where="x.md")


# --- rows --------------------------------------------------------------------------------------------------------


def test_a_cell_shows_the_newest_run() -> None:
    rows = [row(seconds=2.0), earlier(seconds=3.0)]
    assert text_of(cells.seconds(), *rows) == "2.00 s"
    assert text_of(cells.seconds(bold=True), *reversed(rows)) == "**2.00 s**"
    assert text_of(cells.seconds_of_runs(), *rows) == "2.00 s (2.00 to 3.00 s)"
    assert text_of(cells.seconds_of_runs(), earlier(seconds=0.5e-3), row(seconds=2.0)) == "2.00 s (0.500 ms to 2.00 s)"


def test_a_newest_run_without_what_a_cell_needs_is_passed_over() -> None:
    both = [earlier(seconds=3.0), earlier(who="faiss", seconds=6.0)]
    assert text_of(cells.seconds({"who": "faiss"}), *both, row(seconds=2.0)) == "3.00 s"
    assert text_of(cells.against(who="faiss"), *both, row(seconds=2.0)) == "6.00 s (2.0×)"


def test_ratios_are_of_one_run_and_have_their_spread() -> None:
    rows = [row(seconds=2.0), row(who="faiss", seconds=8.0), earlier(seconds=4.0), earlier(who="faiss", seconds=12.0)]
    assert text_of(cells.times(who="faiss"), *rows) == "3.0 to 4.0×"
    assert text_of(cells.against(who="faiss"), *rows) == "8.00 s (3.0 to 4.0×)"
    assert text_of(cells.against_of_runs(who="faiss"), *rows) == "8.00 s (8.00 to 12.0 s)"
    assert text_of(cells.against_newest(who="faiss"), *rows) == "8.00 s (4.0×)"
    assert text_of(cells.share(who="faiss"), *rows) == "0.25 to 0.33"
    assert text_of(cells.over({"who": "tonari"}), *rows, who="faiss") == "4.0×"


@pytest.mark.parametrize("name", ["date", "commit", "machine", "isa", "threads", "case", "device"])
def test_a_ratio_across_runs_is_refused(name: str) -> None:
    other = row(who="faiss", seconds=8.0) | {name: "another"}
    with pytest.raises(ValueError, match=rf"not of one run: they differ in {name} \('another' and"):
        ratio(row(), other)
    if name in ("date", "commit"):
        with pytest.raises(Missing, match="no run has both who='tonari' and who='faiss'"):
            text_of(cells.times(who="faiss"), row(), other)


def test_rows_of_several_machines_are_not_mixed() -> None:
    with pytest.raises(Ambiguous, match="several machines have who='tonari': cpu a machine avx2 2; cpu b avx2 2"):
        text_of(cells.seconds(), row(), row(machine="b"))


def test_rows_that_differ_in_what_was_not_asked() -> None:
    with pytest.raises(Ambiguous, match="2 rows of one run have who='tonari'"):
        text_of(cells.seconds(), row(k=1), row(k=2, seconds=2.0))
    assert text_of(cells.seconds(), row(k=1), row(k=2, seconds=2.0), who="tonari", k=2) == "2.00 s"


def test_a_row_for_each_bar_is_one_measurement() -> None:
    assert text_of(cells.recall_alone(), row(bar_on="a", repeats=None), row(bar_on="b", recall=0.5)) == "0.5000"


def test_no_table_has_rows_that_were_made_smaller_or_hold_no_measurement() -> None:
    assert Results.of([row(scale=0.5), row(seconds=None, note="not reached"), row(stage="compare")]).rows == []
    with pytest.raises(Missing, match="has no seconds: over the cap"):
        text_of(cells.seconds(), row(seconds=None, extras={"series": "x"}, note="over the cap"))


def test_patterns_parameters_and_alternatives() -> None:
    rows = [row(parameters={"k": 1}, seconds=1.0), row(parameters={"k": 2}, extras={"rate": 5.0}, seconds=2.0)]
    assert text_of(cells.seconds(), *rows, **{"parameters.k": 2}) == "2.00 s"
    assert text_of(cells.seconds(), *rows, **{"parameters.k": 1, "who": "ton*"}) == "1.00 s"
    assert text_of(cells.seconds(), *rows, **{"extras.rate": None, "who": ("faiss", "tonari")}) == "1.00 s"
    assert text_of(cells.number("extras.rate", ".1f"), *rows, parameters={"k": 2}) == "5.0"


def test_bars_are_counted() -> None:
    rows = [row(passed=True, value=1.0), row(passed=False, value=3.0, k=2), row(passed=None, k=3)]
    assert text_of(cells.bars_kept(), *rows) == "1 of 2"
    assert text_of(cells.largest_value(), *rows) == "3.00"
    with pytest.raises(Missing):
        text_of(cells.bars_kept(), row())


def test_of_each_cell_of_a_grid_the_newest_row_counts() -> None:
    rows = [
        row(passed=False, value=3.0, n=10_000, m=1, d=3, data="sift", date="2026-11-21T11:00Z"),
        row(passed=True, value=1.1, n=10_000, m=1, d=3, data="sift", date="2026-11-22T11:00Z"),
        row(passed=False, value=1.3, n=20_000, m=1, d=3, data="sift", date="2026-11-21T11:00Z"),
        row(passed=False, value=1.25, n=20_000, m=2000, d=3, data="sift", date="2026-11-21T11:00Z"),
        row(passed=None, n=20_000, m=3000, d=3, data="sift"),
    ]
    assert text_of(cells.share_within(1.15), *rows) == "1 of 3 (33 %)"
    assert text_of(cells.share_within(1.25), *rows) == "2 of 3 (67 %)"
    beyond = "sift d = 3, 20,000 × 1: 1.30; sift d = 3, 20,000 × 2,000: 1.25"
    assert text_of(cells.cells_beyond(1.15), *rows) == beyond
    assert text_of(cells.cells_beyond(1.3), *rows) == "none"
    with pytest.raises(Missing):
        text_of(cells.share_within(1.15), row())


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(2.5e-6, "2.50 µs"), (1.193e-4, "0.119 ms"), (0.0787, "78.7 ms"), (0.1056, "0.106 s"), (2.709, "2.71 s"),
     (65.11, "65.1 s"), (117.3, "117 s"), (2168.0, "2,170 s")],
)  # fmt: skip
def test_seconds_as_text(seconds: float, expected: str) -> None:
    assert cells.seconds_text(seconds) == expected


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [([1.8617], "1.86×"), ([4.06], "4.1×"), ([37.5], "38×"), ([6830.0], "6,800×"), ([1.8, 4.11], "1.8 to 4.1×"),
     ([0.84, 0.681], "0.68 to 0.84×"), ([4.06, 4.09], "4.1×")],
)  # fmt: skip
def test_ratios_as_text(ratios: list[float], expected: str) -> None:
    assert cells.times_text(ratios) == expected


# --- tables ------------------------------------------------------------------------------------------------------

TABLE = Table(
    where={"who": "tonari"},
    head="case",
    columns=(Column("ours", cells.seconds()), Column("faiss", cells.against(who="faiss"), sparse=True)),
    lines=(Line("tiny", {"case": "tiny"}), Line("small", {"case": "small"})),
)
ROWS = (row(seconds=2.0), row(who="faiss", seconds=8.0, rows_timed=5), row(case="small", seconds=0.25, repeats=5))


def test_a_table_and_what_stands_below_it() -> None:
    assert render(TABLE, Results.of(ROWS), Judge()).splitlines() == [
        "| case | ours | faiss |",
        "| --- | --- | --- |",
        r"| tiny | 2.00 s | 8.00 s\* (4.0×) |",
        "| small | 0.250 s | |",
        "",
        "Medians of 3 to 5 rounds on a machine, 2 threads, avx2, 2026-01-01:",
        r"`python -m benchmarks run exact_cpu --isa avx2 --case tiny --case small`. "
        r"\* Extrapolated from a part of the queries.",
    ]


def test_a_missing_row_is_named() -> None:
    with pytest.raises(Missing, match="'small', 'ours': no row has who='tonari', case='small'"):
        render(TABLE, Results.of(ROWS[:2]), Judge())
    sparse = Table(columns=(Column("ours", cells.seconds(), sparse=True),), lines=(Line("tiny", {"who": "nobody"}),))
    with pytest.raises(Missing, match="the line 'tiny' has no rows"):
        render(sparse, Results.of(ROWS), Judge())


def test_a_line_has_cells_of_its_own_kind() -> None:
    line = Line("tiny", {"case": "tiny"}, {"ours": cells.text("words")})
    table = Table(where=TABLE.where, columns=TABLE.columns, lines=(line,))
    assert "| tiny | words | 8.00 s" in render(table, Results.of(ROWS), Judge())


def test_figures_older_than_the_code_are_marked_or_the_page_says_so() -> None:
    filled = fill(TABLE, Results.of([*ROWS, earlier(seconds=3.0, case="small", date="2026-01-02T00:00Z")]))
    some = filled.text(Judge("0fedcba"))
    assert "| small | 3.00 s † | |" in some
    assert "2.00 s |" in some
    assert age(filled.rows, Judge("0fedcba")) == LEGEND
    everything = Judge("0fedcba", "abcdef0")
    assert "3.00 s † | |" in filled.text(everything)  # of a page on which other tables are newer
    assert "†" not in filled.text(everything, page_is_old=True)
    assert age(filled.rows, everything) == ALL_STALE
    assert age(filled.rows, Judge()) == ALL_FRESH
    assert "2026-01-01 and 2026-01-02:" in unwrapped(some)
    assert "abcdef0" not in some


def test_a_table_with_a_caption_has_one_sentence_with_dates_and_no_marks() -> None:
    rows = [*ROWS, earlier(seconds=3.0, case="small", date="2026-01-02T00:00Z")]
    filled = fill(replace(TABLE, caption="; words."), Results.of(rows))
    said = "Medians of 3 rounds on a machine, 2026-01-01 to 2026-01-02; words."
    for judge in (Judge(), Judge("0fedcba"), Judge("0fedcba", "abcdef0")):
        text = filled.text(judge)
        assert unwrapped(text).endswith(rf"{said} \* {SLICED[3:]}")
        assert "†" not in text


@pytest.mark.parametrize(
    ("repeats", "said"),
    [
        ((1,), "One round each on"),
        ((1, 3), "Medians of 3 rounds, or single runs, on"),
        ((7, 1, 3), "Medians of 3 to 7 rounds, or single runs, on"),
        ((3, 7), "Medians of 3 to 7 rounds on"),
    ],
)
def test_a_single_run_is_no_median(repeats: tuple[int, ...], said: str) -> None:
    rows = [row | {"repeats": count} for row, count in zip(ROWS * 3, repeats, strict=False)]
    assert said in _briefly(rows)


def unwrapped(text: str) -> str:
    """Return a text with each paragraph on one line."""
    return text.replace("\n", " ")


def test_commands_name_the_cases_while_they_are_few() -> None:
    def of(*cases: str, **columns: Any) -> str:
        return command([row(case=case, **columns) for case in cases])

    assert of("a", "b", "a") == "python -m benchmarks run exact_cpu --isa avx2 --case a --case b"
    assert of("a", device="cuda") == "python -m benchmarks run exact_cpu --device cuda --case a"
    many = [f"curve-number-{i}" for i in range(9)]
    assert of(*many).endswith("--isa avx2 --case 'curve-number-*'")
    assert of(*many, "curve-number").endswith("--isa avx2 --case 'curve-number*'")
    assert of(*many, "another").endswith("run exact_cpu --isa avx2")


def test_no_line_ends_within_a_command() -> None:
    lines = wrapped("word " * 23 + "`a command with several words` and more").splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("`a command with several words`")


# --- history -----------------------------------------------------------------------------------------------------


def git(folder: Path, *arguments: str) -> str:
    """Run a git command as a made-up author."""
    somebody = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    return subprocess.run(
        ["git", *somebody, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, **files: str) -> str:
    """Write files, commit them, and return the short name of the commit."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "a change")
    return git(folder, "rev-parse", "--short", "HEAD")


@pytest.mark.process
def test_what_is_older_than_the_code(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    first = commit(tmp_path, **{"code/a.py": "1", "code/cuda/b.py": "1", "docs.md": "1"})
    second = commit(tmp_path, **{"code/cuda/b.py": "2", "docs.md": "2"})
    history = History(tmp_path, {})
    assert history.complete
    assert history.stale(first, ("code",))
    assert not history.stale(first, ("code/a.py",))
    assert not history.stale(first, ("code", ":!code/cuda"))
    assert not history.stale(second, ("code",))
    for unknown in ("unknown", f"{second}+", f"{second}+split", "none: before this", "0123456789abcdef"):
        assert history.stale(unknown, ("code",)), unknown
    commit(tmp_path, **{"code/cuda/b.py": "1"})  # as it was measured
    assert not History(tmp_path, {}).stale(first, ("code",))


@pytest.mark.process
def test_without_a_whole_history_nothing_is_written(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("<!-- report: overview -->\n<!-- end report -->\n")
    assert not History(tmp_path, {}).complete
    with pytest.raises(SystemExit, match=r"no git history, or a part of it only.*git fetch --unshallow"):
        report(TABLES, CODE, check=False, root=tmp_path)
    assert (tmp_path / "README.md").read_text() == "<!-- report: overview -->\n<!-- end report -->\n"
    git(tmp_path, "init", "-q", "source")
    commit(tmp_path / "source", a="1")
    commit(tmp_path / "source", a="2")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{tmp_path}/source", "shallow")
    assert not History(tmp_path / "shallow", {}).complete


# --- this repository ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results() -> Results:
    return Results.read(RESULTS)


def test_every_suite_has_code_that_is_there(results: Results) -> None:
    assert {(row["suite"], row["device"]) for row in results.rows} <= set(CODE)
    for paths in CODE.values():
        for path in paths:
            assert (ROOT / path.removeprefix(":!")).exists(), path


def test_every_table_is_in_a_document_and_every_block_is_a_table() -> None:
    used = [name for path in files(ROOT) for name in names(path.read_text())]
    assert set(used) == {*TABLES, AGE}


def test_every_page_with_tables_says_once_how_old_they_are() -> None:
    for path in files(ROOT):
        found = names(path.read_text())
        assert found.count(AGE) == any(not TABLES[name].caption for name in found if name != AGE), path


@pytest.mark.parametrize("name", TABLES)
def test_commands_below_tables_name_cases_that_there_are(name: str, results: Results) -> None:
    found = re.findall(r"`python -m benchmarks (run [^`]*)`", render(TABLES[name], results, Judge()))
    assert bool(found) is not bool(TABLES[name].caption)
    for words in found:
        options = build_parser().parse_args(shlex.split(words))
        suite = load(options.suite)
        assert suite.chosen(options.device or "cpu", options.case)


@pytest.mark.process
def test_documents_are_as_their_rows_say(capsys: pytest.CaptureFixture[str]) -> None:
    if not History(ROOT, CODE).complete:
        pytest.skip("needs git's whole history")
    assert report(TABLES, CODE, check=True) == 0, capsys.readouterr().err


def test_a_figure_typed_by_hand_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmarks.harness.report.History", lambda root, code: Judge())
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    block = "<!-- report: {} -->\n<!-- end report -->\n"
    page.write_text("words\n" + block.format("overview") + block.format("age"))
    (tmp_path / "README.md").write_text("words\n")
    assert report(TABLES, CODE, check=True, root=tmp_path) == 1
    assert report(TABLES, CODE, check=False, root=tmp_path) == 0
    assert capsys.readouterr().out == f"{page}\n"
    assert report(TABLES, CODE, check=True, root=tmp_path) == 0
    right = page.read_text()
    page.write_text(right.replace("| **", "| **1", 1))
    assert report(TABLES, CODE, check=True, root=tmp_path) == 1
    shown = capsys.readouterr().err
    assert "-| graph of 300,000 × 768, like text embeddings; H200 | **1" in shown
    assert "1 documents differ from their rows; python -m benchmarks report writes them" in shown
    assert report(TABLES, CODE, check=False, root=tmp_path) == 0
    assert page.read_text() == right


def test_the_figure_of_exact_search_shows_the_newest_run(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs it")
    found = [
        row(who, seconds, suite="exact_cuda", device="cuda", case=case, d=128, k=k, **run)
        for case, k in (("search-k10", 10), ("search-k64", 64), ("graph-sift", 10))
        for who, seconds in (("tonari", 0.005 * k), ("cuvs", 0.2), ("torch tf32", 0.1))
        for run in ({}, {"date": "2025-12-31T00:00Z"})
    ]
    (figure,) = figures.figures(found)
    drawn = figure.write(tmp_path)
    assert drawn == tmp_path / "exact_cuda-search.svg"
    assert "cuVS" in drawn.read_text()
    newest = [one for one in found if one["date"].startswith("2026") and one["case"].startswith("search")]
    assert figures.curves(newest, "k") == {
        "cuVS": [(10, 200.0), (64, 200.0)],
        "flash, float32": [],
        "flash, float16": [],
        "tonari": [(10, 50.0), (64, 320.0)],
    }
    assert list(figures.figures([])) == []
