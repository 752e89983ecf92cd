"""Programs that compile kernels for a GPU, even on machines without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def compiled(program: str, cache: Path) -> list[str]:
    """Run a program that compiles kernels, with an empty cache and without Triton's interpreter; return its output."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"TRITON_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()
