"""Files that released versions wrote are read by this one, with the same answers."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tonari
from tests.compat_files import write

RELEASES = sorted(path for path in write.FOLDER.iterdir() if path.name[0].isdigit())


@pytest.fixture(params=RELEASES, ids=lambda folder: folder.name)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy the files of a release."""
    return Path(shutil.copytree(request.param, tmp_path / "written"))


def assert_same(found: tonari.KNNGraph | tonari.Neighbors, expected: tonari.KNNGraph | tonari.Neighbors) -> None:
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.distances, expected.distances)
    assert found.distances.dtype == expected.distances.dtype


def expected_graph() -> tonari.KNNGraph:
    return tonari.knn_graph(write.points(), write.K, device="cpu")


def test_this_version_has_its_files() -> None:
    assert tonari.__version__ in [folder.name for folder in RELEASES], "python -m tests.compat_files.write"


def test_graph_files(written: Path) -> None:
    assert_same(tonari.KNNGraph.load(written / "graph.npz"), expected_graph())
    assert_same(tonari.KNNGraph.open(written / "graph"), expected_graph())


def test_a_finished_directory_is_recognised(written: Path) -> None:
    before = (written / "graph" / "indices.npy").stat()
    built = tonari.build_graph(write.points(), write.K, written / "graph", device="cpu")
    assert_same(built, expected_graph())
    after = (written / "graph" / "indices.npy").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns), "it was built again"


def test_neighbours_for_other_programs(written: Path) -> None:
    pytest.importorskip("h5py")
    assert_same(tonari.io.read_ground_truth(written / "graph.hdf5"), expected_graph())


@pytest.mark.parametrize(
    ("name", "made"),
    [("changed.index", write.changed_index), ("mapped.index", write.mapped_index)],
)
def test_indexes(written: Path, name: str, made: Callable[[], tonari.Index]) -> None:
    index, expected = tonari.Index.load(written / name), made()
    assert_same(index.search(write.queries(), write.K), expected.search(write.queries(), write.K))
    np.testing.assert_array_equal(index.add(write.points()[:1]), expected.add(write.points()[:1]))


def test_results_of_a_stream(written: Path) -> None:
    expected = tonari.search(write.queries(), write.points(), write.K, device="cpu")
    assert_same(tonari.io.read_ground_truth(written / "found.ibin"), expected)


def test_an_unfinished_stream_goes_on(written: Path) -> None:
    counts: list[int] = []
    rows, size = write.chunks(stop=False), len(write.queries())
    out = tonari.search_to_file(
        rows,
        write.points(),
        write.K,
        written / "stopped.ibin",
        rows=size,
        device="cpu",
        progress=lambda done, total: counts.append(done),
    )
    assert min(count for count in counts if count) >= 2 * write.CHUNK, "finished queries were searched again"
    assert out.read_bytes() == (written / "found.ibin").read_bytes()
