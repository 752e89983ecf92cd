"""tonari warm: the kernels that it requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.helpers import checks
from tests.helpers.command_line import as_json, refused, run
from tonari import io
from tonari.api.planning import plan as warming

N, M, D, K = 300, 20, 8, 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_warm_asks_for_what_the_file_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def warm(*sizes: int, **given: Any) -> int:
        asked.append((sizes, given["dtype"], given["metric"], given["device"], given["self_join"]))
        return 7

    monkeypatch.setattr(warming, "warm", warm)
    assert run("warm", "points.fbin", "-k", "3").stdout == "7 kernels compiled\n"
    told = as_json("warm", "points.fbin", "-k", "3", "--queries", "9", "--metric", "L1", "--device", "cuda:1")
    assert told == {"compiled": 7}
    assert asked == [
        ((N, N, D, 3), "float32", "euclidean", "cuda", True),
        ((N, 9, D, 3), "float32", "l1", "cuda:1", False),
    ]
    monkeypatch.undo()
    assert "expected" in refused("warm", "points.fbin", "-k", "3", "--device", "gpu", code=2)
