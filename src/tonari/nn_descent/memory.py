"""What NN-Descent holds, in bytes: a budget counts on it."""

from __future__ import annotations

from tonari.core.units import MIB
from tonari.exact.memory import packed_row_bytes
from tonari.metrics import get_metric
from tonari.nn_descent.plan import DescentPlan

SCORES_OF_A_PAIR = 16  # members that stay of a pair of point and cluster on CUDA, at least
SORTED_ON_CUDA = 1 << 22  # numbers that are put in order at once there, or one for each point
MEANS_COLUMNS = 64  # of a cluster's sample that its mean is taken of at once

_SMALL_CHANGE, _SMALL_CHANGE_ON_CUDA = 8 * MIB, 64 * MIB
_TASK_ROW_BYTES = 24  # of work, for each id that a row meets
_LEAST_TRUTH = 256 * MIB  # with less the search would crawl
_SORT_BYTES = 40  # a number and its place, before and after, and what sorting takes
_FORMING_BYTES = 3 * 64 * MIB  # values in float64 while they become a form, some rows at a time


def packed_bytes(plan: DescentPlan) -> int:
    """The copy of the points for products, for the start or for the sample's true neighbours, which need it in turn."""
    if plan.devices:
        value = 2 if get_metric(plan.metric).form == "gemm" else 4
        return plan.n * (-(-plan.d // 32) * 32 * value + 8)
    if plan.dtype in ("uint8", "int8"):
        return plan.n * packed_row_bytes(plan.d, "int8")
    precision = "bfloat16" if plan.isa == "amx" and get_metric(plan.metric).form == "gemm" else "float32"
    return plan.n * packed_row_bytes(plan.d, precision)


def working_bytes(plan: DescentPlan) -> int:
    """Lists before and after a round, who has whom as a hub, or before them clusters; and what rows in work meet."""
    return _on_cuda(plan) if plan.devices else _on_cpu(plan)


def cluster_bytes(clusters: int) -> int:
    """Of the number of one of so many clusters, or of how many there are: each point has as many as it has probes."""
    return 2 if clusters < 1 << 15 else 4


def candidate_slots(plan: DescentPlan) -> int:
    """Candidates of a point in a round before equal ones are one, as a power of two."""
    return 1 << (plan.reverse + (plan.n_hubs + plan.reverse) * plan.neighbors_per_hub - 1).bit_length()


def truth_bytes(plan: DescentPlan) -> int:
    """What the search for the sample's true neighbours may take, of what the plan holds: about as much as lists do."""
    return packed_bytes(plan) + min(working_bytes(plan), max(_LEAST_TRUTH, 3 * plan.output_bytes))


def _on_cpu(plan: DescentPlan) -> int:
    lists = 2 * plan.n * plan.list_size * 4
    reverse = plan.n * (plan.reverse + 1) * 4
    start = max(plan.n * 116, plan.n_clusters * (2 * plan.train_per_cluster + 3) * plan.d * 4)
    begun = 0 if plan.start == "random" else start + lists // 2
    tasks = min(plan.n, plan.block * max(1, plan.threads)) * _met(plan) * _TASK_ROW_BYTES
    return _SMALL_CHANGE + max(lists + reverse, begun) + tasks + _sample(plan)


def _on_cuda(plan: DescentPlan) -> int:
    """The start has the form of the points beside it; rounds do not."""
    n, rows = plan.n, min(plan.n, plan.block)
    entries = n * plan.list_size * 4
    wide = -(-plan.d // 32) * 32
    sorting = _SORT_BYTES * max(n, min(SORTED_ON_CUDA, n * plan.n_hubs))
    # In a round: lists, who lists a point, its place in the order, what of it changed; and some points' candidates,
    # before equal ones are one, or met ones with their values while the best are found.
    met = plan.list_size + plan.width
    of_a_row = 4 * met + max(4 * candidate_slots(plan), 16 * met + 16 * (plan.d + 16))
    rounds = 2 * entries + n * (4 * plan.reverse + 8 + 8 + 12) + max(sorting, rows * of_a_row) - packed_bytes(plan)
    # Before: the clusters of each point, and their centres; then some points' scores.
    near = n * (12 + plan.n_probe * cluster_bytes(plan.n_clusters))
    trained = plan.n_clusters * (plan.train_per_cluster * (_SORT_BYTES + 6 * MEANS_COLUMNS) + 8 * wide)
    pairs = rows * plan.n_probe * (2 * 8 * max(SCORES_OF_A_PAIR, plan.list_size // plan.n_probe) + _SORT_BYTES)
    start = max(_FORMING_BYTES, n * _SORT_BYTES + trained, near + sorting, near + entries + pairs)
    return _SMALL_CHANGE_ON_CUDA + max(rounds, 0 if plan.start == "random" else start) + _sample(plan)


def _met(plan: DescentPlan) -> int:
    """Ids that a row may come across in a round, one as often as it comes."""
    return plan.list_size + plan.reverse + (plan.n_hubs + plan.reverse) * plan.neighbors_per_hub


def _sample(plan: DescentPlan) -> int:
    """Rows whose true neighbours are known."""
    return 2 * plan.sample * (plan.k * 12 + plan.d * 8)
