"""Libraries with names of CUDA 12 call the functions of CUDA 13."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.peers import cuda12

pytestmark = pytest.mark.bench


def compiled(folder: Path, name: str, code: str, *options: str) -> Path:
    (folder / "code.c").write_text(code)
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "code.c", "-o", folder / name, *options], check=True)
    return folder / name


def test_a_function_of_the_old_name_runs_that_of_the_new_library(tmp_path: Path) -> None:
    new = "int add(int x, int y) { return x + y; } int __link_13_0(double x) { return (int)(2 * x); }"
    target = compiled(tmp_path, "libnew.so.13", new)
    cuda12.make_shim(tmp_path, "libcublas.so.12", str(target), ["__link_12_9", "add"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["code.c", "libcublas.so.12", "libnew.so.13"]
    peer = "int add(int, int); int __link_12_9(double); int peer(int x) { return add(x, 1) + __link_12_9(0.5 * x); }"
    library = compiled(tmp_path, "libpeer.so", peer, str(tmp_path / "libcublas.so.12"))
    assert cuda12.called([library])["libcublas.so.12"] == ["__link_12_9", "add"]
    code = f"import ctypes; print(ctypes.CDLL({str(library)!r}).peer(20))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"LD_LIBRARY_PATH": str(tmp_path)}
    )
    assert (done.stdout, done.stderr) == ("41\n", "")


def test_a_function_that_is_lacking_is_named(tmp_path: Path) -> None:
    target = compiled(tmp_path, "libnew.so.13", "int add(int x) { return x; }")
    cuda12.make_shim(tmp_path, "libcublas.so.12", str(target), ["subtract"])
    code = f"import ctypes; ctypes.CDLL({str(tmp_path / 'libcublas.so.12')!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == f"{target} lacks subtract\n"
