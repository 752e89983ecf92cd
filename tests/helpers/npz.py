"""Arrays of .npz files, which are closed at once: a file that is still open when it is freed is a warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def arrays_of(path: str | Path) -> dict[str, Any]:
    """Return the arrays of a file by their names."""
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
