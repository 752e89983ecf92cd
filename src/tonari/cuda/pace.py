"""Keep the host at most one step of work ahead of a device, so that Ctrl-C takes effect between steps."""

from __future__ import annotations

from typing import Any

import torch


class Pace:
    """Steps of work on the current stream of one device. The host launches at most one step ahead of the device.

    Parameters
    ----------
    device : torch device
        The device. On the CPU, where Triton's interpreter runs, a launch returns when it is done.
    """

    def __init__(self, device: Any) -> None:
        self._device = torch.device(device)
        self._last: Any = None

    def step(self) -> None:
        """Mark the end of a step that has been launched, and wait until the previous step is done."""
        if self._device.type != "cuda":
            return
        end = torch.cuda.Event(blocking=True)
        end.record(torch.cuda.current_stream(self._device))
        before, self._last = self._last, end
        if before is not None:
            before.synchronize()
