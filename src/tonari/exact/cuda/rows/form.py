"""The form in which the GPU compares rows: metric, centre and scale (docs/exactness.md, "Forms and scores").

A row x is compared as its form row x':

    sqeuclidean, euclidean    x' = scale (x - centre)         a = |x'|^2     query_term = |q'|^2
    cosine, correlation       x' = scale x / |x|              a = 0          query_term = 0
    inner_product             x' = scale x                    a = 0          query_term = 0
    elementwise               x' = scale x

A value is computed from its score as on the CPU, with two exceptions. Angular forms have scale 1 on the CPU but 2^6
here, so that small elements are normal numbers in float16; the formula is therefore value = 1 + score / (2 scale^2).
The inner product has no centre here, because 8-bit integers need not be signed.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from tonari.cuda.compiling.rehearsal import without_data
from tonari.cuda.launch import launch
from tonari.exact.cuda import tuning
from tonari.metrics import Metric, get_metric

ANGULAR_SCALE = 64.0


@dataclass(frozen=True)
class DeviceForm:
    """The transformation of rows, by a centre and a scale, to the form that the screen compares.

    Attributes
    ----------
    metric : str
    d : int
    centre : float64 tensor (d,)
    scale : float64 tensor (1,)
        A power of two from 2^-493 to 2^500; for codes (rows/codes.py) any number. For an elementwise metric,
        scale^degree is from 2^-1000 to 2^1000.
    """

    metric: str
    d: int
    centre: Any
    scale: Any

    def without_data(self) -> DeviceForm:
        """Return a form without data on the device "meta", for a rehearsal."""
        return dataclasses.replace(self, centre=without_data(self.centre), scale=without_data(self.scale))


def shifted_form(metric: str, d: int, shift: int, device: Any) -> DeviceForm:
    """Return the form of scale 1 that subtracts the same number from every element."""
    import torch

    centre = torch.full((d,), float(shift), dtype=torch.float64, device=device)
    return DeviceForm(metric, d, centre, torch.ones(1, dtype=torch.float64, device=device))


def make_form(points: Any, metric: str) -> DeviceForm:
    """Choose centre and scale for points, from at most CENTRE_ROWS of them, without waiting for the device.

    The scale brings the largest element of the sampled form rows into [2^6, 2^7). If rows are centred, the range is
    wider by 2^-5 at both ends, because the centre is rounded. For a metric whose bounds hold only up to elements of the
    size `largest`, the range is [1/4, 1), far below `largest`. 8-bit integers keep scale 1 with L2 metrics and the
    inner product, since they are exact in float16. Values that searches refuse count as 0.

    Parameters
    ----------
    points : tensor (n, d)
        float32, float16, bfloat16, float64, uint8 or int8; ``stride(1) == 1``, any stride between rows.
    metric : str
        A name in ``tonari.metrics.METRICS``.
    """
    import torch

    from tonari.exact.cuda.kernels.rows.form import sample_kernel, settle_kernel

    n, d = points.shape
    device = points.device
    family = get_metric(metric)
    centred = family.squares
    whole = points.dtype in (torch.uint8, torch.int8) and (centred or family.products)
    if family.angular or (whole and not centred):
        scale = 1.0 if whole else ANGULAR_SCALE
        centre = torch.zeros(d, dtype=torch.float64, device=device)
        return DeviceForm(metric, d, centre, torch.full((1,), scale, dtype=torch.float64, device=device))

    every = -(-n // min(tuning.CENTRE_ROWS, max(tuning.CENTRE_FEWEST, tuning.CENTRE_VALUES // d)))
    count = -(-n // every)
    blocks = -(-d // tuning.CENTRE_TILE["COLUMNS"])
    chunk = -(-count // max(1, min(tuning.CENTRE_PROGRAMS // blocks, -(-count // tuning.CENTRE_TILE["ROWS"]))))
    parts = -(-count // chunk)
    found = torch.empty((3, parts, d), dtype=torch.float64, device=device)
    launch(
        sample_kernel,
        parts * blocks,
        {
            "rows_ptr": points,
            "parts_ptr": found,
            "n": n,
            "d": d,
            "stride": points.stride(0),
            "every": every,
            "count": count,
            "chunk": chunk,
            "blocks": blocks,
        },
        constants=tuning.CENTRE_TILE,
        warps=4,
    )
    centre = torch.empty(d, dtype=torch.float64, device=device)
    scale = torch.empty(1, dtype=torch.float64, device=device)
    launch(
        settle_kernel,
        1,
        {
            "parts_ptr": found,
            "centre_ptr": centre,
            "scale_ptr": scale,
            "parts": parts,
            "d": d,
            "count": count,
        },
        constants={"CENTRED": centred, "WHOLE": whole, **_powers_of(family), **tuning.SETTLE_TILE},
        warps=16,
    )
    return DeviceForm(metric, d, centre, scale)


def _powers_of(metric: Metric) -> dict[str, int]:
    """Return constants of settle_kernel: exponents of two that bound the largest element and the scale.

    EVERY is the step between possible exponents of the scale.
    """
    degree = metric.degree if metric.elementwise else 1.0
    step = 1 if degree.is_integer() else 2
    most = min(500, int(1000 / max(degree, 1.0))) // step * step
    return {"TOP": 6 if metric.largest == math.inf else -1, "LEAST": -most, "MOST": most, "EVERY": step}
