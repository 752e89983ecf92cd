"""Verify and time one selection, or note the reason why it was not timed.

Only the notes ``WRONG`` and ``FAILED`` are faults, which change the exit status. A method may also refuse a case
(``refused``), need too much memory (``out of memory``) or take longer than a call may take (``over the cap``), and a
run may end before the case (``not reached``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ...harness.device import Timing, take_turns, timing_of
from ...harness.proof.selection import PROOF, Proof
from ...harness.rows import Row
from ...harness.run import Run, note_of, out_of_memory, say, seconds_of

LIBRARIES = ("tonari", "numpy", "torch", "triton")
# A call that takes more seconds than this is timed only once.
LONG = 0.5
# A call that takes more seconds than this is not timed.
CAPS = {"cuda": 2.0, "cpu": 20.0}
# Number of rows that NumPy, which uses one thread, gets in the cases of papers; its time is scaled to all rows.
NUMPY_ROWS = 16


def numpy_select(values: Any, k: int) -> tuple[Any, Any]:
    """Select the k smallest of each row as NumPy users do: argpartition, then a sort of the k values."""
    indices = np.argpartition(values, k - 1, axis=1)[:, :k]
    found = np.take_along_axis(values, indices, axis=1)
    order = np.argsort(found, axis=1)
    return np.take_along_axis(found, order, axis=1), np.take_along_axis(indices, order, axis=1)


def numpy_values(values: Any, k: int) -> tuple[Any]:
    """Select the k smallest values of each row without their columns, which is faster in NumPy."""
    return (np.sort(np.partition(values, k - 1, axis=1)[:, :k], axis=1),)


def torch_select(tensor: Any, k: int) -> tuple[Any, Any]:
    """Return the k smallest of each row by torch.topk."""
    import torch

    found = torch.topk(tensor, k, dim=1, largest=False, sorted=True)
    return found.values, found.indices


PEERS: dict[str, Callable[[Any, int], tuple[Any, ...]]] = {
    "torch.topk": torch_select,
    "numpy": numpy_select,
    "numpy-values": numpy_values,
}


def over(run: Run) -> bool:
    """Return whether the run's time is up."""
    return not run.reaches(0.0)


def size(run: Run, rows: int, n: int) -> tuple[int, int]:
    """Return (rows, n), reduced by the scale of this run."""
    return max(1, round(rows * run.scale)), max(1, round(n * run.scale))


def call_of(run: Run, tensor: Any, k: int, method: str, options: dict[str, Any], nan: str) -> Callable[[], Any]:
    """Return the call of one selection, by tonari or by a peer."""
    if method in PEERS:
        values = tensor if method == "torch.topk" else run.device.values(tensor)
        return lambda: PEERS[method](values, k)
    select_k, values = run.tonari.select_k, run.device.values(tensor)
    threads = {} if run.threads is None else {"threads": run.threads}
    return lambda: select_k(values, k, method=method, nan=nan, **threads, **options)


def speed(run: Run, timing: Timing, nbytes: int) -> Row:
    """Return columns with the seconds of a selection and its bytes of input per second."""
    return seconds_of(timing) | {
        "extras": {
            "gbps": nbytes / timing.median / 1e9,
            "read_gbps": run.device.read_rate() / 1e9,
            "copy_gbps": run.device.copy_rate() / 1e9,
        }
    }


def columns(proof: Proof, method: str, options: dict[str, Any], *, data: str = "random", nan: str = "last") -> Row:
    """Return the columns of results that describe the measured selection."""
    m, n = proof.tensor.shape
    ours = {"who": "tonari", "parameters": {"method": method, "nan": nan, **options}}
    return {
        "m": m,
        "n": n,
        "k": proof.k,
        "dtype": str(proof.tensor.dtype).removeprefix("torch."),
        "data": data,
    } | ({"who": method} if method in PEERS else ours)


def tried(run: Run, what: str, work: Callable[[], Any]) -> Any:
    """Return the result of ``work``, or a row with a note about its error, so that a run continues after an error."""
    if over(run):
        return {"note": "not reached"}
    try:
        return work()
    except ValueError as error:
        return {"note": f"refused: {error}"}
    except Exception as error:
        note = note_of(error)
        if not out_of_memory(error):
            run.wrong += 1
            say(f"{what}: {note}")
        return {"note": note}


def measure(
    run: Run,
    proof: Proof,
    method: str,
    options: dict[str, Any],
    *,
    nan: str = "last",
    seconds: float = 0.2,
    least: int = 3,
    most: int = 10,
) -> Row:
    """Verify and time one selection; return columns about its speed and its proof, or a note."""
    tensor, k = proof.tensor, proof.k
    if method == "numpy":
        return numpy_scaled(run, tensor, k)

    def prove_and_time() -> Row:
        expected, cap = estimate(run, tensor, k, method, options, nan), CAPS[run.device.kind]
        if expected > cap:
            return {"note": f"over the cap: {expected:.3g} s at least"}
        call = call_of(run, tensor, k, method, options, nan)
        found = call()
        if method in PEERS:
            proof.check_values(found[0])
            proved = len(proof.rows)
        else:
            proved = proof.check(found)
        del found
        rounds = least if expected <= LONG else 1
        timing = take_turns(run.device, {method: call}, seconds=seconds, least=rounds, most=most)[method]
        return speed(run, timing, tensor.nbytes) | {"proof": PROOF, "proved": proved}

    found: Row = tried(run, f"{method} {options or ''} at {tuple(tensor.shape)}, k = {k}", prove_and_time)
    return found


def estimate(run: Run, tensor: Any, k: int, method: str, options: dict[str, Any], nan: str) -> float:
    """Return a lower bound of a call's seconds, from a call on the first rows; 0 if the call has no other rows."""
    part = run.device.slice_rows
    if len(tensor) <= part:
        return 0.0
    small = call_of(run, tensor[:part], k, method, options, nan)
    small()  # compiles the kernels before the timed call
    return run.device.whole(run.device.once(small), part, len(tensor))


def numpy_scaled(run: Run, tensor: Any, k: int) -> Row:
    """Time NumPy on the host, on one thread and a few rows; return its seconds scaled to all rows."""
    rows = min(len(tensor), NUMPY_ROWS)
    values = tensor[:rows].cpu().numpy()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        numpy_select(values, k)
        times.append((time.perf_counter() - start) * len(tensor) / rows)
    fields = speed(run, timing_of(times), tensor.nbytes)
    return fields | ({"rows_timed": rows, "note": "one core, scaled"} if rows < len(tensor) else {})
