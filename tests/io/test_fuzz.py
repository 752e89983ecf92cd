"""Files with changed, missing or inserted bytes are read correctly, or raise the documented exception.

Every run makes the same changes. ``python -m tests.io.test_fuzz COUNT [SEED]`` makes more.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tonari
from tonari.core.results.neighbors import Neighbors
from tonari.core.trail import Attempt, Record
from tonari.io import SUFFIXES, FileFormatError, describe, read, read_ground_truth, write, write_ground_truth
from tonari.streams.journal import Journal

ROWS, COLUMNS = 12, 5
COUNT = 150  # number of changes of each file
LARGEST = 64 << 20  # largest number of bytes of an array in a small file
# Counts and sizes that no small file keeps.
EXTREME = [b"\xff" * 4, b"\xff" * 8, b"\xff\xff\xff\x7f", b"\xff" * 7 + b"\x7f", b"\0" * 8, b"\0\0\0\x80"]


def _values() -> np.ndarray:
    return np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)


def _points(path: Path) -> None:
    write(path, _values().astype(SUFFIXES[path.suffix].dtype or np.float32))


def _compressed(path: Path) -> None:
    np.savez_compressed(path, arr_0=_values())


def _chunked(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["distance"] = "euclidean"
        file.create_dataset("train", data=_values(), chunks=(4, 5), compression="gzip", fletcher32=True)
        file["soft"] = h5py.SoftLink("/train")


def _found() -> Neighbors:
    return Neighbors(_values(), np.arange(ROWS * COLUMNS, dtype=np.int32).reshape(ROWS, COLUMNS))


def _pairs(path: Path) -> None:
    if path.suffix == ".npz":
        np.savez(path, indices=_found().indices, distances=_found().distances)
    elif path.suffix == ".hdf5":
        with h5py.File(path, "w") as file:
            file["neighbors"], file["distances"] = _found().indices, _found().distances
    else:
        write_ground_truth(path, _found())


def _graph(path: Path) -> None:
    tonari.knn_graph(_values(), 3, method="exact", threads=1).save(path)


def _compressed_graph(path: Path) -> None:
    _graph(path)
    with np.load(path) as archive:
        np.savez_compressed(path, **archive)


def _journal(path: Path) -> None:
    record = Record("search_to_file", 9, steps=[Record("search", 7, steps=[Attempt("int8", 7, 7)])])
    Journal({"queries": 9, "k": 3, "metric": "l1"}, 7, "ab" * 32, record.as_dict()).write(path)


POINTS = [read, lambda path: read(path, mmap=False), describe]
# Name of a file: the function that writes it, and the function that reads it.
FILES: dict[str, tuple[Callable[[Path], None], list[Callable[[Path], Any]]]] = {
    **{f"points{suffix}": (_points, POINTS) for suffix in SUFFIXES},
    "compressed.npz": (_compressed, POINTS),
    "chunked.hdf5": (_chunked, [*POINTS, lambda path: read(path, key="soft")]),
    "truth.ibin": (_pairs, [read_ground_truth, *POINTS]),
    "truth.npz": (_pairs, [read_ground_truth]),
    "truth.hdf5": (_pairs, [read_ground_truth]),
    "graph.npz": (_graph, [tonari.KNNGraph.load]),
    "compressed-graph.npz": (_compressed_graph, [tonari.KNNGraph.load]),
    "journal.json": (_journal, [Journal.read]),
}


def mutated(content: bytes, rng: np.random.Generator) -> bytes:
    """Return the bytes with one to three changes, two thirds of them near the beginning or the end."""
    made = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        size = len(made)
        anywhere, begin = rng.integers(size + 1), rng.integers(min(size, 64) + 1)
        place = int([anywhere, begin, size - rng.integers(size // 8 + 1)][rng.integers(3)])
        match rng.integers(7):
            case 0:  # cut off
                del made[max(1, place) :]
            case 1:  # taken out
                del made[place : place + int(rng.integers(1, 9))]
            case 2:  # put in
                made[place:place] = rng.bytes(int(rng.integers(1, 9)))
            case 3:  # one bit
                made[min(place, len(made) - 1)] ^= 1 << int(rng.integers(8))
            case 4:
                made[place : place + 1] = rng.bytes(1)
            case 5:  # a digit, where the format has text
                made[place : place + 1] = bytes([b"0123456789-,()[]{}'\"L"[rng.integers(21)]])
            case 6:
                extreme = EXTREME[rng.integers(len(EXTREME))]
                made[place : place + len(extreme)] = extreme
        if not made:
            made += b"\0"
    return bytes(made)


def outcome(call: Callable[[Path], Any], path: Path) -> str:
    """Return the outcome of a call as a word; raise AssertionError if it is not documented."""
    got, refusal = None, None
    try:
        got = call(path)
    except ValueError as error:
        refusal = error
    if refusal is not None:
        assert str(refusal).startswith(str(path)), refusal
        if isinstance(refusal, FileFormatError):
            assert refusal.path == path
            assert isinstance(refusal.found, int)
            assert isinstance(refusal.expected, int | str)
        else:  # callers may choose a name that does not exist; a journal has its own messages
            words = ("Choose with key=", "is not the journal of a search")
            assert any(each in str(refusal) for each in words), refusal
        return "refused"
    for array in _arrays(got):
        assert array.ndim == 2
        assert array.dtype.kind in "biuf"
        assert 0 < array.nbytes <= LARGEST
    return "read"


def _arrays(got: Any) -> list[np.ndarray]:
    if isinstance(got, np.ndarray):
        return [got]
    if isinstance(got, Neighbors | tonari.KNNGraph):
        return [got.indices, got.distances]
    assert got is None or type(got).__name__ in ("FileInfo", "Journal")
    return []


def fuzz(name: str, folder: Path, count: int, seed: int = 0) -> Counter[str]:
    """Count the outcomes of this number of changes of a file; a failing file stays in the folder."""
    maker, calls = FILES[name]
    path = folder / name
    maker(path)
    whole = path.read_bytes()
    rng = np.random.default_rng([seed, *name.encode()])
    counts: Counter[str] = Counter()
    for number in range(count):
        path.write_bytes(mutated(whole, rng) if number else whole)
        for call in calls:
            try:
                counts[outcome(call, path)] += 1
            except Exception as error:
                raise AssertionError(f"mutation {number} of {name}: {path}") from error
    return counts


@pytest.mark.filterwarnings("ignore:Reading `.npy` or `.npz` file required additional header parsing:UserWarning")
@pytest.mark.parametrize("name", FILES)
def test_mutated_files_are_read_or_refused(name: str, tmp_path: Path) -> None:
    counts = fuzz(name, tmp_path, COUNT)
    assert counts["read"] >= len(FILES[name][1])  # the unchanged file, at least
    assert counts["refused"] > COUNT // 4


if __name__ == "__main__":
    for each in FILES:
        here = Path(tempfile.mkdtemp())
        print(each, dict(fuzz(each, here, *map(int, sys.argv[1:]))), flush=True)
        shutil.rmtree(here)
