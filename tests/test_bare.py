"""Tests can be collected with only the core's dependencies: a test that needs another library reports it when it
runs.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Packages that the extra `test-core` does not install. (None in sys.modules makes their import fail.)
ABSENT = (
    *("torch", "triton", "sklearn", "matplotlib", "PIL", "pyarrow", "pandas", "polars", "dask", "distributed"),
    *("umap", "openTSNE", "scanpy", "anndata", "hdbscan", "fast_hdbscan", "igraph", "networkx", "faiss"),
    *("torch_geometric", "pynndescent", "pykdtree", "sentence_transformers", "skimage", "threadpoolctl", "astropy"),
)
PROGRAM = f"""
import sys
sys.modules.update(dict.fromkeys({ABSENT!r}))
import pytest
sys.exit(pytest.main(["--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def collected(*paths: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *paths]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.full  # CI runs the core's tests in such an environment
@pytest.mark.process
def test_every_test_is_collected_without_the_libraries_of_other_extras() -> None:
    found = collected("tests")
    assert found.returncode == 0, found.stdout[-4000:]
    assert "tests/exact/cuda/refine/test_limit_members.py" in found.stdout


@pytest.mark.process
def test_a_module_that_needs_one_of_them_is_found(tmp_path: Path) -> None:
    path = tmp_path / "test_needy.py"
    path.write_text("import torch\n\n\ndef test_nothing(): ...\n")
    found = collected(str(path))
    assert found.returncode == pytest.ExitCode.INTERRUPTED
    assert "import of torch halted" in found.stdout
