"""Rehearse a search: record the kernels that it launches, by running it on tensors without data.

On torch's device "meta", tensors have shapes, dtypes and strides, but no memory, and operations on them do nothing. The
code of a search therefore runs on such rows in milliseconds, and :func:`tonari.cuda.launch.launch` only records its
launches. The record is complete, because the code of the search itself makes it, and not a separate list of kernels.
"""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple


class Card(NamedTuple):
    """The properties of a CUDA device that its launches depend on.

    Attributes
    ----------
    capability : (int, int)
        The version of the architecture, such as (9, 0) for Hopper.
    """

    capability: tuple[int, int]
    multiprocessors: int

    @property
    def is_hopper(self) -> bool:
        """Whether the device has Hopper's matrix units."""
        return self.capability[0] == 9


@dataclass(frozen=True)
class Call:
    """A launch of a kernel, executed or only recorded, with everything that determines the compiled variant.

    Attributes
    ----------
    kernel : triton.JITFunction
    arguments : mapping of names to ints, None, tensors and descriptors
    constants : mapping of names to values
    options : mapping of names to values
        Triton's options, such as ``num_warps``.
    variant : tuple
        The key of the compiled variant in :mod:`tonari.cuda.launch`, without the device.
    """

    kernel: Any
    arguments: Mapping[str, Any]
    constants: Mapping[str, Any]
    options: Mapping[str, Any]
    variant: tuple[Hashable, ...]

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.kernel.fn.__name__)


class Rehearsal:
    """The launches that a rehearsal has recorded: for each kernel variant the first launch, in order."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self.calls: dict[tuple[Hashable, ...], Call] = {}


_current: ContextVar[Rehearsal | None] = ContextVar("tonari_rehearsal", default=None)


@contextlib.contextmanager
def rehearsing(card: Card) -> Iterator[Rehearsal]:
    """Return a context that records launches on the device "meta" as if they were on a card."""
    rehearsal = Rehearsal(card)
    before = _current.set(rehearsal)
    try:
        yield rehearsal
    finally:
        _current.reset(before)


def rehearsed_card() -> Card:
    """Return the card that a rehearsal is for; raise RuntimeError outside of a rehearsal."""
    return _rehearsal().card


def note(call: Call) -> None:
    """Record a launch on the device "meta"."""
    _rehearsal().calls.setdefault(call.variant, call)


def to_visit(parts: list[slice], device: Any) -> list[slice]:
    """Return the slices of rows; on "meta", only the first two and the last, which are enough to launch all kernels."""
    return parts if device.type != "meta" or len(parts) < 3 else [*parts[:2], parts[-1]]


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate tensors by torch.cat; on "meta", where it is slow to import, only allocate the result."""
    import torch

    first = parts[0]
    if first.device.type != "meta":
        return torch.cat(list(parts))
    return first.new_empty((sum(map(len, parts)), *first.shape[1:]))


def least_of(a: Any, b: Any) -> Any:
    """Return torch.minimum(a, b); on "meta", where the function is slow to import, a tensor of the same shape."""
    import torch

    return torch.minimum(a, b) if a.device.type != "meta" else a.new_empty(a.shape)


def both_of(a: Any, b: Any) -> Any:
    """Return a & b for bool tensors; on "meta", where the operator is slow to import, a tensor of the same shape."""
    return a & b if a.device.type != "meta" else a.new_empty(a.shape)


def product_of(a: Any, b: Any) -> Any:
    """Return the matrix product a @ b; on "meta", where the operator is slow to import, a tensor of the same shape."""
    return a @ b if a.device.type != "meta" else a.new_empty((a.shape[0], b.shape[1]))


def numbers_from(first: int, count: int, device: Any, dtype: Any = None) -> Any:
    """Return a tensor of the integers ``first, ..., first + count - 1``, by default int64.

    On "meta", where torch.arange is slow to import, return a tensor without data.
    """
    import torch

    if torch.device(device).type == "meta":
        return torch.empty(count, dtype=dtype or torch.int64, device=device)
    return torch.arange(first, first + count, dtype=dtype or torch.int64, device=device)


def order_of(keys: Any) -> Any:
    """Return the positions of the keys in sorted order, int64; equal keys keep their order.

    On "meta", where torch.sort is slow to import, return a tensor without data.
    """
    import torch

    if keys.device.type == "meta":
        return torch.empty(keys.shape, dtype=torch.int64, device="meta")
    return torch.sort(keys, stable=True).indices


def each_repeated(rows: Any, times: int) -> Any:
    """Repeat each row `times` times in succession.

    On "meta", where torch.repeat_interleave is slow to import, return a tensor without data.
    """
    if rows.device.type == "meta":
        return rows.new_empty((len(rows) * times, *rows.shape[1:]))
    return rows.repeat_interleave(times, 0)


def all_repeated(rows: Any, times: int) -> Any:
    """Repeat all rows `times` times by torch.repeat; on "meta", where it is slow to import, only allocate them."""
    if rows.device.type == "meta":
        return rows.new_empty((times * len(rows), *rows.shape[1:]))
    return rows.repeat(times, *[1] * (rows.dim() - 1))


def without_data(tensor: Any) -> Any:
    """Return a tensor of the same shape, strides and dtype on the device "meta", or None for None."""
    import torch

    if tensor is None:
        return None
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def _rehearsal() -> Rehearsal:
    current = _current.get()
    if current is None:
        raise RuntimeError("tensors on the device 'meta' have no data to search")
    return current
