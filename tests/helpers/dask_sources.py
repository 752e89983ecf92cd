"""A source of points whose reading fails on Dask workers, in a module that the workers can import."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np

WAITS_SECONDS = 60.0


class Points:
    """The rows of a file; reading them fails or waits in all processes except the one that made this object.

    Parameters
    ----------
    path : Path
        A .npy file.
    notes : Path
        A directory, in which each failing or waiting call leaves an empty file.
    what : str
        How reading fails. "dies": the first process that reads kills itself. "always dies": every process does.
        "fails": RuntimeError is raised. "refuses": ValueError is raised. "waits": reading waits until `notes` has a
        file "go", or for a minute.
    """

    def __init__(self, path: Path, notes: Path, what: str) -> None:
        self.path, self.notes, self.what, self.maker = path, notes, what, os.getpid()
        self.shape = np.load(path, mmap_mode="r").shape

    def rows(self, begin: int, end: int) -> Any:
        if os.getpid() != self.maker and not (self.what == "dies" and self.seen()):
            (self.notes / f"{os.getpid()}-{time.monotonic_ns()}").touch()
            if self.what.endswith("dies"):
                os.kill(os.getpid(), signal.SIGKILL)
            if self.what == "fails":
                raise RuntimeError(f"no rows {begin} to {end}")
            if self.what == "refuses":
                raise ValueError(f"no rows {begin} to {end}, ever")
            until = time.monotonic() + WAITS_SECONDS
            while not (self.notes / "go").exists() and time.monotonic() < until:
                time.sleep(0.02)
        return np.load(self.path, mmap_mode="r")[begin:end]

    def seen(self) -> int:
        """Return how often reading failed or waited."""
        return len(list(self.notes.iterdir()))
