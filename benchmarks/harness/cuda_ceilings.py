"""The highest rates that a GPU reaches (its ceilings), each measured once in a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .device import Device

GEMM_SIZE = 8192
GEMM_COLUMNS = 1 << 17
PCIE_BYTES = 1 << 30
REPEATS = 10


class CudaCeilings:
    """The ceilings of one GPU.

    - ``gemm``: FLOP/s of torch.matmul in float16 on random data at 8192 x 8192 x 8192.
    - ``gemm_at``: the same for 8192 rows, 2^17 columns and the inner dimension of a screen; the time includes
      writing the product.
    - ``copy``: bytes per second of copying on the device, read and written bytes both counted.
    - ``pcie``: bytes per second from pinned host memory to the device.
    """

    def __init__(self, device: Device, where: str) -> None:
        self._device, self._where = device, where
        self._known: dict[Any, float] = {}

    def gemm(self) -> float:
        return self._gemm(GEMM_SIZE, GEMM_SIZE)

    def gemm_at(self, d: int) -> float:
        return self._gemm(d, GEMM_COLUMNS)

    def copy(self) -> float:
        return self._device.copy_rate()

    def pcie(self) -> float:
        import torch

        def measure() -> float:
            source = torch.ones(PCIE_BYTES, dtype=torch.uint8, pin_memory=True)
            target = torch.empty_like(source, device=self._where)
            return PCIE_BYTES / self._best(lambda: target.copy_(source, non_blocking=True))

        return self._once("pcie", measure)

    def _gemm(self, inner: int, columns: int) -> float:
        import torch

        def measure() -> float:
            generator = torch.Generator(self._where).manual_seed(0)
            a, b = (
                torch.empty(shape, dtype=torch.float16, device=self._where).normal_(generator=generator)
                for shape in ((GEMM_SIZE, inner), (inner, columns))
            )
            out = torch.empty((GEMM_SIZE, columns), dtype=torch.float16, device=self._where)
            return 2.0 * GEMM_SIZE * inner * columns / self._best(lambda: torch.matmul(a, b, out=out))

        return self._once((inner, columns), measure)

    def _best(self, call: Callable[[], object]) -> float:
        call()
        return min(self._device.once(call) for _ in range(REPEATS))

    def _once(self, key: Any, measure: Callable[[], float]) -> float:
        if key not in self._known:
            self._known[key] = measure()
        return self._known[key]
