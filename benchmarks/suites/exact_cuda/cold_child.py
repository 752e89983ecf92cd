"""A fresh process that makes rows, searches them twice, and prints what that took (cold.py)."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

from ...harness.datasets.hard import make
from .reports import levels_of, reports


def main(asked: str) -> None:
    """Make the rows, search them twice, and print what that took: the whole of a fresh process.

    Points that are prepared are prepared by the call.
    """
    import torch

    import tonari

    kind, n, m, d, k, graph, prepared, target, where, out = json.loads(asked)
    data = make(kind, n, 0 if graph else m, d, where)
    compiled = kernels_compiled()

    def finished() -> float:
        if torch.device(where).type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    seconds = []
    with reports() as seen:
        for _ in range(2):
            started = finished()
            if graph:
                how = {"method": "nn-descent", "recall": target} if target else {}
                lists = tonari.knn_graph(data.points, k, progress=False, **how)
                found = lists.distances, lists.indices
            elif prepared:
                found = tonari.Index(data.points, progress=False).search(data.queries, k, progress=False)
            else:
                found = tonari.search(data.queries, data.points, k, progress=False)
            seconds.append(finished() - started)
    distances, indices = (part.cpu().numpy() for part in found)
    np.savez(out, distances=distances, indices=indices)
    told = {"seconds": seconds[0], "again": seconds[1], "levels": levels_of(seen), "kernels": len(compiled)}
    print(json.dumps(told))


def kernels_compiled() -> list[str]:
    """Return a list that grows by the name of each kernel that has to be compiled."""
    from triton import knobs

    found: list[str] = []

    def listen(*, src: Any, cache_hit: bool, **_: Any) -> None:
        if not cache_hit:
            found.append(src.name)

    knobs.compilation.listener = listen
    return found


if __name__ == "__main__":
    main(sys.argv[1])
