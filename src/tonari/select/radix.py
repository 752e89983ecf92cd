"""Radix selection: the k-th smallest key digit by digit, most significant first.

Alabi, Blanchard, Gordon and Steinbach 2012, "Fast k-selection algorithms for graphics processing units"; the early stop
is that of AIR Top-k (Zhang et al., SC 2023). A row is read once per digit and once to collect, whatever k is: it is
the method that has no cliff, and the one that answers rows on which a sampled threshold fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tonari.launching import launch
from tonari.select.keys import FORMATS, as_bits
from tonari.select.request import Answer, Request
from tonari.select.survivors import LARGEST_TILE, Survivors, answer_from_survivors, power_of_two

TILE = 2048
WARPS = 4


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of ``method="radix"``.

    Attributes
    ----------
    bits : int from 1 to 11
        Width of a digit: 2**bits counters and ceil(32 / bits) reads of a row, twice as many for float64.
    """

    bits: int = 8

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 11:
            raise ValueError(f"bits={self.bits}: a digit has from 1 to 11 bits")


def with_defaults(request: Request) -> Request:
    """The same request for this method."""
    return replace(request, options=Options())


def select_on_gpu(request: Request) -> Answer:
    """Answer a request on the device of its values."""
    from tonari.select._radix_triton import radix_kernel

    form = FORMATS[request.dtype]
    bits = as_bits(request.values, request.dtype)
    capacity = power_of_two(request.k) if request.k <= LARGEST_TILE else request.k

    def narrow(survivors: Survivors) -> None:
        rows = survivors.rows
        launch(
            radix_kernel,
            rows.stop - rows.start,
            bits[rows],
            None if request.lengths is None else request.lengths[rows],
            survivors.bits,
            survivors.ids,
            survivors.counts,
            survivors.nan_row,
            rows.start,
            bits.stride(0),
            bits.shape[1],
            request.k,
            capacity,
            constants={
                "HAS_LENGTHS": request.lengths is not None,
                "CHECK_NAN": request.check_nan and form.infinite > 0,
                "INFINITE": form.infinite,
                "LARGEST": request.largest,
                "WIDE": form.wide,
                "BITS": request.options.bits,
                "TILE": TILE,
            },
            warps=WARPS,
        )

    return answer_from_survivors(request, capacity, narrow)
