"""Records of filters in .npz files: equal searches give equal bytes, and a file without filters has no record."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from tonari.io.filtered import MEMBER, filters_in, properties_of, write_npz


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    arrays = {"indices": np.array([[1]]), "distances": np.array([[0.5]])}
    mask = np.zeros((3, 4), bool)
    filters = properties_of({"where": mask.T, "exclude_within": 2, "exclude": None})
    assert filters["where"]["shape"] == [4, 3]
    assert filters["where"] == properties_of({"where": mask.T.copy()})["where"]
    for name in ("a.npz", "b.npz"):
        write_npz(tmp_path / name, arrays, filters)
        assert filters_in(tmp_path / name) == filters
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz") as read:
        assert all(np.array_equal(read[key], array) for key, array in arrays.items())
    write_npz(tmp_path / "a.npz", arrays, {})
    assert filters_in(tmp_path / "a.npz") == {}
    assert MEMBER not in zipfile.ZipFile(tmp_path / "a.npz").namelist()
