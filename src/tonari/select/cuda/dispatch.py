"""k-selection on CUDA: the method's own launcher, on the values' device, and whether a NaN came by."""

from __future__ import annotations

from typing import Any

from tonari.select.auto import choose
from tonari.select.registry import make_options, method_module
from tonari.select.request import Request, Selection

_NO_ROW = 2**31 - 1  # what kernels leave where no row has NaN


def select_on_gpu(method: str, request: Request) -> tuple[Selection, int | None]:
    """Answer a request whose values are a torch tensor.

    Returns
    -------
    Selection of tensors on the values' device, and the first row with NaN if the request asks for it and there is one
        On the CPU the tensors are those that Triton's interpreter works on.
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
    if values.is_cuda and values.device.index != torch.cuda.current_device():  # Triton launches on the current one
        with torch.cuda.device(values.device):
            answer = launch(request)
    else:
        answer = launch(request)
    # Reading the row waits for the kernels, so only where it was asked for.
    row = None if answer.nan_row is None else int(answer.nan_row.item())
    return Selection(answer.values, answer.indices), None if row == _NO_ROW else row


def k_smallest(values: Any, k: int) -> Selection:
    """The k smallest of every row of a tensor on a GPU, ascending, without the border: no NaN, 1 <= k <= columns.

    Ties go to the smaller column. Nothing waits for the device.
    """
    rows, n = values.shape
    dtype = str(values.dtype).removeprefix("torch.")
    method, options = choose("cuda", rows, n, k, dtype)
    request = Request(values, dtype, k, make_options(method, options, "cuda"), check_nan=False)
    return select_on_gpu(method, request)[0]
