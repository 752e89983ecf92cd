"""python -m tonari.debug prints every section, and the reason if a part is missing or broken."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import pkgutil
import platform
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import tonari
from tests.helpers.command_line import ENVIRONMENT
from tests.helpers.devices import HAS_TORCH, on_gpu
from tonari import debug
from tonari.core import _native
from tonari.methods.registry import NAMES

SECTIONS = ["tonari", "python", "packages", "system", "cpu", "cuda", "plans"]
GPU_STACK = ("torch", "triton")


def printed() -> str:
    """Return the report for human readers, which must not fail."""
    result = CliRunner().invoke(debug.main)
    assert (result.exit_code, result.exception) == (0, None)
    return result.stdout


def as_json() -> Any:
    """Return the report as JSON, which must not fail."""
    result = CliRunner().invoke(debug.main, ["--json"])
    assert (result.exit_code, result.exception) == (0, None)
    return json.loads(result.stdout)


def install(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    """Let packages have these versions in their metadata, or none."""
    known = importlib.metadata.version

    def version(name: str) -> str:
        found = versions[name] if name in versions else known(name)
        if found is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return found

    monkeypatch.setattr(importlib.metadata, "version", version)


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("TONARI_"):
            monkeypatch.delenv(name)


@pytest.fixture
def no_gpu_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, torch=None, triton=None)


def fake_torch(monkeypatch: pytest.MonkeyPatch, cuda: Any) -> None:
    """Make a torch with the given CUDA module, and a Triton."""
    if HAS_TORCH:  # modules of tonari that are imported from now on would keep the fake
        for module in pkgutil.walk_packages(tonari.__path__, "tonari."):
            if not {"kernels", "__main__"} & set(module.name.split(".")):
                importlib.import_module(module.name)
    torch = types.ModuleType("torch")
    torch.version, torch.cuda = types.SimpleNamespace(cuda="12.8"), cuda  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "triton", types.ModuleType("triton"))
    install(monkeypatch, torch="2.13.0", triton="3.6.0")


def test_it_says_what_this_machine_has(monkeypatch: pytest.MonkeyPatch, no_gpu_stack: None) -> None:
    monkeypatch.setenv("TONARI_NUM_THREADS", "3")
    monkeypatch.setenv("TONARI_ISA", "generic")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("UNRELATED", "secret")
    found = as_json()
    assert list(found) == SECTIONS
    assert found["tonari"]["version"] == tonari.__version__
    assert Path(found["tonari"]["path"]) == Path(tonari.__file__ or "").parent
    assert found["python"]["version"] == platform.python_version()
    assert found["packages"]["numpy"] == np.__version__
    assert found["system"]["os"] == platform.platform()
    assert found["cpu"]["instruction_sets"] == _native.supported_isas()
    assert found["cpu"]["instruction_set"] == "generic"
    assert found["cpu"]["threads"] == 3
    assert found["cpu"]["environment"].items() >= {"TONARI_ISA": "generic", "OMP_NUM_THREADS": "1"}.items()
    assert "secret" not in json.dumps(found)
    expected = tonari.explain(None, (10_000, 64), 10, device="cpu").as_dict()
    assert found["plans"] == {"cpu": json.loads(json.dumps(expected))}


def test_the_text_says_the_same(no_gpu_stack: None) -> None:
    lines = printed().splitlines()
    assert [line for line in lines if not line.startswith(" ")] == SECTIONS
    assert f"  numpy      {np.__version__}" in lines
    assert f"  instruction_sets  {', '.join(_native.supported_isas())}" in lines
    assert "  cpu, graph of 10,000 x 64, k=10" in lines
    assert {line.split()[0] for line in lines[-len(NAMES) :]} == set(NAMES)


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"torch": None, "triton": None}, "torch and triton not installed: pip install 'tonari[gpu]'"),
        ({"torch": "2.13.0", "triton": None}, "triton not installed: pip install 'tonari[gpu]'"),
    ],
)
def test_without_torch_or_triton_it_says_so_and_imports_neither(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str | None], said: str
) -> None:
    install(monkeypatch, **versions)
    for name in GPU_STACK:
        monkeypatch.setitem(sys.modules, name, None)
    found = as_json()
    assert found["packages"]["triton"] == "not installed"
    assert found["cuda"] == {"missing": said}
    assert list(found["plans"]) == ["cpu"]
    assert f"  missing  {said}" in printed()


@pytest.mark.process
def test_a_torch_that_cannot_be_imported_is_told_with_its_exception(tmp_path: Path) -> None:
    for name in GPU_STACK:
        folder = tmp_path / f"{name}-9.9.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        (tmp_path / f"{name}.py").write_text("raise OSError('libcudart.so.99: cannot open shared object file')\n")
    environment = ENVIRONMENT | {"PYTHONPATH": os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])}
    command = [sys.executable, "-m", "tonari.debug"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "  missing  OSError: libcudart.so.99: cannot open shared object file" in done.stdout
    assert "  torch      9.9" in done.stdout
    assert "nn-descent" in done.stdout  # the CPU's plan comes after it


def test_torch_without_cuda_has_no_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_torch(monkeypatch, types.SimpleNamespace(is_available=lambda: False))
    assert as_json()["cuda"] == {"toolkit": "12.8", "devices": {}}
    assert "  devices  none" in printed()


def test_each_device_is_told_though_one_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def properties(number: int) -> Any:
        if number == 1:
            raise RuntimeError("CUDA error: device is lost")
        return types.SimpleNamespace(name="NVIDIA H200", major=9, minor=0, multi_processor_count=132)

    def mem_get_info(number: int) -> tuple[int, int]:
        return 120_000_000_000, 150_000_000_000

    cuda = types.SimpleNamespace(
        is_available=lambda: True, device_count=lambda: 2, get_device_properties=properties, mem_get_info=mem_get_info
    )
    fake_torch(monkeypatch, cuda)
    monkeypatch.setenv("PATH", "")  # no nvidia-smi
    found = as_json()
    assert found["cuda"]["driver"]["missing"].startswith("FileNotFoundError: ")
    assert found["cuda"]["devices"] == {
        "cuda:0": {
            "name": "NVIDIA H200",
            "capability": "9.0",
            "multiprocessors": 132,
            "memory": "120.0 GB free of 150.0 GB",
        },
        "cuda:1": {"missing": "RuntimeError: CUDA error: device is lost"},
    }
    assert list(found["plans"]) == ["cpu", "cuda:0", "cuda:1"]
    text = printed()
    assert "      name             NVIDIA H200" in text
    assert "    cuda:1  missing: RuntimeError: CUDA error: device is lost" in text


@pytest.mark.parametrize("part", ["_commit", "_processor", "_memory", "_cuda", "_planned", "chosen_isa", "_version"])
def test_a_part_that_fails_leaves_all_others(monkeypatch: pytest.MonkeyPatch, no_gpu_stack: None, part: str) -> None:
    def broken(*given: Any) -> Any:
        raise OSError("the disk is gone")

    monkeypatch.setattr(debug, part, broken)
    found = as_json()
    assert list(found) == SECTIONS
    assert "'missing': 'OSError: the disk is gone'" in str(found)
    assert "numpy" in found["packages"]
    assert "OSError: the disk is gone" in printed()


def test_settings_that_cannot_be_are_told(monkeypatch: pytest.MonkeyPatch, no_gpu_stack: None) -> None:
    monkeypatch.setenv("TONARI_ISA", "sse9")
    monkeypatch.setenv("TONARI_NUM_THREADS", "none")
    found = as_json()
    assert "cannot run the instruction set 'sse9'" in found["cpu"]["instruction_set"]["missing"]
    assert "expected a whole number" in found["cpu"]["threads"]["missing"]
    assert "sse9" in found["plans"]["cpu"]["missing"]


def test_the_commit_is_the_checkouts_or_what_pip_recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(["git", *who, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    package = tmp_path / "src" / "tonari"
    package.mkdir(parents=True)
    monkeypatch.setattr(debug, "_PACKAGE", package)
    for origin, expected in (
        ({"url": "https://host/tonari", "vcs_info": {"vcs": "git", "commit_id": "abc123"}}, "abc123"),
        ({"url": "file:///home/a", "dir_info": {}}, "not recorded by the installation"),
        (None, "not recorded by the installation"),
    ):
        recorded = types.SimpleNamespace(read_text=lambda name, origin=origin: origin and json.dumps(origin))
        monkeypatch.setattr(importlib.metadata, "distribution", lambda name, recorded=recorded: recorded)
        assert debug.facts()["tonari"]["commit"] == expected
    git("init", "-q")
    assert debug.facts()["tonari"]["commit"]["missing"].startswith("OSError: git ended with 128: ")  # no commit yet
    (package / "__init__.py").write_text("")
    git("add", ".")
    git("commit", "-qm", "first")
    head = git("rev-parse", "HEAD")
    assert debug.facts()["tonari"]["commit"] == head
    (package / "__init__.py").write_text("1\n")
    assert debug.facts()["tonari"]["commit"] == f"{head}, changed"


@on_gpu
def test_on_a_gpu_it_has_its_name_its_driver_and_a_plan() -> None:
    import torch

    found = as_json()
    assert list(found["cuda"]["devices"]) == [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    device = found["cuda"]["devices"]["cuda:0"]
    major, minor = torch.cuda.get_device_capability(0)
    assert (device["name"], device["capability"]) == (torch.cuda.get_device_name(0), f"{major}.{minor}")
    assert " GB free of " in device["memory"]
    assert [int(part) for part in found["cuda"]["driver"].split(".")]
    expected = tonari.explain(None, (10_000, 64), 10, device="cuda:0")
    assert found["plans"]["cuda:0"]["method"] == expected.method
    assert [made["method"] for made in found["plans"]["cuda:0"]["candidates"]] == list(NAMES)
