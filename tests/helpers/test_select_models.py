"""Models of the papers' methods: their selections, and their counts compared with counts by hand."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers.select_models import MODELS, _Buffers, _HeapQueues, _InsertionQueues, _MergeQueues, run_model
from tonari.select import Counters

OPTIONS = {"buffer": "none", "buffer_size": 16, "group": None, "levels": None, "m": 8, "aligned": True}


@pytest.mark.parametrize("method", MODELS)
def test_models_select(method: str) -> None:
    """For all options, the model's answer equals that of a stable sort."""
    rng = np.random.default_rng(0)
    choices = {
        "buffer": ["none", "own", "full", "sorted"] if method != "hierarchical" else ["none"],
        "buffer_size": [1, 3] if method != "hierarchical" else [1],
        "group": [None, 2, 5] if method != "hierarchical" else [2, 5],
        "levels": [None, 1],
        "m": [1, 2, 8] if method == "merge_queue" else [8],
        "aligned": [True, False] if method == "merge_queue" else [True],
    }
    for (n, k), *chosen in itertools.product([(1, 1), (7, 7), (60, 5), (60, 16)], *choices.values()):
        values = rng.integers(0, 20, (5, n)).astype(np.float32)
        lengths = rng.integers(0, n + 1, 5)
        indices = np.full((5, k), -1, np.int32)
        options = SimpleNamespace(**dict(zip(choices, chosen, strict=True)))
        run_model(method, values, lengths, options, 4, indices, Counters())
        for row, length in enumerate(lengths):
            best = np.argsort(values[row, :length], kind="stable")[:k]
            assert indices[row].tolist() == [*best, *[-1] * (k - len(best))], (options, n, k)


def _count(method: str, rows: list[list[float]], k: int, lanes: int = 16, **options: Any) -> Counters:
    counters = Counters()
    values = np.array(rows, np.float32)
    indices = np.full((len(rows), k), -1, np.int32)
    lengths = np.full(len(rows), values.shape[1])
    run_model(method, values, lengths, SimpleNamespace(**(OPTIONS | options)), lanes, indices, counters)
    return counters


def _queues(kind: Any, entries: list[int], counters: Counters, *more: Any) -> Any:
    """Make the queues of a single lane, with `entries` in its queue."""
    counters.updates, counters.merges = np.zeros(len(entries), np.int64), 0
    queues = kind(len(entries), 1, counters, *more)
    queues.entries = [[(value, 100 + at) for at, value in enumerate(entries)]]
    return queues


def _values(queues: Any) -> list[int]:
    return [value for value, _ in queues.entries[0]]


def test_insertion_as_in_figure_1() -> None:
    """tang2015 III-B: 3 is inserted into 7 6 5 4 2 1 0, and larger values move towards the head."""
    counters = Counters()
    queues = _queues(_InsertionQueues, [7, 6, 5, 4, 2, 1, 0], counters)
    queues.offer({0: (3, 0)}, [0])
    assert _values(queues) == [6, 5, 4, 3, 2, 1, 0]
    assert counters.updates.tolist() == [1, 1, 1, 1, 0, 0, 0]
    queues.offer({0: (6, 200)}, [0])  # not smaller than (6, 101)
    assert counters.updates.sum() == 4


def test_heap_goes_down_the_larger_child() -> None:
    counters = Counters()
    queues = _queues(_HeapQueues, [9, 5, 8, 1, 4, 7, 2], counters)
    queues.offer({0: (3, 0)}, [0])
    assert _values(queues) == [8, 5, 7, 1, 4, 3, 2]
    assert counters.updates.tolist() == [1, 0, 1, 0, 0, 1, 0]


def test_merge_queue_as_the_text_has_it() -> None:
    """tang2015 III-C: after 3 nothing is merged; after 4 the two levels become (5, 4) and (4, 3)."""
    counters = Counters()
    queues = _queues(_MergeQueues, [7, 6, 5, 4], counters, 2, True)
    queues.offer({0: (3, 0)}, [0])
    assert _values(queues) == [6, 3, 5, 4]
    assert (counters.merges, counters.updates.tolist()) == (0, [1, 1, 0, 0])
    queues.offer({0: (4, 1)}, [0])
    assert _values(queues) == [5, 4, 4, 3]
    # 4 replaces 6: 4 3 5 4. The other 4 has the larger index: 4 5 3 4; then 5 4 4 3.
    assert (counters.merges, counters.updates.tolist()) == (1, [4, 3, 2, 2])


