"""An array that claims to be on a device, on machines without one."""

from __future__ import annotations

from typing import Any

import numpy as np


class OnDevice:
    """An array with those attributes of a device array that are checked before the array is read."""

    def __init__(self, kind: int = 2, number: int = 0, rows: Any = None) -> None:
        self.rows = np.zeros((4, 2), np.float32) if rows is None else rows
        self.shape, self.dtype = self.rows.shape, self.rows.dtype
        self._place = kind, number

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._place

    def __len__(self) -> int:
        return len(self.rows)
