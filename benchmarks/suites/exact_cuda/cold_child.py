"""A fresh process that makes rows, searches them twice, and prints the seconds of both searches (cold.py)."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np

from ...harness.datasets.hard import make
from .reports import levels_of, reports


def main(asked: str) -> None:
    """Make the rows, search them twice, and print the seconds of both searches.

    In a prepared case, the timed call also prepares the points.
    """
    import torch

    import tonari

    kind, n, m, d, k, graph, prepared, target, where, out = json.loads(asked)
    data = make(kind, n, 0 if graph else m, d, where)

    def finished() -> float:
        if torch.device(where).type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()

    seconds, kernels = [], []
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
            kernels.append(kernels_compiled())
    distances, indices = (part.cpu().numpy() for part in found)
    np.savez(out, distances=distances, indices=indices)
    told = {"seconds": seconds[0], "again": seconds[1], "levels": levels_of(seen), "kernels": kernels[0]}
    print(json.dumps(told))


def kernels_compiled() -> int:
    """Return the number of kernels in Triton's cache, which was empty when the process started."""
    return sum(1 for _ in Path(os.environ["TRITON_CACHE_DIR"]).rglob("*.cubin"))


if __name__ == "__main__":
    main(sys.argv[1])
