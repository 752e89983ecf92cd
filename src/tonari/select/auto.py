"""Choose the method and options for method="auto": the ones that were fastest on the nearest shape in a table.

    distance² = (log2 rows - log2 rows')² + (log2 n - log2 n')² + (log2 k - log2 k')²

The table, ``auto_table.json``, lists the fastest method for every shape that was timed; ``python -m benchmarks learn``
writes it. The nearest shape is the one with the smallest distance. Only timings on the same device count, and among
these only the ones whose values are nearest in size (bytes per value). Every method gives the same answer, so a poor
choice costs only time.

Some inputs are decided without the table. On the CPU, short rows use "bitonic", which sorts several of them side by
side. On a GPU, few long rows use "threshold", which cuts them into parts. Keys of 64 bits use "threshold" instead of
"bitonic", because the table has no timings of such keys on a GPU: for 1 to 128 rows of 544 and 2,112 float64 values and
k = 10, "threshold" took 4 to 6 µs on Hopper and "bitonic" 8 to 19, and it compiles in a third of the time. For k above
LARGEST_TIMED, a GPU uses "radix" if the input is so small that kernel launches dominate, or if k is too large for a
sorting network.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import log2
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tonari.core.process.caches import cached
from tonari.select import tuning
from tonari.select.cuda import parts
from tonari.select.cuda.survivors import LARGEST_NETWORK

_TABLE = Path(__file__).with_name("auto_table.json")
# The largest k among the table's timings on a GPU.
LARGEST_TIMED = 2048
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "float64": 8, "int32": 4, "uint8": 1}

# The method and options for a device without timings: this method reads each row little more than once, and is fast
# for values in any order.
DEFAULT: tuple[str, Mapping[str, Any]] = ("threshold", MappingProxyType({}))


@cached(maxsize=4096)
def choose(device: str, rows: int, n: int, k: int, dtype: str) -> tuple[str, Mapping[str, Any]]:
    """Choose how to select the k smallest values of every row of a (rows, n) matrix.

    Parameters
    ----------
    device : "cpu" or "cuda"
    rows, n, k : int
        The shape of the matrix, and the number of values to select per row. There may be 0 rows.

    Returns
    -------
    str
        The name of a method.
    mapping
        The options of the method.
    """
    if device == "cpu" and n * max(4, _BYTES[dtype]) <= tuning.SHORT_ROW_BYTES:
        return "bitonic", MappingProxyType({})
    if device == "cuda" and parts.suits(rows, n) and parts.shape_for(n, k, _BYTES[dtype] == 8) is not None:
        return DEFAULT
    if device == "cuda" and k > (LARGEST_TIMED if rows * n <= tuning.FEW_VALUES else LARGEST_NETWORK):
        return "radix", MappingProxyType({})
    timed = [entry for entry in load_table() if entry["device"] == device]
    if not timed:
        return DEFAULT

    def distance(entry: Mapping[str, Any]) -> tuple[float, float]:
        shape = ((max(1, rows), entry["rows"]), (n, entry["n"]), (k, entry["k"]))
        return abs(log2(_BYTES[dtype] / entry["bytes"])), sum(log2(ours / theirs) ** 2 for ours, theirs in shape)

    nearest = min(timed, key=distance)
    if device == "cuda" and _BYTES[dtype] == 8 > nearest["bytes"] and nearest["method"] == "bitonic":
        return DEFAULT
    return nearest["method"], MappingProxyType(nearest["options"])


@cached(maxsize=1)
def load_table() -> list[dict[str, Any]]:
    """Load the table of timings: a list of entries with the keys device, rows, n, k, bytes, method and options."""
    table: list[dict[str, Any]] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return table
