"""The certificate, which decides which rows are proved: no closer point can be missing from the answer of such rows."""

from __future__ import annotations

from typing import Any

from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.exact.cuda.rows.form import DeviceForm
from tonari.metrics import get_metric


def certify(form: DeviceForm, shift: Any, kth: Any, next_minimum: Any, proved: Any, *, double: bool) -> None:
    """Decide for each row whether a point that was not refined may belong to its answer; launches one kernel.

    Parameters
    ----------
    shift : float64 tensor (rows,), contiguous
        The term of a score that depends on the query alone, as packed; +inf for a query beyond range, which is never
        certified.
    kth : float32 or float64 tensor (rows,), strided or not
        The exact k-th returned value. A row with fewer than k values (infinity or NaN here) is never proved.
    next_minimum : float32 tensor (rows,), strided or not
        A lower bound on the scores of all points that were not refined; +inf if all were.
    proved : bool or uint8 tensor (rows,), contiguous
        Output: whether no such point belongs to the row's answer.
    double : bool
        Whether values are returned as float64.
    """
    from tonari.exact.cuda.kernels.refine.certify import certify_kernel

    rows = len(kth)
    launch(
        certify_kernel,
        -(-rows // tuning.CERTIFIED_ROWS),
        {
            "shift_ptr": shift,
            "kth_ptr": kth,
            "next_ptr": next_minimum,
            "scale_ptr": form.scale,
            "proved_ptr": proved,
            "rows": rows,
            "d": form.d,
            "kth_stride": kth.stride(0),
            "next_stride": next_minimum.stride(0),
        },
        constants={"METRIC": get_metric(form.metric), "DOUBLE": double, "ROWS": tuning.CERTIFIED_ROWS},
        warps=4,
        fused=False,  # so that all devices give the same result
    )
