"""The updates "pull" and "gnnd", two ways to improve lists in a round, and the parameters that only one of them uses.

pull    every row reads the lists of its neighbours and writes its own (the default, and the only one on the CPU)
gnnd    every row compares its neighbours with each other and inserts into their lists (wang2021, section 4; CUDA)
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping
from typing import Any

from tonari.core.errors import Unsupported
from tonari.core.problem import Problem
from tonari.metrics import METRICS, get_metric

PULL, GNND = "pull", "gnnd"
UPDATES = (PULL, GNND)

LIST_SIZE, SAMPLES = 64, 32  # defaults of "gnnd": the list size k and the samples p of wang2021
SEGMENT = 32  # number of list entries that one lock protects: one for each lane of a warp
MOST_LISTED = 128  # maximum list size of "gnnd", since its kernels compare all pairs of a list's entries
# minimum number of samples: a tile of the matrix units has at least 16 rows, and holds twice as many as samples
LEAST_SAMPLES = 8
MOST_SAMPLES = 32  # maximum number of samples: two matrix products of 2 * 32 rows fill the registers of a program

# For each update, the parameters that it does not use. With a random start, "gnnd" also uses no parameters of clusters.
_UNUSED = {
    PULL: ("samples",),
    GNND: ("n_hubs", "reverse", "neighbors_per_hub", "width", "light_rounds"),
}
_OF_CLUSTERS = ("n_clusters", "n_probe", "train_per_cluster", "kmeans_iters")


def check_name(update: Any) -> None:
    """Raise ValueError unless `update` is None or the name of an update."""
    if update is not None and (not isinstance(update, str) or update not in UPDATES):
        raise ValueError(f"update={reprlib.repr(update)}: expected one of {', '.join(map(repr, UPDATES))}")


def refuse_on_cpu(update: Any) -> None:
    """Raise ValueError if the caller names an update for rounds on the CPU, which have only one."""
    if update is not None:
        raise ValueError(
            f"update={update!r} with device='cpu': expected none, since rounds on the CPU always pull; leave update "
            "out, or use device='cuda'"
        )


def check_update(update: Any, problem: Problem) -> str:
    """Return the update for a problem, "pull" by default.

    Raises
    ------
    Unsupported
        "gnnd" does not support the metric.
    ValueError
        No update has this name, or the CPU does not have it.
    """
    check_name(update)
    if update is None:
        return PULL
    if not problem.devices:
        refuse_on_cpu(update)
    if update == GNND and get_metric(problem.metric).form != "gemm":
        known = ", ".join(repr(metric.name) for metric in METRICS.values() if metric.form == "gemm")
        raise Unsupported(
            f"metric={problem.metric!r} with update='gnnd', which compares samples by matrix products: expected "
            f"{known}; use update='pull', which supports every metric"
        )
    return str(update)


def refuse_unused(update: str, start: str, given: Mapping[str, Any]) -> None:
    """Raise ValueError if the caller set a parameter that the update does not use."""
    for name in _UNUSED[update]:
        if name in given:
            other = PULL if update == GNND else GNND
            raise ValueError(
                f"{name}={given[name]!r}: update={update!r} does not use it; leave {name} out, or set update={other!r}"
            )
    if update == GNND and start == "random":
        for name in _OF_CLUSTERS:
            if name in given:
                raise ValueError(
                    f"{name}={given[name]!r}: start='random' makes no clusters; leave {name} out, or set "
                    "start='clusters'"
                )


def gnnd_list_size(k: int, given: int | None) -> int:
    """Return the list size of "gnnd": a power of two, since kernels keep whole lists in registers.

    Raises
    ------
    ValueError
        The size is not a power of two, or cannot hold k neighbours.

    Examples
    --------
    >>> [gnnd_list_size(k, None) for k in (10, 32, 64, 128)]
    [64, 64, 128, 128]
    """
    if k > MOST_LISTED:
        raise ValueError(f"k={k}: lists of update='gnnd' hold at most {MOST_LISTED} neighbours; use update='pull'")
    wanted = k + max(16, k // 2)
    size = min(MOST_LISTED, max(LIST_SIZE, 1 << (wanted - 1).bit_length())) if given is None else int(given)
    if not max(k, LEAST_SAMPLES) <= size <= MOST_LISTED or size & (size - 1):
        raise ValueError(
            f"list_size={size}: update='gnnd' needs a power of two of at least k={k} and {LEAST_SAMPLES}, and at most "
            f"{MOST_LISTED}"
        )
    return size


def gnnd_samples(size: int, given: int | None) -> int:
    """Return the number of NEW and of OLD neighbours that a round of "gnnd" samples per row: a power of two.

    Raises
    ------
    ValueError
        The number is not a power of two, or too large for tiles or lists.
    """
    samples = min(SAMPLES, size) if given is None else int(given)
    if not LEAST_SAMPLES <= samples <= min(MOST_SAMPLES, size) or samples & (samples - 1):
        raise ValueError(
            f"samples={samples}: update='gnnd' needs a power of two from {LEAST_SAMPLES} to "
            f"{min(MOST_SAMPLES, size)}, as many as tiles and lists of {size} have room for"
        )
    return samples
