"""Ground truth files that are written row by row."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.checks import Array
from tests.helpers.streaming import K, M, index_of, queries
from tonari import io
from tonari.core.results.neighbors import Neighbors
from tonari.io.neighbors.ground_truth_part import GroundTruthPart
from tonari.streams import tuning


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; every chunk is synced to disk separately."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tuning, "SYNC_SECONDS", 0.0)
    return tmp_path


def truth(rows: Array | None = None, k: int = K, **options: Any) -> bytes:
    """Return the file that a single search of all queries gives."""
    io.write_ground_truth("truth.ibin", index_of(**options).search(queries() if rows is None else rows, k))
    content = Path("truth.ibin").read_bytes()
    os.remove("truth.ibin")
    return content


def test_ground_truth_is_written_in_any_order(folder: Path) -> None:
    found = index_of().search(queries(), K)
    part = GroundTruthPart(folder / "part", M, K)
    part.begin()
    assert part.bytes == part.whole_bytes
    for first, last in ((40, M), (0, 1), (1, 40)):
        part.write(first, Neighbors(*(each[first:last] for each in found)))
    with pytest.raises(BlockingIOError, match="another process"):
        GroundTruthPart(folder / "part", M, K)
    part.sync()
    part.close()
    assert (folder / "part").read_bytes() == truth()
    with pytest.raises(ValueError, match="does not fit the 8-byte header"):
        GroundTruthPart(folder / "huge", 2**32, K)
