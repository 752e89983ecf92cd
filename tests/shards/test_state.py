"""The state of a build, read from its directory."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.shards import (
    contents,
    small,
    small_points,
    stopped,
)
from tonari.shards.state import read_state


@pytest.fixture
def points(tmp_path: Path) -> Path:
    return small_points(tmp_path)


def age(out: Path) -> None:
    """Give a directory the format version of earlier releases."""
    manifest = out / "manifest.json"
    manifest.write_text(re.sub(r'"version": \d+', '"version": 1', manifest.read_text()))


@pytest.mark.parametrize("route", ["exact", "clusters"])
def test_what_an_earlier_release_left_unfinished(
    route: str, points: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lists were drawn and computed in another way, so they are not mixed with those of this release."""
    truth, out = small(points, tmp_path / "whole", route), tmp_path / "graph"
    stopped(points, out, route, 2, monkeypatch)
    age(out)
    before = {name: (out / name).read_bytes() for name in contents(out)}
    said = (
        rf"{out}: holds an unfinished graph of an earlier release, whose results would differ from those of this one; "
        r"name another directory, or use resume=False \(--force\)"
    )
    with pytest.raises(ValueError, match=said):
        small(points, out, route)
    assert {name: (out / name).read_bytes() for name in contents(out)} == before
    assert read_state(out).tasks_done == 2
    made = small(points, out, route, resume=False)
    assert all(np.array_equal(*pair) for pair in zip(made.lists.found, truth.lists.found, strict=True))
