"""The package: the cost of its import, its names, and the environment variables that it reads."""

from __future__ import annotations

import ast
import gc
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import tonari


def _run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    import os

    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])} | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.process
def test_importing_is_quick_and_brings_nothing_along(tmp_path: Path) -> None:
    code = (
        # CPU time, since other processes may use the processor at the same time.
        "import sys, time, numpy; start = time.process_time(); import tonari; print(time.process_time() - start);"
        "[getattr(tonari, name) for name in tonari.__all__];"
        "print([name for name in ('tqdm', 'click', 'scipy', 'torch', 'h5py', 'sklearn', 'pandas', 'matplotlib')"
        " if name in sys.modules])"
    )
    seconds = []
    # Compiled by the first run, like an installed package, whatever the environment says about that.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    for _ in range(4):
        took, brought = _run(code, **compiled).stdout.splitlines()
        assert brought == "[]"
        seconds.append(float(took))
    assert min(seconds) < 0.1


def test_what_is_imported_late_is_what_type_checkers_read() -> None:
    tree = ast.parse(Path(tonari.__file__).read_text("utf-8"))
    (early,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    imports = [node for node in early.body if isinstance(node, ast.ImportFrom)]
    assert {node.module: tuple(alias.name for alias in node.names) for node in imports} == tonari._HOMES
    assert sorted(name for names in tonari._HOMES.values() for name in names) == tonari.__all__


def test_a_verb_is_imported_without_collection_while_triton_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a process that has used CUDA, Triton is loaded; with torch, a collection takes 0.1 s."""
    asked: list[object] = []
    usual = tonari.import_module

    def imported(name: str) -> object:
        if name == "tonari.cuda.compiling.ahead":
            return SimpleNamespace(begin_on_cuda=lambda: asked.append("begun"))
        if name.startswith("tonari.api."):
            asked.append((name, gc.isenabled()))
        return usual(name)

    monkeypatch.setattr(tonari, "import_module", imported)
    for name, used in (("search", True), ("verify", False)):
        monkeypatch.delitem(vars(tonari), name, raising=False)
        monkeypatch.setitem(sys.modules, "torch.cuda", SimpleNamespace(is_initialized=lambda used=used: used))
        getattr(tonari, name)
    assert asked == ["begun", ("tonari.api.searching", False), ("tonari.api.verifying", False)]
    monkeypatch.setitem(sys.modules, "torch.cuda", SimpleNamespace())  # torch is being imported
    assert not tonari._cuda_is_used()
    assert gc.isenabled()


def test_names_that_are_not_there() -> None:
    for name in ("serach", "_serach"):
        with pytest.raises(AttributeError, match=f"module 'tonari' has no attribute '{name}'"):
            getattr(tonari, name)
    assert set(tonari.__all__) <= set(dir(tonari))


@pytest.mark.process
def test_rooms_are_there_when_they_are_used() -> None:
    done = _run("import tonari; print(tonari.io.FileFormatError.__name__)")
    assert (done.stdout, done.stderr) == ("FileFormatError\n", "")


SEARCH = "import numpy, tonari; print(tonari.search(numpy.eye(3), numpy.eye(3), 1).indices.ravel().tolist())"


@pytest.mark.process
@pytest.mark.parametrize("isa", ["sse9", "", "AVX2 "])
def test_an_instruction_set_that_is_not_there(isa: str) -> None:
    result = _run(SEARCH, TONARI_ISA=isa)
    assert result.returncode == 1
    assert f"ValueError: this machine cannot run the instruction set {isa!r}; it can run generic" in result.stderr


@pytest.mark.process
@pytest.mark.parametrize("threads", ["0", "-2", "two", "1.5", "", "²"])
def test_a_number_of_threads_that_is_none(threads: str) -> None:
    result = _run(SEARCH, TONARI_NUM_THREADS=threads, PYTHONIOENCODING="utf8", PYTHONUTF8="1")
    assert result.returncode == 1
    assert f"ValueError: TONARI_NUM_THREADS={threads!r}: expected a whole number of at least 1" in result.stderr


@pytest.mark.process
@pytest.mark.parametrize("isa", tonari.core._native.supported_isas())
def test_environment_is_obeyed(isa: str) -> None:
    result = _run(SEARCH, TONARI_ISA=isa, TONARI_NUM_THREADS="1")
    assert (result.stdout, result.returncode) == ("[0, 1, 2]\n", 0), result.stderr
