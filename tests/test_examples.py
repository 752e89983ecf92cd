"""The examples run and print the promised output, at a size for tests."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.html_checks import check_page
from tonari import io
from tonari.metrics.reference import brute

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    """An example as a module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_beyond_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    beyond = example("beyond_memory")
    beyond.main(["--points", "9000", "-k", "5", "--memory", "12MB", "--out", str(tmp_path / "graph")])
    said = capsys.readouterr().out
    assert "9,000 points of 64 dimensions: 2 MB, and a budget of 12MB" in said
    assert re.search(r"interrupted after .* s, with [1-9]\d* tasks done", said)
    assert "resumed, and complete after" in said
    points = beyond.Drawn(9000).rows(0, 9000)
    assert np.array_equal(beyond.Drawn(9000).rows(4000, 8500), points[4000:8500])
    graph = tonari.KNNGraph.open(tmp_path / "graph")
    rows = np.arange(0, 9000, 90)
    assert_same_neighbors(
        tonari.Neighbors(graph.distances[rows], graph.indices[rows]), brute(points[rows], points, 5, self_ids=rows)
    )


def test_catalogue(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue = example("catalogue")
    monkeypatch.setattr(catalogue, "ROWS_AT_ONCE", 300)
    catalogue.main(["--spectra", "2000", "--images", "1000", "-k", "7", "--folder", str(tmp_path)])
    said = capsys.readouterr().out
    assert "2,000 galaxies with spectra, 1,000 without" in said
    assert re.search(r"7 neighbours each, file to file, in .* s: [\d,]+ queries a second", said)
    spread, all_of_them = map(float, re.search(r"error ([\d.]+) .* off by ([\d.]+)\n", said).groups())  # type: ignore[union-attr]
    assert 0 < spread < all_of_them / 2
    points, queries = np.load(tmp_path / "spectra.npy"), np.load(tmp_path / "images.npy")
    found = tonari.Neighbors(*map(np.array, io.read_ground_truth(tmp_path / "neighbours.ibin")))
    assert_same_neighbors(found, brute(queries, points, 7))
    known = catalogue.write_catalogue(tmp_path / "again.npy", 2000, seed=1_000_000)
    assert np.array_equal(np.load(tmp_path / "again.npy"), points)
    np.testing.assert_array_equal(catalogue.estimate(found, known), known[found.indices].mean(axis=1))


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example("report").main(["--out", str(tmp_path), "--points", "1000"])
    page = (tmp_path / "report.html").read_text()
    assert "1,000 SIFT descriptors, k = 10" in check_page(page)
    assert capsys.readouterr().out == f"wrote {tmp_path / 'report.html'}, {len(page.encode()):,} bytes\n"


@pytest.mark.process
@pytest.mark.parametrize("width", [360, 1400])
def test_a_page_fits_its_window_by_day_and_by_night(width: int, tmp_path: Path) -> None:
    report = example("report")
    browser = report.browser()
    if browser is None:
        pytest.skip("no Chromium here: how the page looks is not checked")
    image = pytest.importorskip("PIL.Image")
    points = io.read(EXAMPLES / "sift-photo-10k.bvecs")[:500].astype(np.float32)
    page = tmp_path / "page.html"
    page.write_text(tonari.knn_graph(points, 5).to_html(points))
    grounds = []
    for dark in (False, True):
        report.picture(page, tmp_path / "shot.png", width=width, height=3000, dark=dark)
        with image.open(tmp_path / "shot.png") as shot:
            pixels = np.asarray(shot.convert("L"), np.float64)
        assert pixels.shape == (3000, width)
        grounds.append(pixels[2, 2])
        assert np.abs(pixels - pixels[2, 2]).max() > 150  # text with the required contrast to its background
    assert grounds[0] > 230
    assert grounds[1] < 40

    tells = "<script>parent.postMessage(document.documentElement.scrollWidth, '*')</script></body>"
    page.write_text(page.read_text().replace("</body>", tells))
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<body><script>onmessage = told => document.body.id = 'w' + told.data</script>"
        f"<iframe src='{page.as_uri()}' style='border:0;width:{width}px;height:900px'></iframe>"
    )
    headless = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    told = subprocess.run(
        [browser, *headless, "--virtual-time-budget=5000", "--dump-dom", frame.as_uri()],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    scroll = re.search(r'id="w(\d+)"', told.stdout)
    assert scroll is not None
    assert width - 20 <= int(scroll[1]) <= width
