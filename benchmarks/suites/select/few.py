"""``select_k`` of few long rows, as in sparse attention and sampling, compared with ``torch.topk``.

Every cell (a shape and k) is judged twice: with ``nan="last"``, which does not wait for the device, and as a replayed
CUDA graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from ...harness.case import Bar, Case
from .bars import judge

ROWS = (1, 4, 16, 64)
COLUMNS = (2**13, 2**15, 2**17, 2**20)
SIZES_K = (64, 512, 1024, 2048)
DTYPES = ("float32", "bfloat16")
PEER, BAR = "torch.topk", 1.5


def cases() -> Iterator[Case]:
    """Return a case for each cell; these cases run only by name."""
    for dtype, rows, n, k in product(DTYPES, ROWS, COLUMNS, SIZES_K):
        name = f"few-{rows}x{n}-k{k}" + ("" if dtype == "float32" else f"-{dtype}")
        yield Case(
            name,
            "cuda",
            n,
            rows,
            0,
            k,
            work=judge,
            data="random",
            dtype=dtype,
            bars=(Bar(PEER, BAR, home=""),),
            peers=(PEER,),
            cost=2.0,
            metric="",
            rare=True,
        )
