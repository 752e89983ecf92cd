"""``select_k`` of few long rows, as sparse attention and sampling ask for them, compared with ``torch.topk``.

Every cell is judged like the other bars: without a wait for the check for NaN, and as a CUDA graph.
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
    """A case for each cell; by name only."""
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
            bars=(Bar(PEER, BAR),),
            peers=(PEER,),
            cost=2.0,
            metric="",
            rare=True,
        )