def test_merges_of_aligned_lanes_count_every_lane() -> None:
    falling, rising = [6.0, 5, 4, 3, 2, 1], [1.0, 2, 3, 4, 5, 6]
    alone = _count("merge_queue", [falling], 2, m=1)
    assert alone.merges == 6  # each entry is smaller than the second level's head
    assert _count("merge_queue", [falling, rising], 2, m=1).merges == 2 * 6
    assert _count("merge_queue", [falling, rising], 2, m=1, lanes=1).merges == 6 + 1
    assert _count("merge_queue", [falling, rising], 2, m=1, aligned=False).merges == 6 + 1
    # A lane that empties its own buffer merges alone.
    assert _count("merge_queue", [falling, rising], 2, m=1, buffer="own", buffer_size=1).merges == 6 + 1


def test_buffers_by_hand() -> None:
    falling = [6.0, 5, 4, 3, 2, 1]
    counters = _count("insertion", [falling], 1)
    assert (counters.updates.tolist(), counters.flushes, counters.examined) == ([6], 0, 6)
    counters = _count("insertion", [falling], 1, buffer="full", buffer_size=4)
    # 6 5 4 3 wait for each other and are inserted one after the other; then 2 1, at the end.
    assert (counters.updates.tolist(), counters.flushes) == ([6], 2)
    counters = _count("insertion", [falling], 1, buffer="sorted", buffer_size=4)
    assert (counters.updates.tolist(), counters.flushes) == ([2], 2)  # 3 excludes 4 5 6, and 1 excludes 2
    flat = [9.0, 9, 9, 9, 9, 9]
    assert _count("insertion", [falling, flat], 1, buffer="full", buffer_size=4).flushes == 2  # of both lanes
    assert _count("insertion", [falling, flat], 1, buffer="own", buffer_size=4).flushes == 3  # each lane by itself
    assert (
        _count("insertion", [falling, flat], 1, buffer="own", buffer_size=3).flushes == 3
    )  # no entry remains at the end
    assert _count("insertion", [falling, flat], 1, buffer="full", buffer_size=4, lanes=1).flushes == 3


def test_buffer_compares_again_when_it_is_emptied() -> None:
    counters = Counters(examined=0, flushes=0)
    queues = _queues(_InsertionQueues, [5], counters)
    buffers = _Buffers(queues, SimpleNamespace(buffer="full", buffer_size=3), counters)
    for at, value in enumerate([1, 4, 3]):  # all are smaller than 5, but 4 and 3 are not smaller than 1
        buffers.look({0: (value, at)})
    assert (_values(queues), counters.updates.tolist(), counters.flushes, counters.examined) == ([1], [1], 1, 3)


def test_partition_as_in_figure_4() -> None:
    """N = 16, k = 2, G = 2: lists of 16, 8, 4, 2; four entries of every list below the top are examined."""
    row = [5.0, 9, 1, 8, 7, 3, 2, 6, 12, 11, 10, 15, 14, 13, 16, 4]
    assert _count("insertion", [row], 2, group=2).examined == 2 + 4 + 4 + 4
    assert _count("hierarchical", [row], 2, group=2).examined == 2 + 4 + 4 + 4
    assert _count("heap", [row], 2, group=2, levels=1).examined == 8 + 4
    assert _count("heap", [row], 2, group=16).examined == 1 + 16
    assert _count("heap", [row], 2, group=5).examined == 1 + 4 + 10  # lists of 16, 4, 1
    # A merge queue of four places keeps four groups.
    assert _count("merge_queue", [row], 2, m=4, group=2).examined == 2 + 4 + 8 + 8
    assert _count("heap", [row[:2]], 2, group=2).examined == 2  # no more than k, so there is no list above
