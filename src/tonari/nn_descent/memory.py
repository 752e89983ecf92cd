"""Compute the memory that NN-Descent needs, in bytes; plans compare it with the budget."""

from __future__ import annotations

from typing import Any

from tonari.core.units import MIB
from tonari.exact.cuda.divisions import least_bytes
from tonari.exact.cuda.rows.groups import GROUP_SIZES
from tonari.exact.memory import packed_row_bytes
from tonari.metrics import get_metric
from tonari.metrics.names import is_own
from tonari.metrics.problem import make_problem
from tonari.nn_descent import tuning
from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.updates import GNND, SEGMENT

_SMALL_CHANGE, _SMALL_CHANGE_ON_CUDA = 8 * MIB, 64 * MIB
_TASK_ROW_BYTES = 24  # bytes of temporary memory of a CPU task, per id that a row is compared with
# bytes of memory to sort a number: the number and its position, each before and after sorting, and scratch
_SORT_BYTES = 40


def packed_bytes(plan: DescentPlan) -> int:
    """Return the size in bytes of the packed points, which the start and the search for true neighbours share."""
    if plan.devices:
        value = 2 if get_metric(plan.metric).form == "gemm" else 4
        return plan.n * (-(-plan.d // 32) * 32 * value + 8)
    if plan.dtype in ("uint8", "int8"):
        return plan.n * packed_row_bytes(plan.d, "int8", plan.isa)
    precision = "bfloat16" if plan.isa == "amx" and get_metric(plan.metric).form == "gemm" else "float32"
    return plan.n * packed_row_bytes(plan.d, precision, plan.isa)


def working_bytes(plan: DescentPlan) -> int:
    """Return the peak size in bytes of temporary data, including the candidates of the rows in process.

    The peak is in a round, which needs the lists before and after it and reverse lists, or in a start by clusters.
    """
    if not plan.devices:
        return _on_cpu(plan)
    start = 0 if plan.start == "random" else _start_on_cuda(plan)
    # The packed points are freed before the rounds of "pull" begin; the rounds of "gnnd" still use them.
    if plan.update == GNND:
        rounds = max(_gnnd_rounds(plan), list_bytes(plan) + _forming(plan))
    else:
        rounds = _pull_rounds(plan) - packed_bytes(plan)
    descent, truth = _SMALL_CHANGE_ON_CUDA + max(rounds, start), list_bytes(plan) + _least_truth(plan)
    return max(descent, truth - packed_bytes(plan)) + _sample(plan)


def cluster_bytes(clusters: int) -> int:
    """Return the bytes of a cluster index on CUDA, whose dtype must also hold the number of clusters."""
    return 2 if clusters < 1 << 15 else 4


def candidate_slots(plan: DescentPlan) -> int:
    """Return a power of two: room for all candidates of a point in a round, duplicates included."""
    return 1 << (plan.reverse + (plan.n_hubs + plan.reverse) * plan.neighbors_per_hub - 1).bit_length()


def truth_bytes(plan: DescentPlan) -> int:
    """Return the bytes that the plan reserves for finding the true neighbours of the sampled rows."""
    return packed_bytes(plan) + min(working_bytes(plan), max(tuning.LEAST_TRUTH_BYTES, 3 * plan.output_bytes))


def _on_cpu(plan: DescentPlan) -> int:
    lists = 2 * plan.n * plan.list_size * 4
    reverse = plan.n * (plan.reverse + 1) * 4
    ranked = 4 * plan.n_clusters * min(plan.n_clusters, tuning.MOST_RANKED if plan.widens else plan.n_probe)
    start = max(plan.n * 116 + ranked, plan.n_clusters * (2 * plan.train_per_cluster + 3) * plan.d * 4)
    tasks = min(plan.n, plan.block * max(1, plan.threads)) * _met(plan) * _TASK_ROW_BYTES
    fixed, rounds = _SMALL_CHANGE + tasks + _sample(plan), lists + reverse + short_bytes(plan)
    if plan.start == "random":
        return fixed + rounds
    # The packed points are freed before the first round allocates the graph, which can then use their memory.
    return fixed + max(0, start + lists // 2 - plan.output_bytes, rounds - packed_bytes(plan))


def short_bytes(plan: DescentPlan) -> int:
    """Return the maximum size in bytes of the contracted rows that rounds on the CPU read; 0 if they read none."""
    record = get_metric(plan.metric)
    if not plan.widens or not (record.angular or record.squares):
        return 0
    most = min(plan.d // tuning.SHORT_SHARE, tuning.SHORT_COLUMNS[-1])
    return min(plan.n * most * 4, packed_bytes(plan) // 2)


def list_bytes(plan: DescentPlan) -> int:
    """Return the size in bytes of the lists that are on the device during the search for a sample's true neighbours."""
    return plan.n * plan.list_size * 8  # two lists of entries, or entries and distances


def _least_truth(plan: DescentPlan) -> int:
    """Return the minimum memory, in bytes, of a search on CUDA for the true neighbours of a sample."""
    if is_own(plan.metric):
        return 0  # a search with a user's metric works with blocks of any size
    n = plan.n
    problem = make_problem(
        n,
        plan.sample,
        plan.d,
        min(plan.k + 1, n),
        dtype=plan.dtype,
        metric=plan.metric,
        devices=plan.devices[:1],
        host_points=False,
        host_queries=False,
    )
    slabs: dict[str, Any] = {"route": "streamed", "point_slab": min(n, tuning.LEAST_SLAB), "query_slab": plan.sample}
    ways: tuple[dict[str, Any], ...] = ({"route": "resident"}, slabs)
    return min(least_bytes(problem, group=GROUP_SIZES[-1], **way) for way in ways)


def _pull_rounds(plan: DescentPlan) -> int:
    """Return the memory in bytes of a round of "pull" on CUDA.

    It contains lists and reverse lists; the order, counts and sums of all rows; and, for a block of rows, either all
    candidates with duplicates or, later, the distinct candidates with their values.
    """
    n, rows = plan.n, min(plan.n, plan.block)
    met = plan.list_size + plan.width
    of_a_row = 4 * met + max(4 * candidate_slots(plan), 16 * met + 16 * (plan.d + 16))
    return list_bytes(plan) + n * (4 * plan.reverse + 8 + 8 + 12) + max(_sorting(plan), rows * of_a_row)


def _gnnd_rounds(plan: DescentPlan) -> int:
    """Return the memory in bytes of a round of "gnnd".

    It contains lists, their previous entries, and locks; each row's own samples of both kinds, its reverse samples of
    one kind, and both joined; and, for a block of rows, either the proposals or, later, the entries with their exact
    values. A row has 3 * 2 * samples proposals of 12 bytes each.
    """
    n, rows, p, size = plan.n, min(plan.n, plan.block), plan.samples, plan.list_size
    lists = list_bytes(plan) + n * (4 * size + 4 * -(-size // SEGMENT) + 12)
    of_a_row = max(3 * 2 * p * 12, (_SORT_BYTES + 36) * size + 16 * (plan.d + 16))
    return lists + max(n * (4 * 2 * p + 3 * 4 * 2 * p + 4), n * 2 * 4 * 2 * p + rows * of_a_row)


def scanned_rows(plan: DescentPlan) -> int:
    """Return the number of points that a start on CUDA compares at once: more if each has fewer near clusters."""
    return plan.block * max(1, tuning.USUAL_PROBES // plan.n_probe)


def _start_on_cuda(plan: DescentPlan) -> int:
    """Return the peak bytes of a start on CUDA, the largest of its steps: form, clusters, and scores of blocks."""
    n, rows = plan.n, min(plan.n, scanned_rows(plan))
    entries = n * plan.list_size * 4
    wide = -(-plan.d // 32) * 32
    near = n * (12 + plan.n_probe * cluster_bytes(plan.n_clusters))
    trained = plan.n_clusters * (plan.train_per_cluster * (_SORT_BYTES + 6 * tuning.MEANS_COLUMNS) + 8 * wide)
    pairs = rows * plan.n_probe * (2 * 8 * max(tuning.SCORES_OF_A_PAIR, plan.list_size // plan.n_probe) + _SORT_BYTES)
    return max(_forming(plan), n * _SORT_BYTES + trained, near + _sorting(plan), near + entries + pairs)


def _sorting(plan: DescentPlan) -> int:
    """Return the peak memory of sorting some columns of all lists on CUDA, in bytes."""
    return _SORT_BYTES * plan.n * max(1, columns_sorted(plan.n, plan.n_hubs))


def columns_sorted(n: int, hubs: int) -> int:
    """Return the number of list columns whose entries are sorted in one step on CUDA."""
    room = min(max(tuning.LEAST_SORTED_ON_CUDA, 2 * n), tuning.MOST_SORTED_ON_CUDA)
    return max(1, min(hubs, room // n))


def _forming(plan: DescentPlan) -> int:
    """Return the size in bytes of the minima, maxima and sums of columns, which determine the form of the points."""
    return 3 * 8 * ranges_of(plan.n) * plan.d


def ranges_of(n: int) -> int:
    """Return the number of chunks of rows on CUDA; minima, maxima and sums of columns are computed for each chunk."""
    return min(tuning.RANGES, -(-n // tuning.RANGE_ROWS))


def _met(plan: DescentPlan) -> int:
    """Return the maximum number of ids, duplicates included, with which a row is compared in a round."""
    return plan.list_size + plan.reverse + (plan.n_hubs + plan.reverse) * plan.neighbors_per_hub


def _sample(plan: DescentPlan) -> int:
    """Return the size in bytes of the sampled rows and their true neighbours."""
    return 2 * plan.sample * (plan.k * 12 + plan.d * 8)
