"""Whether code has changed since it was measured, by git."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

# What a row calls a commit that is one: "unknown", and commits with a mark of local changes, are none.
COMMIT = re.compile(r"[0-9a-f]{7,40}")

# What all of tonari rests on, and what each suite or paper measures beside it, by device. The first path names it.
SHARED = ("src/tonari/core", "src/tonari/inputs", "src/tonari/metrics", "native/core", "native/simd")
_EXACT_CPU = ("src/tonari/exact/cpu", "native/exact", "native/select")
_EXACT_CUDA = ("src/tonari/exact/cuda", "src/tonari/select/cuda", "src/tonari/cuda")
_SELECT_CPU = ("src/tonari/select", ":!src/tonari/select/cuda", "native/select")
_SELECT_CUDA = ("src/tonari/select", "src/tonari/cuda")
_KDTREE_CPU = ("src/tonari/kdtree", ":!src/tonari/kdtree/cuda", "native/kdtree")
_KDTREE_CUDA = ("src/tonari/kdtree/cuda", "src/tonari/cuda")
_DESCENT_CPU = ("src/tonari/nn_descent", ":!src/tonari/nn_descent/cuda", "native/nn_descent", *_EXACT_CPU)
_DESCENT_CUDA = ("src/tonari/nn_descent", ":!src/tonari/nn_descent/cpu", *_EXACT_CUDA)
CODE: dict[tuple[str, str], tuple[str, ...]] = {
    ("exact_cpu", "cpu"): _EXACT_CPU,
    ("exact_cuda", "cuda"): _EXACT_CUDA,
    ("kdtree", "cpu"): _KDTREE_CPU,
    ("kdtree", "cuda"): _KDTREE_CUDA,
    ("nn_descent", "cpu"): _DESCENT_CPU,
    ("nn_descent", "cuda"): _DESCENT_CUDA,
    ("select", "cpu"): _SELECT_CPU,
    ("select", "cuda"): _SELECT_CUDA,
    ("tang2015", "cpu"): _SELECT_CPU,
    ("tang2015", "cuda"): _SELECT_CUDA,
    ("matsumoto2015", "cpu"): _SELECT_CPU,
    ("matsumoto2015", "cuda"): (*_SELECT_CUDA, "src/tonari/exact/cuda"),
    ("komarov2014", "cpu"): _SELECT_CPU,
    ("komarov2014", "cuda"): _SELECT_CUDA,
    ("gieseke2014", "cpu"): _KDTREE_CPU,
    ("gieseke2014", "cuda"): _KDTREE_CUDA,
    # The paper's rounds are the benchmarks' own.
    ("wang2021", "cuda"): ("benchmarks/papers/wang2021", *_DESCENT_CUDA),
}


class History:
    """The history of a checkout."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._stale = lru_cache(maxsize=None)(self._compare)

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=False)

    @property
    def complete(self) -> bool:
        """Whether there is git and a history that nothing was cut off from."""
        try:
            answer = self._git("rev-parse", "--is-shallow-repository")
        except FileNotFoundError:
            return False
        return answer.returncode == 0 and answer.stdout.strip() == "false"

    def stale(self, commit: str, paths: Sequence[str]) -> bool:
        """Whether files under `paths` now differ from those of `commit`; a commit that is unknown counts as old."""
        return COMMIT.fullmatch(commit) is None or self._stale(commit, tuple(paths))

    def _compare(self, commit: str, paths: tuple[str, ...]) -> bool:
        return self._git("diff", "--quiet", commit, "--", *paths).returncode != 0
