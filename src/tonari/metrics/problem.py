"""The sizes and the dtype of a problem, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tonari import inputs
from tonari.metrics import get_metric, is_own


def check_problem(
    n: int, m: int, d: int, k: int, *, dtype: npt.DTypeLike, metric: str, self_join: bool, own: bool = False
) -> tuple[np.dtype[Any], int]:
    """Refuse a search that no device can do; the dtype and k that are left. By a Triton function only if `own`."""
    if is_own(get_metric(metric).name) and not own:
        raise ValueError(f"metric {metric!r}: a Triton function serves method='nn-descent' on CUDA alone")
    for name, value in (("n", n), ("m", m), ("d", d)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    if self_join and m != n:
        raise ValueError(f"a self-join has as many queries as points, got m={m} and n={n}")
    k = inputs.check_k(k, n - self_join, without_self=self_join)
    kind = inputs.dtype_of(dtype)
    if kind not in inputs.ACCEPTED:
        raise ValueError(f"dtype {kind} is not searched; expected one of {', '.join(inputs.ACCEPTED_NAMES)}")
    return kind, k
