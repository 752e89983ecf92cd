"""Damaged and hostile HDF5 files, and functions that work without h5py."""

from __future__ import annotations

import builtins
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import tonari
from tests.helpers.files import damage, points_file, refusal
from tonari.io import (
    describe,
    read,
    write,
)


def test_hdf5_truncated(tmp_path: Path) -> None:
    path = points_file(tmp_path, ".hdf5", (100, 50))
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-7])
    message = refusal(path)
    assert f"found {size - 7} bytes, expected a whole HDF5 file" in message
    assert f"stored_eof = {size}" in message


def test_hdf5_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "fake.h5"
    path.write_bytes(b"hello")
    assert "found 5 bytes, expected a whole HDF5 file" in refusal(path)


def test_hdf5_damaged_values(tmp_path: Path) -> None:
    path = tmp_path / "sums.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("train", data=np.arange(4000.0).reshape(100, 40), chunks=(100, 40), fletcher32=True)
        middle = file["train"].id.get_chunk_info(0).byte_offset + 999
    content = bytearray(path.read_bytes())
    content[middle] ^= 255
    path.write_bytes(content)
    assert f"found {len(content)} bytes, expected a whole HDF5 file" in refusal(path)


def test_hdf5_keys(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file["test"] = np.ones((2, 2))
        file.create_group("group")
        file["null"] = h5py.Empty("f4")
    for call in (read, describe):
        assert "no dataset 'train'. Choose with key=: null, test" in refusal(path, call)
        assert "no dataset 'group'. Choose with key=: null, test" in refusal(path, call, key="group")
        assert "has shape ()" in refusal(path, call, key="null")


def test_hdf5_without_h5py(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = points_file(tmp_path, ".hdf5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError, match=re.escape("pip install 'tonari[hdf5]'")):
        read(path)
    with pytest.raises(ImportError, match=re.escape("pip install 'tonari[hdf5]'")):
        write(tmp_path / "new.h5", np.ones((2, 2)))
    assert not (tmp_path / "new.h5").exists()


def test_io_is_imported_without_h5py(monkeypatch: pytest.MonkeyPatch) -> None:
    true_import = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        assert not name.startswith("h5py")
        return true_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.setattr(tonari.io.formats, "hdf5", tonari.io.formats.hdf5)  # to restore the same module afterwards
    monkeypatch.delitem(sys.modules, "tonari.io.formats.hdf5")
    assert importlib.import_module("tonari.io.formats.hdf5").DEFAULT_KEY == "train"


def test_a_chunk_counts_as_it_is_held(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("train", (2, 2), "f4", chunks=(1 << 14, 1 << 14), maxshape=(None, None))
    assert f"its values take {1 << 30} bytes" in str(damage(path))


def _refers(path: Path, other: Path) -> list[str]:
    """Write a file in which all datasets but one refer to other files; return the names."""
    with h5py.File(path, "w") as file:
        file["own"] = np.ones((3, 2))
        file["relative"] = h5py.SoftLink("own")
        file["train"] = h5py.ExternalLink(other.name, "/secret")
        file["soft"] = h5py.SoftLink("/train")
        group = file.create_group("group")
        group["out"] = h5py.ExternalLink(other.name, "/")
        group["in"] = h5py.SoftLink("/own")
        file["through"] = h5py.SoftLink("/group/out/secret")
        file.create_dataset("stored", (4, 2), "f4", external=[(str(other), 0, 32)])
        layout = h5py.VirtualLayout((3, 2), "f8")
        layout[:] = h5py.VirtualSource(str(other), "secret", (3, 2))
        file.create_virtual_dataset("virtual", layout)
    return ["train", "soft", "group/out/secret", "through", "stored", "virtual"]


@pytest.mark.parametrize("there", [True, False])
def test_hdf5_never_hands_out_another_file(tmp_path: Path, there: bool) -> None:
    path, other = tmp_path / "a.hdf5", tmp_path / "other.hdf5"
    if there:
        with h5py.File(other, "w") as file:
            file["secret"] = np.ones((3, 2))
    for key in _refers(path, other):
        for call in (read, describe):
            assert "expected values that are all in this file" in str(damage(path, call, key=key)), key
    for key in ("own", "relative", "group/in"):
        assert read(path, key=key).shape == (3, 2)
    listed = describe(path, key="own").extra["keys"].split(", ")
    assert {"own", "relative"} <= set(listed)
    assert not {"train", "soft", "through"} & set(listed)  # otherwise they would have to be opened


@pytest.mark.parametrize("name", ["loop", "nowhere", "own/x", "group", "group/x", "/"])
def test_hdf5_names_that_lead_nowhere(tmp_path: Path, name: str) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file["own"] = np.ones((3, 2))
        file["loop"] = h5py.SoftLink("/loop")
        file["nowhere"] = h5py.SoftLink("/none/x")
        file.create_group("group")
    for call in (read, describe):
        assert f"there is no dataset {name!r}. Choose with key=: own" in refusal(path, call, key=name)
