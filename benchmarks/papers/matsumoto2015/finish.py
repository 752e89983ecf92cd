"""matsumoto2015, V-C: the min-max heap compared with tonari's halving, on values that survive the paper's threshold.

    T = k-th smallest of n_S = 8 k samples of a row; the values at or below T, packed           not timed
    the k smallest of the survivors, finish "heap" or "halving"                                 timed, taking turns

Of n = 64 k or 128 k values, about 8 k or 16 k survive. Both finishes are called with a sample of a single value, which
has no k-th value, and halving samples nothing by itself if k is more than 1 / 38 of the survivors. So neither finish
computes a threshold of its own, and only the finishes are compared.

"whole" is sampling (8 k samples), pruning and the heap in one call. Its time minus that of the heap alone is the cost
of sampling and pruning.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.datasets import selections
from ...harness.device import take_turns
from ...harness.proof.selection import PROOF, Proof
from ...harness.run import Run, say, seconds_of
from ...suites.select.measure import call_of, columns, over, size
from .search import pruned
from .selection import DATA, QUERIES, SIZES_K

FINISHES = ("heap", "halving")
# Too small a number of samples for a threshold, so that both finishes get all survivors.
TOO_FEW = 1
SAMPLES_OVER_K = 8
# Lengths n of a row, as multiples of k.
LENGTHS = (64, 128)
SECONDS = 0.2


def compare(run: Run, case: Case) -> None:
    """Compare both finishes for each kind of data, k and number of survivors."""
    for data in DATA:
        rows, n = size(run, QUERIES, 1)[0], max(SIZES_K) * max(LENGTHS)
        if data == "sift":
            rows, n = selections.sift_size(rows, n)
        whole = selections.make(data, rows, n, "float32", "cpu")
        for k in SIZES_K:
            for length in LENGTHS:
                if length * k > n:
                    continue
                if over(run):
                    run.write(case, [{"who": "tonari", "note": "not reached: this shape and those after it"}])
                    return
                say(f"{data}: {rows} x {length * k}, k = {k}")
                part = whole[:, : length * k].contiguous()
                run.write(case, measure(run, Proof(part, k), data, length // SAMPLES_OVER_K))


def measure(run: Run, proof: Proof, data: str, left: int) -> list[dict[str, Any]]:
    """Verify and time both finishes on about ``left * k`` survivors, and the whole selection with the heap."""
    import torch

    select_k, k, n = run.tonari.select_k, proof.k, proof.tensor.shape[1]
    chosen = torch.from_numpy(np.random.default_rng(0).choice(n, SAMPLES_OVER_K * k, replace=False))
    values, ids, lengths = (part.numpy() for part in pruned(select_k, proof.tensor, chosen, k))
    calls: dict[str, Callable[[], Any]] = {}
    options: dict[str, dict[str, Any]] = {finish: {"finish": finish, "samples": TOO_FEW} for finish in FINISHES}
    for finish, extra in options.items():
        calls[finish] = lambda extra=extra: select_k(
            values, k, method="threshold", nan="last", lengths=lengths, threads=run.threads, **extra
        )
    proved = {}
    for finish, call in calls.items():
        best = call()
        proved[finish] = proof.check((best.values, np.take_along_axis(ids, best.indices, axis=1)))
    options["whole"] = {"finish": "heap", "samples": SAMPLES_OVER_K * k}
    calls["whole"] = call_of(run, proof.tensor, k, "threshold", options["whole"], "last")
    proved["whole"] = proof.check(calls["whole"]())
    timings = take_turns(run.device, calls, seconds=SECONDS, most=run.repeats)
    return [
        columns(proof, "threshold", options[finish], data=data)
        | seconds_of(timing)
        | {"proof": PROOF, "proved": proved[finish]}
        | {"extras": {"series": f"{data}, {left} k left: {finish}", "survivors": float(lengths.mean())}}
        for finish, timing in timings.items()
    ]
