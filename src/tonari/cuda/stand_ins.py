"""What Triton asks of a tensor or a descriptor to compile a kernel for it; without data and torch, so it is pickled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

ALIGNMENT = 16  # bytes: Triton compiles another variant for tensors that begin elsewhere


class DType(NamedTuple):
    """A dtype of torch, by its name."""

    name: str
    itemsize: int

    def __str__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class TensorStandIn:
    """A tensor of which Triton asks dtype and alignment, or a matrix for a descriptor."""

    dtype: DType
    address: int
    shape: tuple[int, ...] = ()

    def data_ptr(self) -> int:
        """Return an address with the tensor's alignment."""
        return self.address

    def stride(self) -> tuple[int, ...]:
        """Return the strides of a contiguous matrix."""
        return self.shape[1], 1


@dataclass(frozen=True)
class DescriptorStandIn:
    """A tensor descriptor, from which one of Triton's or Gluon's classes is made where it is needed.

    Attributes
    ----------
    base : TensorStandIn
    block_shape : tuple of int
    layout : NVMMASharedLayout or None
        Of Gluon's descriptors; None for Triton's.
    """

    base: TensorStandIn
    block_shape: tuple[int, ...]
    layout: Any

    def made(self) -> Any:
        """Return the descriptor."""
        if self.layout is None:
            from triton.tools.tensor_descriptor import TensorDescriptor

            return TensorDescriptor.from_tensor(self.base, list(self.block_shape))
        from triton.experimental.gluon.nvidia import hopper

        return hopper.TensorDescriptor.from_tensor(self.base, list(self.block_shape), self.layout)


def stand_in(argument: Any) -> Any:
    """Return what stands for an argument of a launch: a tensor, a descriptor, an int or None."""
    if argument is None or isinstance(argument, int):
        return argument
    if hasattr(argument, "data_ptr"):
        return TensorStandIn(_dtype(argument), argument.data_ptr() % ALIGNMENT)
    base = TensorStandIn(_dtype(argument.base), 0, tuple(argument.base.shape))
    return DescriptorStandIn(base, tuple(argument.block_shape), getattr(argument, "layout", None))


def as_argument(standing: Any) -> Any:
    """Return what is passed to Triton for a stand-in."""
    return standing.made() if isinstance(standing, DescriptorStandIn) else standing


def _dtype(tensor: Any) -> DType:
    return DType(str(tensor.dtype).removeprefix("torch."), tensor.element_size())
