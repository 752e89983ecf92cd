"""Graphs in a file are saved and loaded, and damage is always detected."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks
from tests.helpers.graphs import (
    SPOILT,
    K,
    N,
    spoilt,
    true_graph,
)
from tonari.graph.knn_graph import KNNGraph


@pytest.mark.parametrize("what", SPOILT)
def test_load_names_the_row(what: str, tmp_path: Path) -> None:
    change, metric, message = SPOILT[what]
    indices, distances = spoilt(change, metric)
    _resave(tmp_path / "spoilt.npz", metric, indices=indices, distances=distances)
    with pytest.raises(ValueError, match=rf"spoilt\.npz: .*{message}"):
        KNNGraph.load(tmp_path / "spoilt.npz")


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("seed", [None, 7, np.int64(2**40)])
def test_a_saved_graph_comes_back(tmp_path: Path, include_self: bool, seed: Any) -> None:
    made = true_graph(checks.offset_float64(N, 3), include_self=include_self)
    graph = KNNGraph(made.indices, made.distances, "euclidean", "brute", include_self=include_self, seed=seed)
    graph.save(tmp_path / "graph.npz")
    back = KNNGraph.load(tmp_path / "graph.npz")
    assert (back.metric, back.method, back.include_self, back.seed) == ("euclidean", "brute", include_self, seed)
    for name in ("indices", "distances"):
        ours, theirs = getattr(graph, name), getattr(back, name)
        assert ours.dtype == theirs.dtype
        assert ours.tobytes() == theirs.tobytes()
        assert theirs.flags.writeable
    assert os.listdir(tmp_path) == ["graph.npz"]
    back.save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "graph.npz").read_bytes()
    assert (tmp_path / "graph.npz").stat().st_size > graph.indices.nbytes + graph.distances.nbytes  # uncompressed


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.npz"
    true_graph().save(path)
    before = path.read_bytes()

    def full(file: Any, **arrays: Any) -> None:
        file.write(b"half of it")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space left"):
        true_graph(k=2).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["graph.npz"]


def _resave(path: Path, metric: str = "euclidean", **changes: Any) -> None:
    true_graph(metric=metric).save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    arrays |= changes
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"about": None}, "about"),
        ({"indices": None}, "indices"),
        ({"about": np.array("{}")}, "format"),
        ({"about": np.array("[]")}, "not a whole KNNGraph file"),
        ({"about": np.array("{")}, "not a whole KNNGraph file"),
        ({"about": np.array('{"format": "other.Graph", "version": 1}')}, "its format is 'other.Graph'"),
        ({"about": np.array('{"format": "tonari.KNNGraph", "version": 2}')}, "version is 2, this release reads 1"),
        ({"indices": np.full((N, K), N, np.int32)}, "outside -1 to 29"),
        ({"indices": np.zeros((N, K), np.uint8)}, "got uint8"),
        ({"distances": np.zeros((N, 2), np.float32)}, "same non-empty shape"),
        ({"distances": np.array([None])}, "not a whole KNNGraph file"),
    ],
)
def test_load_refuses_other_contents(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    _resave(tmp_path / "graph.npz", **changes)
    with pytest.raises(ValueError, match=r"graph\.npz: not a whole KNNGraph file: ") as caught:
        KNNGraph.load(tmp_path / "graph.npz")
    assert message in str(caught.value)


def test_load_refuses_other_files(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    with pytest.raises(FileNotFoundError):
        KNNGraph.load(path)
    for content in (b"", b"text", b"PK\x03\x04", os.urandom(500), b"\x80\x04K\x01."):
        path.write_bytes(content)
        with pytest.raises(ValueError, match="not a whole KNNGraph file"):
            KNNGraph.load(path)
    with open(path, "wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match="not a whole KNNGraph file"):
        KNNGraph.load(path)


def test_damage_never_passes(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    graph = true_graph(checks.gaussian(6, 2), k=2)
    graph.save(path)
    whole = path.read_bytes()
    refused = tried = 0
    for place, byte in enumerate(whole):
        flips = [whole[:place] + bytes([byte ^ mask]) + whole[place + 1 :] for mask in (0x01, 0x55, 0x80)]
        for damaged in [whole[:place], *flips]:
            tried += 1
            path.write_bytes(damaged)
            try:
                back = KNNGraph.load(path)
            except ValueError:
                refused += 1
                continue
            # The damaged byte may have no meaning, such as a date; then everything that was saved is read.
            assert back.indices.tobytes() == graph.indices.tobytes()
            assert back.distances.tobytes() == graph.distances.tobytes()
            assert repr(back) == repr(graph)
    assert refused > 0.8 * tried


def test_filters_are_kept_and_their_absence_means_none(tmp_path: Path) -> None:
    path, plain = tmp_path / "graph.npz", true_graph()
    graph = dataclasses.replace(plain, filters=("batch", "where"))
    graph.save(path)
    back = KNNGraph.load(path)
    assert back.filters == ("where", "batch")
    assert "filters=('where', 'batch')" in repr(back)
    assert "where, batch" in back._repr_html_()
    kept = [back.trim(1), back.subset([4, 2]), back.permute(np.arange(N)[::-1]), back.to_numpy()]
    assert {one.filters for one in kept} == {back.filters}
    plain.save(path)
    assert b"filters" not in path.read_bytes()
    assert KNNGraph.load(path).filters == ()
    assert "filters" not in repr(plain) + plain._repr_html_()


@pytest.mark.parametrize("filters", ["batch", ["groups"], {"batch": 1}, 3, [["batch"]]])
def test_unknown_filters_are_refused(filters: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"filters=.*: expected a tuple of names of arguments, from 'where', 'batch'"):
        dataclasses.replace(true_graph(), filters=filters)
    path, graph = tmp_path / "graph.npz", true_graph()
    object.__setattr__(graph, "filters", filters)
    graph.save(path)
    with pytest.raises(ValueError, match=r"expected what KNNGraph\.save writes: filters="):
        KNNGraph.load(path)
