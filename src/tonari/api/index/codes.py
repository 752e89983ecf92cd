"""The argument `codes` of an Index on CUDA: "int8" puts codes on the device, and leaves the points in host memory."""

from __future__ import annotations

from typing import Any

from tonari.core.errors import Unsupported
from tonari.methods.rows.place import Place
from tonari.metrics import Metric

_OTHERS = "'auto', 'int8', or without codes: route='host_refine' and form_dim=64 (float32), or route='streamed'"


def with_codes(codes: str, metric: Metric, place: Place, overrides: dict[str, Any]) -> dict[str, Any]:
    """Return the fields to set in every plan of an Index with these codes.

    Parameters
    ----------
    codes : str
        "auto" sets nothing; "int8" sets the route "codes".
    metric : Metric
        The metric that compares transformed rows.
    place : Place
    overrides : dict
        The plan fields that the caller sets.

    Raises
    ------
    ValueError, Unsupported
        The codes are unknown, or not available for this metric.
    """
    if codes == "auto":
        return overrides
    if codes in ("float16", "int4"):
        raise Unsupported(f"codes={codes!r}: there are no such codes yet; pass {_OTHERS}")
    if not (metric.squares or metric.angular):
        raise Unsupported(
            f"codes='int8': there are none for metric={metric.name!r}, only for euclidean, sqeuclidean, cosine and "
            "correlation; leave codes out"
        )
    route = overrides.get("route", "codes")
    if route != "codes":
        raise ValueError(f"codes='int8' and route={route!r}: leave one of them out")
    return overrides | {"route": "codes"}
