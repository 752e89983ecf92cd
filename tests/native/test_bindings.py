"""The compiled module refuses arguments that would let a kernel read or write beyond its arrays.

Every binding is called correctly, and then with one wrong argument at a time: each call raises TypeError or ValueError,
and no array has changed. Objects keep the memory of the arrays that they read.
"""

from __future__ import annotations

import functools
import gc
import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

from tests.helpers import checks
from tonari.core import _native
from tonari.core.process.workers import Workers
from tonari.kdtree.cpu.build import build
from tonari.metrics.reference import brute

Array = npt.NDArray[Any]
Given = dict[str, Any]

ISA = _native.supported_isas()[-1]
KERNEL = "inner/float32/generic"
N, M, D, K = 40, 6, 4, 3
HEIGHT, LEAVES, CAPACITY = 2, 4, 16
LIST, REVERSE = 5, 2
NEW = 1 << 30


def rows_of(n: int, d: int = D, seed: int = 0) -> Array:
    return checks.gaussian(n, d, seed)


def form_of(metric: str = "euclidean", d: int = D) -> _native.Form:
    return _native.Form(metric, [0.0] * d, 1.0)


FORM, OTHER_FORM = form_of(), form_of()
POINTS, SAME = rows_of(N), rows_of(M)
FARTHEST = np.ones(M)
PACKED = _native.PackedPoints(KERNEL, FORM, POINTS, 0, N)
OUTSIDE = {
    "packed in another form": _native.PackedPoints(KERNEL, OTHER_FORM, POINTS, 0, N),
    "packed for l1/float32": _native.PackedPoints("l1/float32/generic", form_of("l1"), POINTS, 0, N),
    "errors=False": _native.PackedPoints(KERNEL, FORM, POINTS, 0, N, errors=False),
    f"={N + 1}: expected 0 to {N}": _native.PackedPoints(KERNEL, FORM, rows_of(N + 1), 0, N + 1),
}


def block_of(
    *, opened: bool = True, queries: Array | None = None, k: int = K, rank: int = 0, count: int = M
) -> _native.RowBlock:
    queries = rows_of(M, seed=1) if queries is None else queries
    block = _native.RowBlock(KERNEL, FORM, queries, POINTS, k, ISA, None, False, False, 64, rank)
    if opened:
        block.open(0, count)
        block.screen(PACKED, 0, PACKED.groups)
    return block


def radius_arguments() -> Given:
    return {
        "kernel": KERNEL,
        "form": FORM,
        "queries": rows_of(M),
        "points": rows_of(N),
        "isa": ISA,
        "limits": np.full(M, 1.5),
        "self_ids": np.arange(M),
        "later": False,
        "lists": True,
        "double_output": False,
        "room": 64,
    }


def radius_of(*, opened: bool = True, **changes: Any) -> _native.RadiusBlock:
    block = _native.RadiusBlock(**radius_arguments() | changes)
    if opened:
        block.open(0, M)
        block.screen(PACKED, 0, PACKED.groups)
        block.count(np.zeros(M, np.int64))
    return block


def radius_lists() -> Given:
    size = radius_of().found
    return {"distances": np.zeros(size, np.float32), "indices": np.zeros(size, np.int32)}


def tree_radius_arguments() -> Given:
    names = ("queries", "isa", "limits", "self_ids", "later", "lists", "double_output")
    arguments = radius_arguments()
    return {name: arguments[name] for name in names} | {
        "tree": tree_of(),
        "metric": "euclidean",
        "order": np.arange(M),
        "counts": np.zeros(M, np.int64),
    }


def allowed_arguments() -> Given:
    return {
        "m": M,
        "n": N,
        "mask": np.ones((M, N), np.uint8),
        "packed": False,
        "query_groups": np.arange(M),
        "point_groups": np.arange(N),
        "same": True,
        "excluded": np.array([3, N - 1, 0]),
        "begins": np.array([0, 1] + [3] * (M - 1)),
        "window": 2,
        "copies": True,
        "rows": np.arange(M)[::-1].copy(),
        "ids": np.arange(N)[::-1].copy(),
    }


def allowed_of(**changes: Any) -> _native.Allowed:
    return _native.Allowed(**allowed_arguments() | changes)


def direct_radius() -> Given:
    return {
        "metric": "euclidean",
        "isa": ISA,
        "queries": rows_of(M),
        "points": rows_of(N),
        "limits": np.full(M, 1.5, np.float32),
        "self_ids": np.arange(M),
        "allowed": None,
    }


def tree_lists(*, finished: bool = True) -> tuple[_native.TreeRadiusBlock, Given]:
    """Make a block of a tree, and the arrays that it writes."""
    arguments = tree_radius_arguments()
    block = _native.TreeRadiusBlock(_native.TreeRadius(**arguments), 0, M)
    if finished:
        block.run(1 << 40)
    indptr = np.concatenate([[0], arguments["counts"].cumsum()])
    size = indptr[-1]
    return block, {"indptr": indptr, "distances": np.zeros(size, np.float32), "indices": np.zeros(size, np.int32)}


def join_of(begin: int = 0, end: int = N) -> _native.SelfJoin:
    join = _native.SelfJoin(KERNEL, FORM, POINTS, K, ISA, np.arange(N), False, False, 64, 1 << 20)
    if begin < end:
        join.open(begin, end)
        join.prepare(begin, end, PACKED)
    return join


def searched_join() -> _native.SelfJoin:
    join = join_of()
    for begin in range(0, N, 8):
        worker = _native.JoinWorker(join)
        worker.open(begin, min(begin + 8, N))
        worker.screen(PACKED, 0, PACKED.groups, False)
    return join


def worker_of(join: _native.SelfJoin) -> _native.JoinWorker:
    worker = _native.JoinWorker(join)
    worker.open(0, PACKED.group)
    return worker


def stale_worker() -> _native.JoinWorker:
    join = join_of()
    worker = _native.JoinWorker(join)
    worker.open(20, N)
    join.open(0, 10)
    return worker


def top_steps(top: _native.TreeTop) -> list[Callable[[], Any]]:
    """Make all calls that precede place(), for one level in two ranges."""
    counted = [functools.partial(top.count, 0), functools.partial(top.count, 1), functools.partial(top.cut, 0)]
    return [*counted, top.descend, functools.partial(top.tally, 0), functools.partial(top.tally, 1)]


def top_of(steps: int) -> _native.TreeTop:
    """Make a top of one level in two ranges after some of its steps."""
    top = _native.tree_top(rows_of(N), 1, 2, np.empty(LEAVES - 1, np.int32), np.empty(LEAVES - 1, np.float32))
    for step in top_steps(top)[:steps]:
        step()
    return top


def tree_arrays() -> Given:
    tree = build(POINTS, height=HEIGHT, double=False, workers=Workers(1))
    names = ("rows", "begins", "ids", "split_dimensions", "split_values")
    return {"height": HEIGHT, "boxes": [box.copy() for box in tree.boxes]} | {
        name: getattr(tree, name).copy() for name in names
    }


def tree_of() -> _native.TreeView:
    return _native.TreeView(**tree_arrays())


def search_of() -> _native.TreeSearch:
    return _native.TreeSearch(**CASES["TreeSearch"].given())


def few_in_tree() -> Given:
    arguments = {"tree": tree_of(), "isa": ISA, "metric": "euclidean", "queries": rows_of(M)}
    return arguments | {"limits": np.full(M, 1.5)}


def forest_arguments() -> Given:
    near = brute(POINTS, POINTS, K, self_ids=np.arange(N))
    core = near.distances[:, 0].astype(np.float64)
    return {
        "tree": tree_of(),
        "isa": ISA,
        "metric": "euclidean",
        "core": core,
        "distances": near.distances,
        "indices": near.indices,
    }


def walked_forest() -> _native.Forest:
    forest = _native.Forest(**forest_arguments())
    forest.walk(0, 4, 1 << 40)
    forest.merge()
    return forest


def lists() -> Array:
    """Make entries of N lists in which every entry is new."""
    return ((np.arange(N)[:, None] + np.arange(1, LIST + 1)) % N | NEW).astype(np.int32)


def round_arguments() -> Given:
    behind = np.full((N, REVERSE), -1, np.int32)
    behind[:, 0] = np.arange(N)[::-1]
    return {
        "isa": ISA,
        "metric": "cosine",
        "points": rows_of(N),
        "terms": np.ones((N, 2), np.float32),
        "shorts": None,
        "scale": 1.0,
        "error": 0.0,
        "entries": lists(),
        "behind": behind,
        "hubs": 2,
        "breadth": 3,
        "width": 9,
        "boundary": -1,
        "order": np.arange(N, dtype=np.int32),
        "kept": np.zeros((N, LIST), np.int32),
        "distances": np.zeros((N, K), np.float32),
        "indices": np.zeros((N, K), np.int32),
        "sums": np.zeros(N),
    }


def pieces_arguments() -> Given:
    """Make N rows in four pieces of three clusters."""
    return {
        "order": np.arange(N, dtype=np.int32)[::-1].copy(),
        "begins": np.array([0, 10, 12, 30, N]),
        "clusters": np.array([0, 1, 1, 2]),
        "sides": np.zeros(4, np.int64),
        "firsts": np.array([0, 1, 3, 4]),
    }


def runs() -> list[_native.PackedPoints]:
    given = pieces_arguments()
    order, begins = given["order"], given["begins"]
    return [
        _native.PackedPoints(KERNEL, FORM, POINTS[order[a:b]], 0, b - a, errors=False)
        for a, b in itertools.pairwise(begins)
    ]


def search_arguments() -> Given:
    near = np.tile(np.arange(2, dtype=np.int32), (N, 1))
    near[-1, -1] = 2
    places = np.empty(N, np.int32)
    places[pieces_arguments()["order"]] = np.arange(N)
    return {
        "kernel": KERNEL,
        "form": FORM,
        "rows": rows_of(N),
        "seekers": _native.Pieces(**pieces_arguments()),
        "members": _native.Pieces(**pieces_arguments()),
        "packed": runs(),
        "near": near,
        "ranked": np.array([[0, 2], [1, 0], [2, 1]], np.int32),
        "places": places,
        "probes": 2,
        "most": 30,
        "boundary": -1,
        "mark": 0,
        "entries": np.zeros((N, LIST), np.int32),
    }


def found(rows: int, k: int = K) -> Given:
    return {
        "distances": np.zeros((rows, k), np.float32),
        "indices": np.zeros((rows, k), np.int32),
        "status": np.zeros(rows, np.uint8),
    }


