"""tonari report: the page, the files that it reads, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tests.helpers.html_checks import check_page
from tonari import io

N, K = 300, 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.npy and g.npz."""
    points = checks.gaussian(N, 8, seed=1)
    io.write(tmp_path / "points.npy", points)
    tonari.knn_graph(points, K, method="nn-descent", recall=0.5, seed=0).save(tmp_path / "g.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_report_writes_the_page_of_the_library(folder: Path) -> None:
    told = run("report", "g.npz", "-o", "r.html").stdout
    page = (folder / "r.html").read_text()
    assert told == f"wrote r.html, {(folder / 'r.html').stat().st_size:,} bytes\n"
    assert page == tonari.KNNGraph.load("g.npz").to_html(title="g.npz")
    assert "Measured when it was built" in check_page(page)


def test_points_have_the_recall_measured(folder: Path) -> None:
    points = io.read("points.npy")
    graph = tonari.knn_graph(points[:, :4].copy(), K)  # so that neighbours are missing
    graph.save("poor.npz")
    facts = as_json("report", "poor.npz", "points.npy", "-o", "r.html", "--sample", "50", "--seed", "3")
    assert facts["recall"] == vars(graph.recall(points, sample=50, seed=3))
    assert facts["recall"] != vars(graph.recall(points, sample=50, seed=0))
    assert (facts["n"], facts["k"], facts["output"]) == (N, K, "r.html")
    assert "Measured now, against the exact answer of 50 random points" in check_page((folder / "r.html").read_text())


def test_a_directory_shows_its_plan(folder: Path) -> None:
    tonari.build_graph("points.npy", K, "graph", device="cpu")
    facts = as_json("report", "graph", "points.npy", "-o", "r.html")
    said = check_page((folder / "r.html").read_text())
    assert facts["recall"]["by_index"] == 1
    assert "Its plan route exact" in said
    assert "For it, rows: 300 rows in" in said
    assert "no neighbour can be missing" in said


def test_what_cannot_be_reported_is_refused(folder: Path) -> None:
    assert ".html" in refused("report", "g.npz", "-o", "r.pdf", code=2)
    (folder / "r.html").write_text("mine")
    assert "--force replaces it" in refused("report", "g.npz", "-o", "r.html", code=1)
    assert "holds a graph, expected the points" in refused(
        "report", "g.npz", "g.npz", "-o", "r.html", "--force", code=1
    )
    for option in (("--sample", "9"), ("--key", "x"), ("--threads", "1"), ("--progress",)):
        line = refused("report", "g.npz", "-o", "new.html", *option, code=2)
        assert "there are no POINTS to measure" in line
    assert (folder / "r.html").read_text() == "mine"
    assert "not a whole KNNGraph file" in refused("report", "points.npy", "-o", "new.html", code=1)
    assert not (folder / "new.html").exists()
