"""Copy results from a device to host memory while the device works; the counterpart of prefetch.py.

device   --separate stream-->   pinned buffers   --threads-->   arrays
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tonari.cuda import tuning
from tonari.cuda.copying.staging import Carrier, Piece


class Collector(Carrier):
    """Copies tensors to host memory in the background. A context manager, which ends its threads on exit.

    Parameters
    ----------
    device : torch device
        On the CPU, where Triton's interpreter runs, the threads copy the tensors directly.
    """

    def __init__(self, device: Any) -> None:
        super().__init__(device, pieces=1)

    def collect(self, source: Any, out: npt.NDArray[Any]) -> None:
        """Start copying a contiguous tensor into a C-contiguous array; the copy waits for work launched before it.

        The tensor and the array must have the same dtype. The array is complete after :meth:`arrive`. Until then, the
        tensor is kept in memory, and must not be overwritten.
        """
        there, target = source.view(-1).view(torch.uint8), out.reshape(-1).view(np.uint8)

        def move(here: slice, piece: Piece | None) -> None:
            if piece is None:
                np.copyto(target[here], there[here].numpy())
            else:
                piece.fetch(there[here], target[here], self._stream)

        self._carry(len(there), tuning.PIECE_BYTES, move)