def bit_rows(n: int, bytes_: int = 9, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (n, bytes_), dtype=np.uint8)


def bit_arguments() -> Given:
    words, counts = np.zeros((3, 3, 16), np.uint32), np.zeros((3, 16), np.int32)
    _native.pack_bits(bit_rows(N), words, counts)
    return {
        "isa": ISA,
        "metric": "hamming",
        "queries": bit_rows(M, seed=1),
        "words": words,
        "counts": counts,
        "rows": None,
        "n": N,
        "k": K,
        "limits": np.full(M, 30, np.float32),
        "self_ids": np.arange(M),
        "lists": True,
    }


def bits_of(*, scanned: bool = True, **changes: Any) -> _native.BitBlock:
    block = _native.BitBlock(**bit_arguments() | changes)
    if scanned:
        block.scan(0, 3)
    return block


def sparse_arguments(n: int = N, *, dtype: type = np.float32) -> Given:
    """Make rows with column 0 and one of the columns 1 and 2."""
    columns = np.stack([np.zeros(n, np.int32), 1 + np.arange(n, dtype=np.int32) % 2], axis=1).ravel()
    return {
        "indptr": 2 * np.arange(n + 1),
        "columns": columns,
        "values": np.random.default_rng(n).random(2 * n).astype(dtype),
        "d": 4,
    }


SPARSE_ROWS = _native.SparseRows(**sparse_arguments())
SPARSE_QUERIES = _native.SparseRows(**sparse_arguments(M))


def sparse_points() -> Given:
    return {"metric": "cosine", "rows": SPARSE_ROWS, "ranks": sparse_arguments()["columns"], "ranked": 3}


SPARSE_POINTS = _native.SparsePoints(**sparse_points())
SPARSE_ONES = _native.SparseRows(**sparse_arguments() | {"values": np.ones(2 * N, np.float32)})
SPARSE_SETS = _native.SparsePoints(**sparse_points() | {"metric": "jaccard", "rows": SPARSE_ONES})


def sparse_block() -> Given:
    return {
        "isa": ISA,
        "points": SPARSE_POINTS,
        "queries": SPARSE_QUERIES,
        "ranks": sparse_arguments(M)["columns"],
        "begin": 1,
        "end": M,
        "k": K,
        "limits": np.full(M - 1, 2.0),
        "own": False,
        "later": False,
        "counted": False,
        "allowed": None,
        "left": None,
    }


def sparse_of(*, scanned: bool = True, refined: bool = True, **changes: Any) -> _native.SparseBlock:
    block = _native.SparseBlock(**sparse_block() | changes)
    if scanned:
        block.scan(0, 1)
        if refined:
            block.refine(0, M - 1)
    return block


def bit_lists() -> Given:
    counts = np.zeros(M, np.int64)
    bits_of().count(counts)
    return {"distances": np.zeros(counts.sum(), np.float32), "indices": np.zeros(counts.sum(), np.int32)}


SAME_BITS = {name: bit_arguments()[name] for name in ("words", "counts")}


class Case(NamedTuple):
    """A binding, a valid call of it, the arrays among its arguments, and the calls that it has to refuse.

    `outputs`: arrays that it writes; `free`: arrays whose number of rows is not fixed by other arguments.
    """

    call: Callable[..., Any]
    given: Callable[[], Given]
    spoilt: list[tuple[Given, str]]
    outputs: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


def changed(array: Array, at: Any, value: Any) -> Array:
    copy = array.copy()
    copy[at] = value
    return copy


RANGES = [
    {"begin": -1},
    {"begin": 3, "end": 2},
    {"begin": 2**62, "end": 2**62},
]


def ranges(end: int, words: str = "expected .* <= begin <= end <= ") -> list[tuple[Given, str]]:
    return [(change, words) for change in [*RANGES, {"end": end + 1}, {"end": 2**63 - 1}]]


def numbers(**bad: list[int]) -> list[tuple[Given, str]]:
    return [({name: value}, f"{name}={value}: expected") for name, values in bad.items() for value in values]


def no_step(change: Given, words: str, steps: int) -> tuple[Given, str]:
    return {"top": lambda: top_of(steps)} | change, words


def on_rows(function: Callable[..., Any]) -> Case:
    return Case(function, lambda: {"rows": rows_of(N), "begin": 0, "end": N}, ranges(N), free=("rows",))


ENTRY = lists()
TREE = tree_arrays()
PIECES = pieces_arguments()
SEARCH = search_arguments()
PACKINGS = [({"points": run}, words) for words, run in OUTSIDE.items()]
SPEC = numbers(k=[0, -1, N + 1], capacity=[0, -1, 2**60])
REFUSED_FORM = {"form": form_of(d=D + 1)}, f"columns, expected {D + 1}"
REFUSED_KERNEL = {"kernel": "l1/float32/generic"}, "does not compare by the metric of the form"

