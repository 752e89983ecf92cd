"""Find out, by git, whether code has changed since it was measured."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ..rows import Row

# (suite, device) -> paths of the code that the suite's rows measure on this device.
Code = Mapping[tuple[str, str], tuple[str, ...]]


class History:
    """The git history of a checkout, which shows whether measured code has changed since.

    Attributes
    ----------
    code : (suite, device) -> paths in git's notation; notes about old rows name the code by its first path
    """

    def __init__(self, root: Path, code: Code) -> None:
        self.root = root
        self.code = code
        self._stale = lru_cache(maxsize=None)(self._compare)

    def _git(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(self.root), *arguments], capture_output=True, text=True, check=False)

    @property
    def complete(self) -> bool:
        """Whether git and the complete history are available."""
        try:
            answer = self._git("rev-parse", "--is-shallow-repository")
        except FileNotFoundError:
            return False
        return answer.returncode == 0 and answer.stdout.strip() == "false"

    def require(self) -> None:
        """Raise SystemExit if the history is not complete."""
        if not self.complete:
            raise SystemExit(
                f"{self.root} has no git history, or a part of it only: without it nobody can tell which figures are "
                "older than their code. Run this in a full clone (git fetch --unshallow)."
            )

    def paths(self, row: Row) -> tuple[str, ...]:
        """Return the paths of the code that a row measures."""
        return self.code[row["suite"], row["device"]]

    def old(self, row: Row) -> bool:
        """Whether a row is older than the code that it measures."""
        return self.stale(row["commit"], self.paths(row))

    def stale(self, commit: str, paths: Sequence[str]) -> bool:
        """Whether files under `paths` have changed since `commit`; True if git does not know the commit."""
        return self._stale(commit, tuple(paths))

    def _compare(self, commit: str, paths: tuple[str, ...]) -> bool:
        return self._git("diff", "--quiet", commit, "--", *paths).returncode != 0
