"""The arrays of .npz files, which are closed at once, since Python warns of files that are still open when freed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def arrays_of(path: str | Path) -> dict[str, Any]:
    """Return the arrays in a file as a dict by their names."""
    with np.load(path, allow_pickle=False) as file:
        return dict(file)