CASES: dict[str, Case] = {
    "peak_rate": Case(
        _native.peak_rate,
        lambda: {"kernel": KERNEL, "seconds": 1e-4},
        [({"seconds": bad}, "seconds=.*expected a finite number above 0") for bad in (0, -1, np.nan, np.inf)],
    ),
    "first_nonfinite_row": on_rows(_native.first_nonfinite_row),
    "first_negative_row": on_rows(_native.first_negative_row),
    "column_means": Case(
        _native.column_means,
        lambda: {"rows": rows_of(N), "step": 3},
        numbers(step=[0, -1, N + 1, 2**63 - 1]),
        free=("rows",),
    ),
    "true_entries": Case(
        _native.true_entries,
        lambda: {"mask": np.ones(N, np.uint8), "places": np.zeros(N, np.int64)},
        [],
        free=("mask", "places"),
        outputs=("places",),
    ),
    "hash_rows": Case(
        _native.hash_rows,
        lambda: {"rows": rows_of(N), "step": 3, "hashes": np.zeros(-(-N // 3), np.uint64)},
        [
            *numbers(step=[0, -1, N + 1, 2**63 - 1]),
            ({"step": 2}, rf"hashes has shape \({-(-N // 3)},\), expected \({N // 2},\)"),
        ],
        free=("rows",),
        outputs=("hashes",),
    ),
    "mark_copies": Case(
        _native.mark_copies,
        lambda: {
            "rows": rows_of(N),
            "hashes": np.zeros(N, np.uint64),
            "order": np.arange(N),
            "begin": 3,
            "end": N,
            "copies": np.zeros(N, np.uint8),
        },
        [
            *ranges(N),
            ({"order": changed(np.arange(N), 2, N)}, f"order has {N} at place 0"),
            ({"order": changed(np.arange(N), 5, -1)}, "order has -1 at place 3"),
        ],
        outputs=("copies",),
    ),
    "largest_magnitude": Case(
        _native.largest_magnitude,
        lambda: {"rows": rows_of(N), "centre": [0.0] * D, "step": 3},
        [*numbers(step=[0, -1, N + 1, 2**63 - 1]), ({"centre": [0.0] * (D - 1)}, "rows has 4 columns, expected 3")],
        free=("rows",),
    ),
    "exact_values": Case(
        _native.exact_values,
        lambda: {
            "metric": "l1",
            "queries": rows_of(M),
            "points": rows_of(N),
            "indices": np.arange(N - M, N)[:, None] * np.ones(2, int),
            "values": np.zeros((M, 2)),
        },
        [
            (
                {"indices": changed(np.zeros((M, 2), int), (2, 1), N)},
                f"indices has {N} at place 5, expected 0 to {N - 1}",
            ),
            ({"indices": changed(np.zeros((M, 2), int), (2, 1), -1)}, "indices has -1 at place 5"),
            ({"indices": changed(np.zeros((M, 2), int), (5, 1), -(2**63))}, "at place 11"),
            ({"points": rows_of(N, D + 1)}, "points has 5 columns, expected 4"),
            ({"values": np.zeros((M, 3))}, r"values has shape \(6, 3\), expected \(6, 2\)"),
        ],
        outputs=("values",),
    ),
    "Form": Case(
        _native.Form,
        lambda: {"metric": "euclidean", "centre": [0.0] * D, "scale": 0.5},
        [
            ({"centre": []}, "length of the centre=0"),
            ({"centre": [0.0, np.nan]}, "the centre is not finite"),
            *(({"scale": bad}, "expected a power of two") for bad in (0.0, -1.0, 3.0, np.nan, np.inf)),
            ({"metric": "power:0.5"}, "scale=0.500000: expected one of which the power 0.500000 is a power of two"),
            ({"metric": "power:4", "scale": 2.0**-251}, r"from 2\^-1000 to 2\^1000"),
        ],
    ),
    "PackedPoints": Case(
        _native.PackedPoints,
        lambda: {"kernel": KERNEL, "form": FORM, "points": rows_of(N), "begin": 0, "end": N},
        [
            *ranges(N),
            REFUSED_FORM,
            REFUSED_KERNEL,
            ({"look": FORM}, "look: expected the form, contracted"),
            ({"look": form_of("cosine").contracted(POINTS, 1, 2)}, "look: expected the form, contracted"),
        ],
    ),
    "PackedPoints.write": Case(
        PACKED.write,
        lambda: {"bytes": np.zeros(PACKED.nbytes, np.uint8)},
        [({"bytes": np.zeros(PACKED.nbytes - 1, np.uint8)}, rf"bytes has shape \({PACKED.nbytes - 1},\), expected")],
        outputs=("bytes",),
    ),
    "restored_points": Case(
        _native.restored_points,
        lambda: {"kernel": KERNEL, "form": FORM, "begin": 0, "end": N, "bytes": np.zeros(PACKED.nbytes, np.uint8)},
        [
            ({"begin": -1}, r"points \[-1, "),
            ({"begin": N + 1}, rf"points \[{N + 1}, "),
            ({"form": form_of("l1")}, "form: the kernel does not compare by its metric"),
            ({"kernel": "inner/float32/none"}, "no kernel"),
            ({"end": N + 100}, "bytes has shape"),
        ],
    ),
    "Form.directions": Case(
        FORM.contracted(POINTS, 1, 3).directions,
        lambda: {"values": np.zeros((D, 2))},
        [({"values": np.zeros((D, 3))}, rf"values has shape \({D}, 3\), expected \({D}, 2\)")],
        outputs=("values",),
    ),
    "products": Case(
        _native.products,
        lambda: {
            "rows": rows_of(M).astype(np.float64),
            "others": rows_of(N).astype(np.float64),
            "found": np.zeros((M, N)),
        },
        [({"others": np.zeros((N, D + 1))}, rf"others has shape \({N}, {D + 1}\), expected \({N}, {D}\)")],
        outputs=("found",),
    ),
    "RowBlock": Case(
        _native.RowBlock,
        lambda: {
            "kernel": KERNEL,
            "form": FORM,
            "queries": rows_of(M),
            "points": rows_of(N),
            "k": K,
            "isa": ISA,
            "self_ids": np.arange(M),
            "double_output": False,
            "may_retry": False,
            "capacity": 64,
            "sample_rank": 0,
        },
        [
            *SPEC,
            *numbers(sample_rank=[-1]),
            REFUSED_FORM,
            REFUSED_KERNEL,
            ({"queries": rows_of(M, 3)}, "queries has 3"),
        ],
        free=("points",),
    ),
    "RowBlock.open": Case(
        lambda begin, end: block_of(opened=False).open(begin, end),
        lambda: {"begin": 0, "end": M},
        [*ranges(M), ({"begin": 2, "end": 2}, "no rows to open")],
    ),
    "RowBlock.screen": Case(
        lambda block, **given: block().screen(**given),
        lambda: {
            "block": block_of,
            "points": PACKED,
            "group_begin": 0,
            "group_end": PACKED.groups,
            "stride": 0,
            "take_stride": False,
        },
        [
            *PACKINGS,
            ({"block": lambda: block_of(opened=False)}, r"call open\(\) first"),
            ({"group_begin": -1}, "groups"),
            ({"group_begin": 2, "group_end": 1}, "groups"),
            ({"group_end": PACKED.groups + 1}, "groups"),
            ({"stride": -1}, "stride=-1"),
            ({"looks": True}, "looks: the search has none"),
        ],
    ),
    "RowBlock.screen_marked": Case(
        lambda block, **given: block().screen_marked(**given),
        lambda: {
            "block": block_of,
            "points": PACKED,
            "group_begin": 1,
            "group_end": PACKED.groups,
            "marks": np.ones(PACKED.groups - 1, np.uint8),
        },
        [
            *PACKINGS,
            ({"block": lambda: block_of(opened=False)}, r"call open\(\) first"),
            ({"group_begin": 0}, "marks has shape"),
            ({"group_end": PACKED.groups + 1}, "groups"),
            ({"block": lambda: block_of(queries=rows_of(9), count=9)}, "number of open queries"),
        ],
    ),
    "RowBlock.reach": Case(
        lambda block, row: block().reach(row),
        lambda: {"block": block_of, "row": M - 1},
        [({"row": M}, "row"), ({"block": lambda: block_of(opened=False)}, r"call open\(\) first")],
    ),
    "RowBlock.lower_thresholds": Case(
        lambda block: block().lower_thresholds(),
        lambda: {"block": block_of},
        [({"block": lambda: block_of(opened=False)}, r"call open\(\) first")],
    ),
    "RowBlock.take_thresholds": Case(
        lambda block, other: block().take_thresholds(other()),
        lambda: {"block": block_of, "other": block_of},
        [
            ({"other": lambda: block_of(opened=False)}, "blocks differ"),
            ({"block": lambda: block_of(opened=False)}, r"call open\(\) first"),
        ],
    ),
    "order_cells": Case(
        _native.order_cells,
        lambda: {"sketch": rows_of(N), "cell": 8, "order": np.zeros(N, np.int64)},
        [
            ({"cell": 0}, "cell=0"),
            ({"order": np.zeros(N - 1, np.int64)}, "order has shape"),
            ({"sketch": rows_of(N, 65)}, "columns of the sketch"),
        ],
        outputs=("order",),
    ),
    "write_boxes": Case(
        _native.write_boxes,
        lambda: {
            "sketch": rows_of(N),
            "order": np.arange(N),
            "cell": 8,
            "least": -4.0,
            "step": 0.1,
            "error": 1e-6,
            "boxes": np.zeros((2, D, N // 8 + 1), np.uint8),
            "first": 1,
        },
        [
            ({"cell": 0}, "cell=0"),
            ({"order": np.full(N, N)}, "order has"),
            ({"step": 0.0}, "least, step, error"),
            ({"boxes": np.zeros((2, D + 1, N), np.uint8)}, "boxes has shape"),
            ({"first": 2}, "boxes"),
        ],
        outputs=("boxes",),
    ),
    "box_squares": Case(
        _native.box_squares,
        lambda: {
            "boxes": np.zeros((2, D, 9), np.uint8),
            "query": np.zeros(D),
            "least": -4.0,
            "step": 0.1,
            "error": 1e-6,
            "isa": ISA,
            "begin": 1,
            "end": 9,
            "squares": np.zeros(9, np.int32),
        },
        [
            ({"boxes": np.zeros((3, D, 9), np.uint8)}, "boxes has shape"),
            ({"query": np.zeros(D + 1)}, "query has shape"),
            ({"query": np.full(D, np.nan)}, "the query is not finite"),
            ({"end": 10}, "boxes"),
            ({"squares": np.zeros(8, np.int32)}, "squares has shape"),
            ({"isa": "vax"}, "vax"),
        ],
        outputs=("squares",),
    ),
    "nearest_boxes": Case(
        _native.nearest_boxes,
        lambda: {"squares": np.arange(9, dtype=np.int32), "found": np.zeros(3, np.int64)},
        [({"found": np.zeros(10, np.int64)}, "number of boxes")],
        outputs=("found",),
        free=("squares", "found"),
    ),
    "RowBlock.end_sample": Case(
        lambda block: block().end_sample(),
        lambda: {"block": lambda: block_of(rank=1)},
        [({"block": block_of}, "sample_rank=0"), ({"block": lambda: block_of(opened=False)}, r"call open\(\) first")],
    ),
    "RowBlock.absorb": Case(
        lambda block, other: (lambda one: one.absorb(other(one)))(block()),
        lambda: {"block": lambda: block_of(queries=SAME), "other": lambda one: block_of(queries=SAME)},
        [
            ({"other": lambda one: one}, "a block cannot absorb itself"),
            ({"other": lambda one: block_of(opened=False, queries=SAME)}, "blocks differ"),
            ({"other": lambda one: block_of(queries=SAME.copy())}, "blocks differ"),
            ({"other": lambda one: block_of(queries=SAME, k=K + 1)}, "blocks differ"),
            ({"block": lambda: block_of(opened=False)}, r"call open\(\) first"),
        ],
    ),
    "RowBlock.finish": Case(
        lambda block, **given: block().finish(**given),
        lambda: {"block": block_of} | found(M),
        [
            ({"block": lambda: block_of(opened=False)}, r"call open\(\) first"),
            ({"distances": np.zeros((M, K + 1), np.float32)}, r"distances has shape \(6, 4\), expected \(6, 3\)"),
            ({"indices": np.zeros((M, K - 1), np.int32)}, r"indices has shape \(6, 2\)"),
            ({"distances": np.zeros((M, K))}, "distances are float64, expected float32"),
        ],
        outputs=("distances", "indices", "status"),
    ),
    "RadiusBlock": Case(
        _native.RadiusBlock,
        radius_arguments,
        [
            *numbers(room=[-1]),
            REFUSED_FORM,
            REFUSED_KERNEL,
            ({"queries": rows_of(M, 3)}, "queries has 3"),
            ({"limits": changed(np.ones(M), 3, np.nan)}, "limits: one is not a number"),
            ({"later": True, "self_ids": None}, "later: expected self_ids"),
            ({"later": True, "self_ids": changed(np.arange(M), 2, 0)}, "later: expected self_ids in ascending order"),
            ({"allowed": allowed_of()}, "self_ids: expected None with allowed"),
            ({"allowed": allowed_of(rows=np.arange(M - 1)), "self_ids": None}, "queries of allowed=5: expected 6"),
            ({"allowed": allowed_of(ids=np.arange(N - 1)), "self_ids": None}, "points of allowed=39: expected 40"),
        ],
        free=("points",),
    ),
    "RadiusBlock.open": Case(
        lambda begin, end: radius_of(opened=False).open(begin, end),
        lambda: {"begin": 0, "end": M},
        [*ranges(M), ({"begin": 2, "end": 2}, "no rows to open")],
    ),
    "RadiusBlock.screen": Case(
        lambda block, **given: block().screen(**given),
        lambda: {"block": radius_of, "points": PACKED, "group_begin": 0, "group_end": PACKED.groups},
        [
            *PACKINGS,
            ({"block": lambda: radius_of(opened=False)}, r"call open\(\) first"),
            ({"group_begin": -1}, "groups"),
            ({"group_begin": 2, "group_end": 1}, "groups"),
            ({"group_end": PACKED.groups + 1}, "groups"),
            ({"looks": True}, "looks: the search has none"),
        ],
    ),
    "RadiusBlock.absorb": Case(
        lambda block, other: (lambda one: one.absorb(other(one)))(block()),
        lambda: {
            "block": lambda: radius_of(queries=SAME, points=POINTS, limits=FARTHEST),
            "other": lambda one: radius_of(queries=SAME, points=POINTS, limits=FARTHEST),
        },
        [
            ({"other": lambda one: one}, "a block cannot absorb itself"),
            ({"other": lambda one: radius_of(queries=SAME, points=POINTS, limits=np.ones(M))}, "blocks differ"),
            ({"other": lambda one: radius_of(points=POINTS, limits=FARTHEST)}, "blocks differ"),
            ({"block": lambda: radius_of(opened=False)}, r"call open\(\) first"),
        ],
    ),
    "RadiusBlock.count": Case(
        lambda block, counts: block().count(counts),
        lambda: {"block": radius_of, "counts": np.zeros(M, np.int64)},
        [({"block": lambda: radius_of(opened=False)}, r"call open\(\) first")],
        outputs=("counts",),
    ),
    "RadiusBlock.write": Case(
        lambda block, **given: block().write(**given),
        lambda: {"block": radius_of} | radius_lists(),
        [
            ({"block": lambda: radius_of(opened=False)}, r"call open\(\) first"),
            ({"block": lambda: radius_of(lists=False)}, "the block only counts"),
            ({"distances": np.zeros(len(radius_lists()["indices"]))}, "distances are float64, expected float32"),
        ],
        outputs=("distances", "indices"),
    ),
    "pack_bits": Case(
        _native.pack_bits,
        lambda: {
            "rows": bit_rows(N),
            "words": np.zeros((3, 3, 16), np.uint32),
            "counts": np.zeros((3, 16), np.int32),
        },
        [
            ({"rows": bit_rows(N, 5)}, r"words has shape \(3, 3, 16\), expected \(3, 2, 16\)"),
            ({"rows": bit_rows(0)}, "no rows of bits"),
            ({"counts": np.zeros((2, 16), np.int32)}, r"counts has shape \(2, 16\), expected \(3, 16\)"),
        ],
        outputs=("words", "counts"),
        free=("rows",),
    ),
    "search_listed_bits": Case(
        _native.search_listed_bits,
        lambda: {
            "metric": "jaccard",
            "isa": ISA,
            "queries": bit_rows(M, seed=1),
            "points": bit_rows(N),
            "k": K,
            "self_ids": np.arange(M),
            "listed": np.array([0, N - 1, 3]),
            "begins": np.zeros(M, np.int64),
            "ends": np.full(M, 3),
            "distances": np.zeros((M, K), np.float32),
            "indices": np.zeros((M, K), np.int32),
        },
        [
            *numbers(k=[0, -1]),
            ({"metric": "l1"}, "metric l1: expected hamming or jaccard"),
            ({"points": bit_rows(N, 5)}, rf"points has shape \({N}, 5\), expected \({N}, 9\)"),
            ({"points": bit_rows(0)}, "points=0: expected"),
            ({"listed": np.array([0, N, 3])}, f"listed has {N} at place 1, expected 0 to {N - 1}"),
            ({"listed": np.array([-1, 0, 3])}, "listed has -1 at place 0"),
            ({"begins": np.full(M, 2), "ends": np.full(M, 1)}, "listed"),
            ({"ends": np.full(M, 4)}, "listed"),
            ({"begins": np.full(M, -1)}, "listed"),
        ],
        outputs=("distances", "indices"),
        free=("points", "listed"),
    ),
    "BitBlock": Case(
        _native.BitBlock,
        bit_arguments,
        [
            *numbers(n=[0, -1, 2**33], k=[0, -1, N + 1]),
            ({"n": N + 9}, r"words has shape \(3, 3, 16\), expected \(4, 3, 16\)"),
            ({"metric": "l1"}, "metric l1: expected hamming or jaccard"),
            ({"queries": bit_rows(M, 5)}, r"words has shape \(3, 3, 16\), expected \(3, 2, 16\)"),
            ({"limits": changed(np.ones(M, np.float32), 3, np.nan)}, "limits: one is not a number"),
            ({"limits": None, "lists": False}, "lists=False is for limits"),
            ({"rows": bit_rows(N)}, "points: expected words and counts, or rows"),
            ({"counts": None}, "points: expected words and counts, or rows"),
            ({"words": None, "counts": None}, "points: expected words and counts, or rows"),
            (
                {"words": None, "counts": None, "rows": bit_rows(N - 1)},
                rf"rows has shape \({N - 1}, 9\), expected \({N}, 9\)",
            ),
        ],
    ),
    "BitBlock.scan": Case(
        lambda block, begin, end: block().scan(begin, end),
        lambda: {"block": lambda: bits_of(scanned=False), "begin": 0, "end": 3},
        [*ranges(3), ({"block": bits_of, "begin": 2}, "groups")],
    ),
    "BitBlock.absorb": Case(
        lambda block, other: (lambda one: one.absorb(other(one)))(block()),
        lambda: {"block": lambda: bits_of(**SAME_BITS), "other": lambda one: bits_of(**SAME_BITS)},
        [
            ({"other": lambda one: one}, "a block cannot absorb itself"),
            ({"other": lambda one: bits_of()}, "blocks differ"),
            ({"other": lambda one: bits_of(**SAME_BITS | {"k": 2})}, "blocks differ"),
        ],
    ),
    "BitBlock.count": Case(
        lambda block, counts: block().count(counts),
        lambda: {"block": bits_of, "counts": np.zeros(M, np.int64)},
        [],
        outputs=("counts",),
    ),
    "BitBlock.write": Case(
        lambda block, **given: block().write(**given),
        lambda: {"block": bits_of} | bit_lists(),
        [
            ({"block": lambda: bits_of(lists=False)}, "the block only counts"),
            ({"block": lambda: bits_of(limits=None, scanned=False)}, "fewer than k points: scan all groups first"),
        ],
        outputs=("distances", "indices"),
    ),
    "Allowed": Case(
        _native.Allowed,
        allowed_arguments,
        [
            *numbers(m=[-1], n=[-1], window=[-2, N + 1]),
            ({"m": 2**62, "n": 2, "mask": None}, "expected less than"),
            ({"packed": True}, r"mask has shape \(6, 40\), expected \(6, 5\)"),
            ({"query_groups": None}, "query_groups, point_groups: expected both or none"),
            ({"excluded": None}, "excluded, begins: expected both or none"),
            ({"excluded": np.array([3, N, 2])}, f"excluded has {N} at place 1, expected 0 to {N - 1}"),
            ({"excluded": np.array([3, 2, -1])}, "excluded has -1 at place 2"),
            ({"excluded": np.array([3, 2])}, "begins: expected numbers that ascend from 0"),
            ({"begins": np.array([0, 2, 1] + [3] * (M - 2))}, "begins: expected numbers that ascend from 0"),
            ({"rows": np.array([0, M])}, "rows has 6 at place 1, expected 0 to 5"),
            ({"ids": np.array([-1])}, "ids has -1 at place 0, expected 0 to 39"),
        ],
        free=("excluded", "rows", "ids"),
    ),
    "Allowed.of_rows": Case(
        lambda rows: allowed_of().of_rows(rows),
        lambda: {"rows": np.array([2, 2, 5])},
        [({"rows": np.array([0, -1])}, "rows has -1 at place 1, expected 0 to 5")],
        free=("rows",),
    ),
    "Allowed.fill": Case(
        lambda table: allowed_of().fill(table),
        lambda: {"table": np.zeros((M, N), np.uint8)},
        [],
        outputs=("table",),
    ),
    "find_directly": Case(
        _native.find_directly,
        lambda: (
            direct_radius()
            | {
                "later": False,
                "indptr": np.zeros(M + 1, np.int64),
                "distances": np.zeros(M * N, np.float32),
                "indices": np.zeros(M * N, np.int32),
            }
        ),
        [
            ({"queries": rows_of(M, D + 1)}, "points has 4 columns, expected 5"),
            ({"queries": rows_of(M).astype(np.float64)}, "distances are float32, expected float64"),
            ({"later": True, "self_ids": None}, "later: expected self_ids"),
            ({"allowed": allowed_of()}, "self_ids: expected None with allowed"),
        ],
        outputs=("indptr", "distances", "indices"),
    ),
    "count_directly": Case(
        _native.count_directly,
        lambda: direct_radius() | {"counts": np.zeros(M, np.int64)},
        [({"allowed": allowed_of(rows=np.arange(2)), "self_ids": None}, "queries of allowed=2: expected 6")],
        outputs=("counts",),
        free=("points",),
    ),
    "count_listed": Case(
        _native.count_listed,
        lambda: {
            "metric": "euclidean",
            "isa": ISA,
            "queries": rows_of(M),
            "points": rows_of(N),
            "limits": np.ones(M),
            "listed": np.arange(N),
            "begins": np.zeros(M, np.int64),
            "ends": np.full(M, N),
            "counts": np.zeros(M, np.int64),
        },
        [
            ({"queries": rows_of(M, D + 1)}, "points has 4 columns, expected 5"),
            ({"begins": np.full(M, -1)}, "expected 0 <= begin <= end <= 40"),
            ({"begins": np.full(M, N + 1)}, "expected 0 <= begin <= end <= 40"),
            ({"ends": np.full(M, N + 1)}, "expected 0 <= begin <= end <= 40"),
            ({"listed": changed(np.arange(N), 7, N)}, "listed has 40 at place 7, expected 0 to 39"),
            ({"listed": changed(np.arange(N), 7, -1)}, "listed has -1 at place 7, expected 0 to 39"),
        ],
        outputs=("counts",),
        free=("listed", "points"),
    ),
    "SparseRows": Case(
        _native.SparseRows,
        sparse_arguments,
        [
            *numbers(d=[0, -1, 2**31]),
            ({"d": 2}, "columns has 2 at place 3, expected 0 to 1"),
            ({"indptr": np.zeros(0, np.int64)}, "indptr is empty"),
            ({"indptr": 2 * np.arange(N + 1) + 1}, "indptr begins with 1, expected 0"),
            ({"indptr": changed(2 * np.arange(N + 1), 3, 9)}, "indptr goes from 9 to 8 at place 4"),
            ({"indptr": changed(2 * np.arange(N + 1), -1, 2**40)}, r"columns has shape \(\d+,\), expected"),
            ({"columns": changed(sparse_arguments()["columns"], 4, -1)}, "columns has -1 at place 4"),
            ({"columns": changed(sparse_arguments()["columns"], 5, 0)}, "columns: those of row 2 do not ascend"),
        ],
    ),
    "SparsePoints": Case(
        _native.SparsePoints,
        sparse_points,
        [
            *numbers(ranked=[-1, 5]),
            ({"metric": "l1"}, "metric l1: expected cosine, inner_product, sqeuclidean, euclidean or jaccard"),
            ({"metric": "jaccard"}, "sets are float32 rows of ones"),
            ({"ranked": 2}, "ranks has 2 at place 3, expected 0 to 1"),
            ({"ranks": changed(sparse_points()["ranks"], 0, -1)}, "ranks has -1 at place 0"),
            ({"ranks": np.zeros(2 * N, np.int32)}, "two columns have the same rank"),
            (
                {"ranks": np.array([2, 0, 1], np.int32)[sparse_points()["ranks"]]},
                "the columns of the most points first",
            ),
            ({"rows": _native.SparseRows(**sparse_arguments(0))}, "no points"),
        ],
    ),
    "SparseBlock": Case(
        _native.SparseBlock,
        sparse_block,
        [
            *numbers(k=[-1, N + 1]),
            ({"k": 0, "limits": None}, "k=0: expected 1"),
            ({"counted": True}, "counted is for limits, without k"),
            ({"allowed": allowed_of(rows=np.arange(M - 1))}, "queries of allowed=5: expected 6"),
            ({"left": np.ones(N - 1, bool)}, "left has shape"),
            ({"points": SPARSE_SETS}, "sets are float32 rows of ones"),
            *[({"begin": begin, "end": end}, "queries ") for begin, end in [(-1, 2), (2, 1), (0, M + 1)]],
            ({"limits": np.zeros(M)}, r"limits has shape"),
            ({"limits": changed(np.ones(M - 1), 2, np.nan)}, "limits: one is not a number"),
            (
                {"limits": None, "later": True, "queries": SPARSE_ROWS, "ranks": sparse_points()["ranks"]},
                "later is for",
            ),
            ({"own": True}, f"rows={M}: expected {N}"),
            ({"later": True}, f"rows={M}: expected {N}"),
            ({"ranks": changed(sparse_arguments(M)["columns"], 4, 3)}, "ranks has 3 at place 2, expected -1 to 2"),
            ({"ranks": changed(sparse_arguments(M)["columns"], 4, -2)}, "ranks has -2 at place 2"),
            (
                {"queries": _native.SparseRows(**sparse_arguments(M) | {"d": 5})},
                "queries have 5 columns, expected 4",
            ),
        ],
    ),
    "SparseBlock.scan": Case(
        lambda block, begin, end: block().scan(begin, end),
        lambda: {"block": lambda: sparse_of(scanned=False), "begin": 0, "end": 1},
        [*ranges(1), ({"block": sparse_of}, "blocks")],
    ),
    "SparseBlock.refine": Case(
        lambda block, begin, end: block().refine(begin, end),
        lambda: {"block": lambda: sparse_of(refined=False), "begin": 0, "end": M - 1},
        [
            *ranges(M - 1),
            ({"begin": 1}, "queries are refined one after another"),
            ({"block": sparse_of}, "queries"),
            ({"block": lambda: sparse_of(scanned=False)}, "not all blocks are scanned"),
        ],
    ),
    "SparseBlock.count": Case(
        lambda block, counts: block().count(counts),
        lambda: {"block": sparse_of, "counts": np.zeros(M - 1, np.int64)},
        [({"block": lambda: sparse_of(refined=False)}, "not all queries are refined")],
        outputs=("counts",),
    ),
    "SparseBlock.write": Case(
        lambda block, **given: block().write(**given),
        lambda: {
            "block": lambda: sparse_of(limits=None),
            "distances": np.zeros((M - 1) * K, np.float32),
            "indices": np.zeros((M - 1) * K, np.int32),
        },
        [
            ({"block": lambda: sparse_of(limits=None, refined=False)}, "not all queries are refined"),
            ({"distances": np.zeros((M - 1) * K)}, "distances: expected float32 if narrow, else float64"),
            ({"block": lambda: sparse_of(k=0, counted=True)}, "points are counted, not stored"),
        ],
        outputs=("distances", "indices"),
    ),
    "SparsePoints.squares": Case(
        lambda squares: SPARSE_POINTS.squares(squares),
        lambda: {"squares": np.zeros(N)},
        [],
        outputs=("squares",),
    ),
    "TreeRadius": Case(
        _native.TreeRadius,
        tree_radius_arguments,
        [
            ({"allowed": allowed_of()}, "self_ids: expected None with allowed"),
            ({"allowed": allowed_of(rows=np.arange(M - 1)), "self_ids": None}, "queries of allowed=5: expected 6"),
            ({"allowed": allowed_of(ids=np.arange(N - 1)), "self_ids": None}, "allowed: expected rules for all points"),
            ({"metric": "cosine"}, "no tree serves cosine"),
            ({"queries": rows_of(M, D + 1)}, "queries has 5 columns, expected 4"),
            ({"queries": rows_of(M).astype(np.float64)}, "a tree of float32 cannot answer in float64"),
            ({"double_output": True}, "a tree of float32 cannot answer in float64"),
            ({"limits": changed(np.ones(M), 3, np.nan)}, "limits: one is not a number"),
            ({"order": changed(np.arange(M), 2, M)}, "order has 6 at place 2, expected 0 to 5"),
            ({"later": True, "self_ids": None}, "later: expected self_ids"),
            ({"later": True, "lists": False}, "later: expected lists=True"),
        ],
        outputs=("counts",),
    ),
    "TreeRadiusBlock": Case(
        lambda begin, end: _native.TreeRadiusBlock(_native.TreeRadius(**tree_radius_arguments()), begin, end),
        lambda: {"begin": 0, "end": M},
        ranges(M),
    ),
    "TreeRadiusBlock.write": Case(
        lambda block, **given: block().write(**given),
        lambda: {"block": lambda: tree_lists()[0]} | tree_lists()[1],
        [
            ({"block": lambda: tree_lists(finished=False)[0]}, "the block is not finished"),
            ({"indptr": changed(tree_lists()[1]["indptr"], -1, 2**40)}, "indptr: expected the running sums"),
            ({"indptr": changed(tree_lists()[1]["indptr"], 0, -1)}, "indptr: expected the running sums"),
            ({"indices": np.zeros(len(tree_lists()[1]["indices"]), np.int64)}, "indices are int64, expected int32"),
        ],
        outputs=("distances", "indices"),
    ),
    "SelfJoin": Case(
        _native.SelfJoin,
        lambda: {
            "kernel": KERNEL,
            "form": FORM,
            "points": rows_of(N),
            "k": K,
            "isa": ISA,
            "self_ids": np.arange(N),
            "double_output": False,
            "may_retry": False,
            "capacity": 64,
            "growth": 0,
        },
        [*SPEC, *numbers(growth=[-1]), REFUSED_FORM, REFUSED_KERNEL],
    ),
    "SelfJoin.open": Case(
        lambda begin, end: join_of(0, 0).open(begin, end),
        lambda: {"begin": 0, "end": N},
        [*ranges(N), ({"begin": 2, "end": 2}, "no rows to open")],
    ),
    "SelfJoin.prepare": Case(
        lambda join, **given: join().prepare(**given),
        lambda: {"join": lambda: join_of(4, 20), "begin": 4, "end": 20, "packed": PACKED},
        [
            *((({"packed": change["points"]}), words) for change, words in PACKINGS),
            ({"join": lambda: join_of(0, 0)}, r"call open\(\) first"),
            ({"begin": 3}, "expected 4 <= begin <= end <= 20"),
            ({"end": 21}, "expected 4 <= begin <= end <= 20"),
            ({"packed": _native.PackedPoints(KERNEL, FORM, POINTS, 5, N)}, "expected 5 <= begin <= end <= 40"),
            ({"packed": _native.PackedPoints(KERNEL, FORM, POINTS, 0, 19)}, "expected 0 <= begin <= end <= 19"),
        ],
    ),
    "SelfJoin.know": Case(
        lambda join, **given: join().know(**given),
        lambda: {"join": lambda: join_of(4, 20), "begin": 4, "end": 20, "values": np.ones(16)},
        [
            ({"join": lambda: join_of(0, 0)}, r"call open\(\) first"),
            ({"begin": 3}, "expected 4 <= begin <= end <= 20"),
            ({"end": 21}, "expected 4 <= begin <= end <= 20"),
            ({"values": np.ones(15)}, r"values has shape \(15,\), expected \(16,\)"),
        ],
    ),
    "SelfJoin.finish": Case(
        lambda join, **given: join().finish(**given),
        lambda: {"join": searched_join, "begin": 0, "end": N} | found(N) | {"first": 0, "last": N},
        [
            *ranges(N),
            ({"first": -1}, f"expected 0 <= begin <= end <= {N}"),
            ({"last": N + 1}, f"expected 0 <= begin <= end <= {N}"),
            ({"first": 3, "last": 2}, f"expected 0 <= begin <= end <= {N}"),
            ({"join": lambda: join_of(0, 0)}, r"call open\(\) first"),
            ({"begin": 1}, r"distances has shape \(40, 3\), expected \(39, 3\)"),
            ({"distances": np.zeros((N, K))}, "distances are float64, expected float32"),
        ],
        outputs=("distances", "indices", "status"),
    ),
    "JoinWorker.open": Case(
        lambda join, begin, end: _native.JoinWorker(join()).open(begin, end),
        lambda: {"join": lambda: join_of(0, 20), "begin": 0, "end": 20},
        [
            *ranges(20),
            ({"join": lambda: join_of(0, 0)}, r"call open\(\) first"),
            ({"begin": 2, "end": 2}, "no rows to open"),
        ],
    ),
    "JoinWorker.screen": Case(
        lambda worker, **given: worker().screen(**given),
        lambda: {
            "worker": lambda: worker_of(join_of()),
            "points": PACKED,
            "group_begin": 1,
            "group_end": PACKED.groups,
            "both": True,
        },
        [
            *PACKINGS,
            ({"worker": lambda: _native.JoinWorker(join_of())}, r"call open\(\) first"),
            ({"worker": stale_worker}, "the join has opened other rows"),
            ({"group_begin": 2, "group_end": 1}, "groups"),
            ({"group_end": PACKED.groups + 1}, "groups"),
            ({"group_begin": 0}, "both: points"),  # of the block itself
            ({"worker": lambda: worker_of(join_of(0, N - 1))}, "both: points"),  # not all active
            ({"looks": True}, "looks: the search has none"),
        ],
    ),
    "select_rows": Case(
        _native.select_rows,
        lambda: {
            "isa": ISA,
            "method": "threshold",
            "values": rows_of(M, 9),
            "value_type": "float32",
            "begin": 0,
            "end": M,
            "k": K,
            "lengths": np.full(M, 9),
            "largest": False,
            "sorted": True,
            "options": {},
            "counters": None,
            "out_values": np.zeros((M, K), np.float32),
            "out_indices": np.zeros((M, K), np.int32),
        },
        [
            *ranges(M),
            *numbers(k=[0, 10, -1]),
            ({"lengths": changed(np.full(M, 9), 2, 10)}, "lengths has 10 at place 2"),
        ],
        outputs=("out_values", "out_indices"),
    ),
    "tree_top": Case(
        _native.tree_top,
        lambda: {
            "points": rows_of(N),
            "levels": 2,
            "ranges": 2,
            "dimensions": np.zeros(LEAVES - 1, np.int32),
            "values": np.zeros(LEAVES - 1, np.float32),
        },
        [
            *numbers(levels=[-1, 9], ranges=[0, -1, N + 1]),
            ({"levels": 8}, "a node of the last level would have none"),
            ({"levels": 3}, "length of the dimensions=3: expected at least 7"),
            ({"points": rows_of(N).astype(np.float64)}, "values are float32, expected float64"),
        ],
        outputs=("dimensions", "values"),
        free=("points",),
    ),
    "TreeTop.count": Case(
        lambda top, range: top().count(range),
        lambda: {"top": lambda: top_of(0), "range": 1},
        [no_step({}, "every level is cut", 4), *numbers(range=[-1, 2])],
    ),
    "TreeTop.cut": Case(
        lambda top, node: top().cut(node),
        lambda: {"top": lambda: top_of(2), "node": 0},
        [
            *numbers(node=[-1, 1]),
            no_step({}, r"count\(\) every range", 0),
            no_step({}, r"count\(\) every range", 1),
            no_step({}, "the node is cut already", 3),
            no_step({}, "every level is cut", 4),
        ],
    ),
    "TreeTop.descend": Case(
        lambda top: top().descend(),
        lambda: {"top": lambda: top_of(3)},
        [no_step({}, r"cut\(\) every node", 2), no_step({}, "every level is cut", 4)],
    ),
    "TreeTop.tally": Case(
        lambda top, range: top().tally(range),
        lambda: {"top": lambda: top_of(4), "range": 1},
        [no_step({}, r"descend\(\) every level", 3), *numbers(range=[-1, 2])],
    ),
    "TreeTop.place": Case(
        lambda top, **given: top().place(**given),
        lambda: {"top": lambda: top_of(6), "range": 1, "ids": np.zeros(N, np.int32)},
        [no_step({}, r"tally\(\) every range", 5), no_step({}, r"tally\(\) every range", 4), *numbers(range=[-1, 2])],
        outputs=("ids",),
    ),
    "tree_below": Case(
        _native.tree_below,
        lambda: {
            "points": rows_of(N),
            "level": 1,
            "index": 1,
            "ids": np.arange(N, dtype=np.int32),
            "dimensions": np.zeros(LEAVES - 1, np.int32),
            "values": np.zeros(LEAVES - 1, np.float32),
            "blocks": np.zeros((LEAVES, D, CAPACITY), np.float32),
            "boxes": np.zeros((1, D, 2, 16), np.float32),
            "height": HEIGHT,
        },
        [
            *numbers(height=[-1, 6, 32], level=[-1, HEIGHT + 1], index=[-1, 2]),
            ({"ids": changed(np.arange(N, dtype=np.int32), N - 1, N)}, f"ids of the node has {N} at place 19"),
            ({"ids": changed(np.arange(N, dtype=np.int32), N // 2, -1)}, "ids of the node has -1 at place 0"),
            ({"blocks": np.zeros((LEAVES, D, 9), np.float32)}, "capacity of the blocks=9: expected at least 10"),
            ({"points": rows_of(N).astype(np.float64)}, "values are float32, expected float64"),
        ],
        outputs=("ids", "dimensions", "values", "blocks", "boxes"),
    ),
    "TreeView": Case(
        _native.TreeView,
        tree_arrays,
        [
            *numbers(height=[-1, 32]),
            ({"height": HEIGHT + 1}, "rows has shape"),
            ({"boxes": []}, "boxes: 0 levels"),
            ({"boxes": TREE["boxes"] * 17}, "boxes: 17 levels, expected 1"),
            ({"boxes": [TREE["boxes"][0].astype(np.float64)]}, "boxes are float64, expected float32"),
            ({"boxes": [np.zeros((2, D, 2, 16), np.float32)]}, r"boxes has shape \(2, 4, 2, 16\), expected \(1, "),
            ({"boxes": [np.zeros((1, D, 2, 16), np.float32)]}, "expected \\+inf for children that are absent"),
            ({"rows": TREE["rows"][:, :, :15].copy()}, "whole blocks of 16"),
            ({"rows": np.zeros((LEAVES, D, 0), np.float32)}, "begins goes from 0 to 10"),
            ({"begins": changed(TREE["begins"], 0, -1)}, "begins begins with -1"),
            ({"begins": changed(TREE["begins"], 2, 40)}, "begins goes from 10 to 40 at place 2"),
            ({"begins": changed(TREE["begins"], 2, 9)}, "begins goes from 10 to 9 at place 2"),
            ({"begins": changed(TREE["begins"], -1, N + 1)}, f"last of the begins={N + 1}: expected {N}"),
            ({"split_dimensions": changed(TREE["split_dimensions"], 1, D)}, "split_dimensions has 4 at place 1"),
            ({"split_dimensions": changed(TREE["split_dimensions"], 1, -1)}, "split_dimensions has -1 at place 1"),
            ({"split_values": TREE["split_values"].astype(np.float64)}, "split_values are float64, expected float32"),
        ],
    ),
    "TreeView.first_leaves": Case(
        lambda **given: tree_of().first_leaves(**given),
        lambda: {"queries": rows_of(M), "begin": 0, "end": M, "leaves": np.zeros(M, np.int32)},
        [*ranges(M), ({"queries": rows_of(M, D - 1)}, "queries has 3 columns, expected 4")],
        outputs=("leaves",),
    ),
    "order_by_leaf": Case(
        _native.order_by_leaf,
        lambda: {"leaves": np.arange(M, dtype=np.int32), "count": M, "order": np.zeros(M, np.int64)},
        [
            *numbers(count=[-1, 2**40]),
            ({"count": M - 1}, "leaves has 5 at place 5, expected 0 to 4"),
            ({"leaves": np.full(M, -1, np.int32)}, "leaves has -1 at place 0"),
        ],
        outputs=("leaves", "order"),
    ),
    "search_tree": Case(
        _native.search_tree,
        lambda: {
            "tree": tree_of(),
            "isa": ISA,
            "metric": "euclidean",
            "k": K,
            "queries": rows_of(M),
            "distances": np.zeros((M, K), np.float32),
            "indices": np.zeros((M, K), np.int32),
        },
        [
            *numbers(k=[0, N + 1]),
            ({"metric": "cosine"}, "no tree serves cosine"),
            ({"queries": rows_of(M, D + 1)}, "queries has 5 columns, expected 4"),
            ({"indices": np.zeros((M, K), np.int64)}, "indices are int64, expected int32"),
        ],
        outputs=("distances", "indices"),
    ),
    "find_in_tree": Case(
        _native.find_in_tree,
        lambda: (
            few_in_tree()
            | {
                "indptr": np.zeros(M + 1, np.int64),
                "distances": np.zeros(M * N, np.float32),
                "indices": np.zeros(M * N, np.int32),
            }
        ),
        [
            ({"limits": changed(np.ones(M), 3, np.nan)}, "limits: one is not a number"),
            ({"distances": np.zeros(M * N)}, "a tree of float32 cannot answer in float64"),
            ({"indices": np.zeros(M * N, np.int64)}, "indices: expected the type of the ids"),
            ({"indptr": np.zeros(M, np.int64)}, "indptr has shape"),
        ],
        outputs=("indptr", "distances", "indices"),
    ),
    "count_in_tree": Case(
        _native.count_in_tree,
        lambda: few_in_tree() | {"double_output": False, "counts": np.zeros(M, np.int64)},
        [({"double_output": True}, "a tree of float32 cannot answer in float64")],
        outputs=("counts",),
    ),
    "TreeSearch": Case(
        _native.TreeSearch,
        lambda: {
            "tree": tree_of(),
            "isa": ISA,
            "metric": "euclidean",
            "k": K,
            "queries": rows_of(M),
            "order": np.arange(M),
            "self_ids": np.arange(M),
            "distances": np.zeros((M, K), np.float32),
            "indices": np.zeros((M, K), np.int32),
        },
        [
            *numbers(k=[0, -1, N]),
            ({"k": K + 1}, r"distances has shape \(6, 3\), expected \(6, 4\)"),
            ({"metric": "cosine"}, "no tree serves cosine"),
            ({"queries": rows_of(M, D + 1)}, "queries has 5 columns, expected 4"),
            ({"queries": rows_of(M).astype(np.float64)}, "a tree of float32 cannot answer in float64"),
            ({"distances": np.zeros((M, K))}, "a tree of float32 cannot answer in float64"),
            ({"indices": np.zeros((M, K), np.int64)}, "indices are int64, expected int32"),
            ({"order": changed(np.arange(M), 2, M)}, "order has 6 at place 2, expected 0 to 5"),
            ({"order": changed(np.arange(M), 2, -1)}, "order has -1 at place 2"),
        ],
        outputs=("distances", "indices"),
    ),
    "TreeSearch.run": Case(
        lambda begin, end: search_of().run(begin, end, 1 << 40),
        lambda: {"begin": 0, "end": M},
        ranges(M),
    ),
    "TreeRounds": Case(
        lambda begin, end, buffer: _native.TreeRounds(search_of(), begin, end, buffer),
        lambda: {"begin": 0, "end": M, "buffer": 2},
        [*ranges(M), *numbers(buffer=[-1, 0, 2**31])],
    ),
    "Forest": Case(
        _native.Forest,
        forest_arguments,
        [
            ({"metric": "cosine"}, "no tree serves cosine"),
            ({"core": np.zeros(N - 1)}, "core has shape"),
            ({"distances": np.zeros((N, K))}, "a tree of float32 cannot answer in float64"),
            ({"distances": np.zeros((N, K + 1), np.float32)}, "indices has shape"),
            ({"distances": np.zeros((N, 0), np.float32), "indices": np.zeros((N, 0), np.int32)}, "at least 1"),
            ({"indices": np.full((N, K), N, np.int32)}, "indices has .* expected -1 to"),
            ({"indices": np.full((N, K), -2, np.int32)}, "indices has -2 at place 0"),
        ],
    ),
    "Forest.offer_listed": Case(
        lambda begin, end: _native.Forest(**forest_arguments()).offer_listed(begin, end),
        lambda: {"begin": 0, "end": N},
        ranges(N),
    ),
    "Forest.walk": Case(
        lambda begin, end: _native.Forest(**forest_arguments()).walk(begin, end, 1 << 40),
        lambda: {"begin": 0, "end": 4},
        ranges(4),
    ),
    "Forest.write": Case(
        lambda weights, pairs: walked_forest().write(weights, pairs),
        lambda: {
            "weights": np.zeros(N - walked_forest().count),
            "pairs": np.zeros(N - walked_forest().count, np.int64),
        },
        [({"weights": np.zeros(N)}, "weights has shape"), ({"pairs": np.zeros(N, np.int64)}, "pairs has shape")],
        outputs=("weights", "pairs"),
    ),
    "add_reverse": Case(
        _native.add_reverse,
        lambda: {
            "entries": lists(),
            "column": 1,
            "begin": 0,
            "end": N,
            "counts": np.zeros(N, np.int32),
            "behind": np.zeros((N, REVERSE), np.int32),
        },
        [
            *ranges(N),
            *numbers(column=[-1, LIST]),
            ({"counts": changed(np.zeros(N, np.int32), 7, -1)}, "counts has -1 at place 7, expected 0 to 2"),
            ({"counts": changed(np.zeros(N, np.int32), 7, 3)}, "counts has 3 at place 7"),
        ],
        outputs=("counts", "behind"),
    ),
    "end_reverse": Case(
        _native.end_reverse,
        lambda: {
            "entries": lists(),
            "begin": 0,
            "end": N,
            "counts": np.zeros(N, np.int32),
            "behind": np.zeros((N, REVERSE), np.int32),
        },
        [*ranges(N), ({"counts": changed(np.zeros(N, np.int32), 7, 3)}, "counts has 3 at place 7, expected 0 to 2")],
        outputs=("counts", "behind"),
    ),
    "has_point_terms": Case(
        _native.has_point_terms, lambda: {"metric": "cosine", "points": rows_of(N)}, [], free=("points",)
    ),
    "point_terms": Case(
        _native.point_terms,
        lambda: {"metric": "cosine", "points": rows_of(N), "begin": 0, "end": N, "terms": np.zeros((N, 2), np.float32)},
        [*ranges(N), ({"terms": np.zeros((N, 1), np.float32)}, r"terms has shape \(40, 1\), expected \(40, 2\)")],
        outputs=("terms",),
    ),
    "DescentRound": Case(
        _native.DescentRound,
        round_arguments,
        [
            *numbers(hubs=[-1, LIST + 1], breadth=[0, LIST + 1], width=[0, -1], boundary=[-2, N + 1]),
            ({"terms": None}, r"terms are None, expected those of point_terms\(\)"),
            ({"entries": changed(ENTRY, (3, 4), N)}, f"entries has the id {N} at place 19, expected 0 to {N - 1}"),
            ({"entries": changed(ENTRY, (3, 4), N | NEW)}, f"entries has the id {N} at place 19"),
            ({"behind": np.full((N, REVERSE), N, np.int32)}, f"behind has the id {N} at place 0"),
            ({"order": np.full(N, N, np.int32)}, f"order has {N} at place 0"),
            ({"order": np.full(N, -1, np.int32)}, "order has -1 at place 0"),
            ({"distances": np.zeros((N, K + 1), np.float32)}, r"distances has shape \(40, 4\), expected \(40, 3\)"),
            ({"kept": np.zeros((N, LIST - 1), np.int32)}, r"kept has shape \(40, 4\), expected \(40, 5\)"),
        ],
        outputs=("kept", "distances", "indices", "sums"),
    ),
    "DescentRound.run": Case(
        lambda begin, end: _native.DescentRound(**round_arguments()).run(begin, end),
        lambda: {"begin": 0, "end": N},
        ranges(N),
    ),
    "best_scores": Case(
        _native.best_scores,
        lambda: {
            "kernel": KERNEL,
            "form": FORM,
            "queries": rows_of(M),
            "begin": 0,
            "end": M,
            "packed": runs(),
            "places": np.zeros((M, K), np.int32),
        },
        [
            *ranges(M),
            REFUSED_FORM,
            REFUSED_KERNEL,
            *((({"packed": [OUTSIDE[words]]}), words) for words in list(OUTSIDE)[:2]),
            ({"packed": []}, "columns of the places=3: expected 1 to 0"),
            ({"packed": [PACKED, None]}, "expected a list of PackedPoints"),
            ({"places": np.zeros((M, N + 1), np.int32)}, f"columns of the places={N + 1}: expected 1 to {N}"),
            ({"places": np.zeros((M, 0), np.int32)}, "columns of the places=0"),
        ],
        outputs=("places",),
    ),
    "Pieces": Case(
        _native.Pieces,
        pieces_arguments,
        [
            ({"order": changed(PIECES["order"], 3, N)}, f"order has {N} at place 3"),
            ({"order": changed(PIECES["order"], 3, -1)}, "order has -1 at place 3"),
            ({"begins": np.array([1, 10, 12, 30, N])}, "begins begins with 1"),
            ({"begins": np.array([0, 10, 10, 30, N])}, "begins goes from 10 to 10 at place 2"),
            ({"begins": np.array([0, 10, 9, 30, N])}, "begins goes from 10 to 9 at place 2"),
            ({"begins": np.array([0, 10, 12, 30, N - 1])}, f"last of the begins={N - 1}: expected {N}"),
            ({"clusters": np.array([0, 1, 1, 3])}, "clusters has 3 at place 3"),
            ({"clusters": np.array([0, 1, 2, 2])}, "do not agree"),
            ({"sides": np.array([0, 0, 2, 0])}, "sides has 2 at place 2"),
            ({"firsts": np.array([0, 1, 3, 5])}, "firsts goes from|last of the firsts=5: expected 4"),
            ({"firsts": np.array([0, 3, 1, 4])}, "firsts goes from 3 to 1 at place 2"),
            ({"firsts": np.array([], np.int64)}, "length of the firsts=0"),
        ],
    ),
    "ClusterSearch": Case(
        _native.ClusterSearch,
        search_arguments,
        [
            *numbers(probes=[0, -1], most=[0], boundary=[-2, N + 1]),
            REFUSED_FORM,
            REFUSED_KERNEL,
            ({"rows": rows_of(N, D + 1)}, "rows has 5 columns, expected 4"),
            ({"rows": rows_of(N - 1)}, "length of the seekers' order=40: expected 39"),
            ({"packed": runs()[:3]}, "packed runs=3: expected 4"),
            ({"packed": [*runs()[:3], PACKED]}, "as many points as each piece"),
            ({"packed": [*runs()[:3], FORM]}, "expected a list of PackedPoints"),
            ({"near": changed(SEARCH["near"], (2, 1), 3)}, "near has 3 at place 5, expected 0 to 2"),
            ({"near": changed(SEARCH["near"], (2, 1), -1)}, "near has -1 at place 5"),
            ({"ranked": changed(SEARCH["ranked"], (2, 0), 3)}, "ranked has 3 at place 4, expected 0 to 2"),
            ({"ranked": SEARCH["ranked"][:2]}, "ranked"),
            ({"boundary": 4, "places": None}, "members on side 1=0: expected 36"),
            ({"boundary": N}, "places: expected None"),
            ({"entries": np.zeros((N, 0), np.int32)}, "columns of the entries=0"),
        ],
        outputs=("entries",),
    ),
    "ClusterSearch.run": Case(
        lambda begin, end: _native.ClusterSearch(**search_arguments()).run(begin, end),
        lambda: {"begin": 0, "end": 4},
        ranges(4),
    ),
}


def arrays_in(given: Given) -> Iterator[tuple[str, Array]]:
    for name, value in given.items():
        if isinstance(value, np.ndarray):
            yield name, value
        elif isinstance(value, list):
            yield from ((name, item) for item in value if isinstance(item, np.ndarray))


def refused(case: Case, given: Given, words: str | None = None) -> None:
    before = [array.tobytes() for _, array in arrays_in(given)]
    with pytest.raises((TypeError, ValueError), match=words):
        case.call(**given)
    assert [array.tobytes() for _, array in arrays_in(given)] == before


@pytest.mark.parametrize("name", CASES)
def test_what_is_right_is_taken(name: str) -> None:
    CASES[name].call(**CASES[name].given())


@pytest.mark.parametrize(("name", "at"), [(name, at) for name, case in CASES.items() for at in range(len(case.spoilt))])
def test_numbers_and_shapes_that_do_not_fit_are_refused(name: str, at: int) -> None:
    change, words = CASES[name].spoilt[at]
    refused(CASES[name], CASES[name].given() | change, words)


def misaligned(array: Array) -> Array:
    memory = np.zeros(array.nbytes + 1, np.uint8)
    moved: Array = memory[1:].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def read_only(array: Array) -> Array:
    array.flags.writeable = False
    return array


SPOILT: dict[str, Callable[[Array], Array]] = {
    "uint16": lambda array: np.zeros(array.shape, np.uint16),
    "big-endian": lambda array: array.astype(array.dtype.newbyteorder(">")),
    "one axis more": lambda array: array[None],
    "one axis less": lambda array: array[0],
    "one row less": lambda array: array[:-1],
    "one row more": lambda array: np.concatenate([array, array[-1:]]),
    "one column less": lambda array: np.ascontiguousarray(array[..., :-1]),
    "every second in memory": lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    "columns first": np.asfortranarray,
    "misaligned": misaligned,
}


# Changes that are valid: more points than are read, or another number of columns that no other argument fixes.
TAKEN = {
    ("PackedPoints", "points", "one row more"),
    ("exact_values", "points", "one row more"),
    ("Pieces", "firsts", "one row more"),
    ("SparseRows", "indptr", "one row more"),
    ("find_directly", "limits", "every second in memory"),  # a single limit for all queries is allowed
    ("count_directly", "limits", "every second in memory"),
    *(
        (name, argument, "one column less")
        for name, arguments in {
            "mark_copies": ("rows",),
            "tree_below": ("blocks",),
            "add_reverse": ("entries", "behind"),
            "end_reverse": ("entries", "behind"),
            "point_terms": ("points",),
            "order_cells": ("sketch",),
            "DescentRound": ("points", "behind"),
            "best_scores": ("places",),
            "ClusterSearch": ("near", "ranked", "entries"),
        }.items()
        for argument in arguments
    ),
}


def spoils(array: Array, how: str) -> bool:
    """Change the array, and return whether the change can be detected."""
    if how in ("one column less", "columns first"):
        return array.ndim > 1 and (how == "one column less" or min(array.shape) > 1)
    return array.itemsize > 1 or how not in ("misaligned", "big-endian")


def spoilt_arrays() -> Iterator[Any]:
    for name, case in CASES.items():
        for argument, array in arrays_in(case.given()):
            ways = [how for how in SPOILT if spoils(array, how) and (name, argument, how) not in TAKEN]
            if argument in case.free:
                ways = [how for how in ways if how not in ("one row less", "one row more", "one column less")]
            for how in ways + ["read-only"] * (argument in case.outputs):
                yield pytest.param(name, argument, how, id=f"{name}-{argument}-{how}")


@pytest.mark.parametrize(("name", "argument", "how"), list(spoilt_arrays()))
def test_arrays_that_do_not_fit_are_refused(name: str, argument: str, how: str) -> None:
    case = CASES[name]
    given = case.given()
    spoil = SPOILT.get(how, read_only)
    value = given[argument]
    given[argument] = [spoil(value[0]), *value[1:]] if isinstance(value, list) else spoil(value)
    refused(case, given)


class Keeper(NamedTuple):
    """An object that reads arrays later: how it is made, and its answer then."""

    make: Callable[..., Any]
    given: Callable[[], Given]
    answer: Callable[[Any], Any]


def answer_of_block(block: _native.RowBlock) -> Any:
    out = found(M)
    block.open(0, M)
    block.screen(PACKED, 0, PACKED.groups)
    block.finish(**out)
    return out["distances"].tobytes(), out["indices"].tobytes()


def answer_of_join(join: _native.SelfJoin) -> Any:
    out = found(N)
    join.open(0, N)
    join.prepare(0, N, PACKED)
    worker = _native.JoinWorker(join)
    worker.open(0, N)
    worker.screen(PACKED, 0, PACKED.groups, False)
    join.finish(0, N, **out, first=0, last=N)
    return out["distances"].tobytes(), out["indices"].tobytes()


def answer_of_top(top: _native.TreeTop) -> Any:
    ids = np.zeros(N, np.int32)
    for step in top_steps(top):
        step()
    top.place(0, ids)
    top.place(1, ids)
    return ids.tobytes()


def answer_of_tree(tree: _native.TreeView) -> Any:
    queries, out = rows_of(M, seed=1), found(M)
    leaves = np.zeros(M, np.int32)
    tree.first_leaves(queries, 0, M, leaves)
    search = _native.TreeSearch(tree, ISA, "euclidean", K, queries, None, None, out["distances"], out["indices"])
    search.run(0, M, 1 << 40)
    return leaves.tobytes(), out["distances"].tobytes(), out["indices"].tobytes()


def answer_of_radius(block: _native.RadiusBlock) -> Any:
    counts = np.zeros(M, np.int64)
    block.open(0, M)
    block.screen(PACKED, 0, PACKED.groups)
    block.count(counts)
    return counts.tobytes()


def answer_of_allowed(allowed: _native.Allowed) -> bytes:
    table = np.zeros((M, N), np.uint8)
    allowed.fill(table)
    return table.tobytes()


def edges_of(forest: _native.Forest) -> bytes:
    forest.offer_listed(0, N)
    forest.walk(0, 4, 1 << 40)
    forest.merge()
    weights, pairs = np.zeros(N - forest.count), np.zeros(N - forest.count, np.int64)
    forest.write(weights, pairs)
    return weights.tobytes() + pairs.tobytes()


def answer_of_sparse(block: _native.SparseBlock) -> bytes:
    block.scan(0, 1)
    block.refine(0, M - 1)
    counts = np.zeros(M - 1, np.int64)
    block.count(counts)
    return counts.tobytes()


def answer_of_sparse_points(points: _native.SparsePoints) -> bytes:
    return answer_of_sparse(sparse_of(scanned=False, points=points))


KEEPERS = {
    "Allowed": Keeper(_native.Allowed, allowed_arguments, answer_of_allowed),
    "SparseBlock": Keeper(_native.SparseBlock, sparse_block, answer_of_sparse),
    "SparseRows": Keeper(
        _native.SparseRows,
        sparse_arguments,
        lambda rows: answer_of_sparse_points(_native.SparsePoints(**sparse_points() | {"rows": rows})),
    ),
    "RadiusBlock": Keeper(_native.RadiusBlock, radius_arguments, answer_of_radius),
    "TreeRadius": Keeper(
        _native.TreeRadius, tree_radius_arguments, lambda search: _native.TreeRadiusBlock(search, 0, M).run(1 << 40)
    ),
    "RowBlock": Keeper(_native.RowBlock, CASES["RowBlock"].given, answer_of_block),
    "SelfJoin": Keeper(_native.SelfJoin, CASES["SelfJoin"].given, answer_of_join),
    "TreeTop": Keeper(_native.tree_top, lambda: CASES["tree_top"].given() | {"levels": 1}, answer_of_top),
    "TreeView": Keeper(_native.TreeView, tree_arrays, answer_of_tree),
    "TreeSearch": Keeper(_native.TreeSearch, CASES["TreeSearch"].given, lambda search: search.run(0, M, 1 << 40)),
    "Forest": Keeper(_native.Forest, forest_arguments, edges_of),
    "DescentRound": Keeper(_native.DescentRound, round_arguments, lambda one: one.run(0, N)),
    "Pieces": Keeper(
        _native.Pieces,
        pieces_arguments,
        lambda pieces: cluster_entries(search_arguments() | {"seekers": pieces, "members": pieces}),
    ),
    "ClusterSearch": Keeper(_native.ClusterSearch, search_arguments, lambda search: search.run(0, 4)),
}


def cluster_entries(given: Given) -> bytes:
    _native.ClusterSearch(**given).run(0, 4)
    return bytes(given["entries"].tobytes())


@pytest.mark.parametrize("name", KEEPERS)
def test_objects_keep_the_memory_that_they_read(name: str) -> None:
    make, given, answer = KEEPERS[name]
    arguments = given()
    truth = answer(make(**arguments)), [array.tobytes() for _, array in arrays_in(arguments)]
    arguments = given()
    arrays = [weakref.ref(array) for _, array in arrays_in(arguments)]
    sizes = [array.nbytes for _, array in arrays_in(arguments)]
    made = make(**arguments)
    if isinstance(arguments.get("packed"), list):
        arguments["packed"].clear()  # the list belongs to the caller
    del arguments
    gc.collect()
    assert all(array() is not None for array in arrays)
    junk = [np.full(size, 0x7F, np.uint8) for size in sizes for _ in range(50)]  # in memory that was freed
    assert (answer(made), [array().tobytes() for array in arrays]) == truth  # type: ignore[union-attr]
    del made, junk
    gc.collect()
    assert all(array() is None for array in arrays)  # kept no longer than the object lives


@pytest.mark.parametrize("name", KEEPERS)
def test_no_object_is_made_of_a_copy_that_nobody_keeps(name: str) -> None:
    make, given, _ = KEEPERS[name]
    for argument, array in arrays_in(given()):
        if array.ndim > 1:
            spread = np.repeat(array, 2, axis=-1)[..., ::2]
            arguments = given()
            arguments[argument] = [spread] if isinstance(arguments[argument], list) else spread
            with pytest.raises((TypeError, ValueError), match=r"incompatible function arguments|adjacent elements"):
                make(**arguments)


def test_points_may_have_gaps_between_them() -> None:
    wide = rows_of(N, D + 3)
    points, queries = wide[:, :D], rows_of(M, seed=1)
    found, known = (np.zeros((M, K), np.float32), np.zeros((M, K), np.int32)), []
    for rows in (points, np.ascontiguousarray(points)):
        packed = _native.PackedPoints(KERNEL, FORM, rows, 0, N)
        block = _native.RowBlock(KERNEL, FORM, queries, rows, K, ISA, None, False, False, 64, 0)
        block.open(0, M)
        block.screen(packed, 0, packed.groups)
        block.finish(*found, np.zeros(M, np.uint8))
        known.append([array.tobytes() for array in found])
    assert known[0] == known[1]
    for rows in (np.asfortranarray(points), np.lib.stride_tricks.as_strided(wide, (N, D), (4 * (D - 1), 4))):
        with pytest.raises(ValueError, match="points: expected rows one behind the other, with adjacent elements"):
            _native.PackedPoints(KERNEL, FORM, rows, 0, N)


def test_a_worker_and_a_search_keep_what_they_work_for() -> None:
    join, tree = join_of(), tree_of()
    worker = worker_of(join)
    out = found(M)
    search = _native.TreeSearch(tree, ISA, "euclidean", K, SAME, None, None, out["distances"], out["indices"])
    rounds = _native.TreeRounds(search, 0, M, 2)
    del join, tree
    gc.collect()
    worker.screen(PACKED, 0, PACKED.groups, False)
    search.run(0, M, 1 << 40)
    truth = brute(SAME, POINTS, K)
    assert out["indices"].tobytes() == truth.indices.tobytes()
    del search
    gc.collect()
    out["indices"][:] = -1
    rounds.run(1 << 40)
    assert out["indices"].tobytes() == truth.indices.tobytes()


def test_a_refused_call_leaves_an_object_as_it_was() -> None:
    queries, out = rows_of(M, seed=1), found(M)
    block = block_of(queries=queries)
    for begin, end in ((0, M + 1), (3, 2), (2, 2), (-1, 2)):
        with pytest.raises(ValueError, match="expected"):
            block.open(begin, end)
    with pytest.raises(ValueError, match="expected"):
        block.finish(**found(M + 1))
    block.finish(**out)
    truth = brute(queries, POINTS, K)
    assert out["indices"].tobytes() == truth.indices.tobytes()
    assert out["distances"].tobytes() == truth.distances.tobytes()


def test_a_node_that_was_not_cut_wants_every_range_counted_again() -> None:
    # Rows that the sample (every 61st) does not contain: the first pass misses the median.
    rows = np.zeros((61 * 40, 1), np.float32)
    rows[:, 0] = np.arange(len(rows)) % 61 + 1000
    rows[::61, 0] = np.arange(40)
    top = _native.tree_top(rows, 1, 2, np.zeros(1, np.int32), np.zeros(1, np.float32))
    top.count(0)
    top.count(1)
    assert not top.cut(0)
    with pytest.raises(ValueError, match="again for a node whose"):
        top.cut(0)
    top.count(0)
    with pytest.raises(ValueError, match="again for a node whose"):
        top.cut(0)
    top.count(1)
    assert top.cut(0)


def test_components_without_an_edge_do_not_join() -> None:
    forest = _native.Forest(**forest_arguments())
    with pytest.raises(ValueError, match=r"no edge; call walk\(\) for all leaves first"):
        forest.merge()
    assert forest.count == N
    forest.walk(0, 4, 1 << 40)
    while forest.count > 1:
        forest.walk(0, 4, 1 << 40)
        forest.merge()
    forest.merge()  # of one component: nothing to do
    assert forest.count == 1
