"""tonari search within a radius, and tonari pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io

POINTS, QUERIES = checks.gaussian(300, 8, seed=1), checks.gaussian(50, 8, seed=2)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", POINTS)
    io.write(tmp_path / "queries.npy", QUERIES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


SEARCH = ("search", "points.fbin", "queries.npy", "-o", "near.npz")
PAIRS = ("pairs", "points.fbin", "-o", "pairs.npy")


@pytest.mark.parametrize("k", [None, 3])
def test_search_within_a_radius(k: int | None) -> None:
    more = () if k is None else ("-k", str(k))
    facts = as_json(*SEARCH, "--radius", "3", *more)
    truth = tonari.radius_search(QUERIES, POINTS, 3.0, max_neighbors=k)
    with np.load("near.npz") as found:
        for name in truth._fields:
            assert found[name].tobytes() == getattr(truth, name).tobytes()
    assert facts["neighbours"] == len(truth.indices) > 0
    assert (facts["rows"], facts["points"], facts["metric"]) == (50, 300, "euclidean")
    assert "neighbours of 50 queries in 300 points" in run(*SEARCH, "--radius", "3", "--force").stdout


def test_search_by_similarity() -> None:
    as_json(*SEARCH, "--min-similarity", "0.5", "--metric", "cosine")
    truth = tonari.radius_search(QUERIES, POINTS, min_similarity=0.5, metric="cosine")
    with np.load("near.npz") as found:
        assert found["indices"].tolist() == truth.indices.tolist()


@pytest.mark.parametrize("command", [SEARCH, PAIRS])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "--radius or --min-similarity"),
        (("--radius", "1", "--min-similarity", "1"), "exclude each other"),
        (("--radius", "1", "--metric", "ip"), "use --min-similarity"),
        (("--min-similarity", "1"), "use --radius, or --metric cosine, correlation or inner_product"),
        (("--min-similarity", "inf", "--metric", "cosine"), "infinite"),
        (("--radius", "nan"), "not a number"),
        (("--radius", "-1"), "x>=0"),
    ],
)
def test_what_is_refused(command: tuple[str, ...], given: tuple[str, ...], words: str, folder: Path) -> None:
    assert words in refused(*command, *given, code=2)
    assert len(list(folder.iterdir())) == 2
