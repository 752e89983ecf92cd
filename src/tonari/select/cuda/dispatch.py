"""k-selection on CUDA: run the requested method on the device of the values, and report NaN."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from tonari.core.process.caches import emptied_by
from tonari.cuda.compiling.ahead import expecting
from tonari.cuda.compiling.rehearsal import without_data
from tonari.select import tuning
from tonari.select.auto import choose
from tonari.select.cuda.survivors import LARGEST_NETWORK
from tonari.select.registry import make_options, method_module
from tonari.select.request import Request, Selection

_NO_ROW = 2**31 - 1  # the value of nan_row if the kernels find no NaN

# Shapes and options of selections whose kernels are compiled, or are being compiled. For these, the context that
# compiles kernels is not entered, which would take 2 µs.
_compiled: set[tuple[Any, ...]] = set()
emptied_by(_compiled.clear)


def select_alone(method: str, request: Request) -> tuple[Selection, int | None]:
    """Answer a request as :func:`select_on_gpu` does, but compile all its kernels at once; not for use by searches."""
    values, options = request.values, (request.options, request.largest, request.sorted, request.check_nan)
    key = (method, values.shape, values.dtype, request.k, request.lengths is None, *options)
    if key in _compiled or request.counters is not None or request.k > LARGEST_NETWORK:  # torch sorts for a larger k
        return select_on_gpu(method, request)
    if len(_compiled) >= tuning.COMPILED_SHAPES:
        _compiled.clear()
    _compiled.add(key)
    with expecting(functools.partial(rehearse, method, request)):
        return select_on_gpu(method, request)


def rehearse(method: str, request: Request) -> None:
    """Launch the kernels of a request on tensors without data (cuda/compiling/rehearsal.py)."""
    values, lengths = without_data(request.values), without_data(request.lengths)
    method_module(method).select_on_gpu(dataclasses.replace(request, values=values, lengths=lengths))


def select_on_gpu(method: str, request: Request) -> tuple[Selection, int | None]:
    """Answer a selection request whose values are in a torch tensor.

    Returns
    -------
    Selection
        Its values and indices are tensors on the device of the values; on the CPU in Triton's interpreter.
    int or None
        The first row that contains NaN if the request asks for it, else None.
    """
    import torch

    try:
        import triton  # noqa: F401
    except ImportError as error:
        raise ImportError("k-selection on CUDA needs Triton: pip install 'tonari[gpu]'") from error
    values: Any = request.values
    if values.shape[0] == 0:
        empty = (0, request.k)
        return Selection(values.new_empty(empty), values.new_empty(empty, dtype=torch.int32)), None
    launch = method_module(method).select_on_gpu
    if values.is_cuda and values.device.index != torch.cuda.current_device():  # Triton launches on the current device
        with torch.cuda.device(values.device):
            answer = launch(request)
    else:
        answer = launch(request)
    # nan_row is read only on request, because the host has to wait for the kernels to read it.
    row = None if answer.nan_row is None else int(answer.nan_row.item())
    return Selection(answer.values, answer.indices), None if row == _NO_ROW else row


def k_smallest(values: Any, k: int) -> Selection:
    """Select the k smallest values of every row of a tensor on a GPU, in ascending order, without checks.

    The values must not contain NaN, and k must be from 1 to the number of columns. Ties go to the smaller column. The
    host does not wait for the device.
    """
    rows, n = values.shape
    dtype = str(values.dtype).removeprefix("torch.")
    method, options = choose("cuda", rows, n, k, dtype)
    request = Request(values, dtype, k, make_options(method, options, "cuda"), check_nan=False)
    return select_on_gpu(method, request)[0]
