"""Programs that compile kernels for a GPU, even on machines without one."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.ahead import run


def compiled(program: str, cache: Path) -> list[str]:
    """Run a program that compiles kernels, with an empty cache and without Triton's interpreter; return its output."""
    found = run(program, cache)
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()
