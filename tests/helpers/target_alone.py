"""A stand-in for Triton's driver on machines without a GPU: kernels are compiled, and loading them is only recorded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

HOPPER = ("cuda", 90, 32)


class TargetAlone:
    """A driver that reports the target to compile for, and only records which kernels are loaded.

    Attributes
    ----------
    loaded : list of str
        Names of the kernels that were loaded.
    """

    def __init__(self, target: tuple[Any, ...] = HOPPER) -> None:
        from triton.backends.compiler import GPUTarget

        self._target = GPUTarget(*target)
        self.loaded: list[str] = []
        self.utils = SimpleNamespace(
            load_binary=self._load, get_device_properties=lambda device: {"max_shared_mem": 232448}
        )

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        return self._target

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        return object()

    def _load(self, name: str, *_: Any) -> tuple[Any, ...]:
        self.loaded.append(name)
        return None, None, 0, 0, 1024
