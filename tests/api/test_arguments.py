"""Every argument of every public function is either used, or refused by its name in a readable message."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tonari.core.process.caches import empty_caches
from tonari.core.results.neighbors import Neighbors
from tonari.graph.knn_graph import KNNGraph

X = checks.gaussian(20, 4)
FEW = X[:3]
GRAPH = tonari.knn_graph(X, 2)
OTHER = tonari.knn_graph(X[:9], 2)
INDEX = tonari.Index(X)
MASKED = np.ma.masked_array(X, mask=X > 1)
FOR_GRAPHS = tonari.plan(20, 20, 4, 2, method="nn-descent")
TREE = tonari.plan(20, 20, 4, 2, method="kdtree")

# Valid arguments of each public function, so that one argument at a time can be replaced.
GOOD: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "search": (tonari.search, {"queries": X, "points": X, "k": 2}),
    "farthest": (tonari.farthest, {"queries": X, "points": X, "k": 2}),
    "Index": (tonari.Index, {"points": X}),
    "Index.search": (INDEX.search, {"queries": X, "k": 2}),
    "Index.search_chunks": (lambda **given: list(INDEX.search_chunks(**given)), {"queries": X, "k": 2}),
    "Index.save": (INDEX.save, {"path": "index.npz"}),
    "radius_search": (tonari.radius_search, {"queries": X, "points": X, "radius": 1.0}),
    "radius_search, by similarity": (
        tonari.radius_search,
        {"queries": X, "points": X, "min_similarity": 0.5, "metric": "cosine"},
    ),
    "radius_count": (tonari.radius_count, {"queries": X, "points": X, "radius": 1.0}),
    "radius_graph": (tonari.radius_graph, {"points": X, "radius": 1.0}),
    "pairs": (tonari.pairs, {"points": X, "radius": 1.0}),
    "Index.radius_search": (INDEX.radius_search, {"queries": X, "radius": 1.0}),
    "Index.radius_count": (INDEX.radius_count, {"queries": X, "radius": 1.0}),
    "Index.radius_chunks": (lambda **given: list(INDEX.radius_chunks(**given)), {"queries": X, "radius": 1.0}),
    "knn_graph": (tonari.knn_graph, {"points": X, "k": 2}),
    "kth_distance": (tonari.kth_distance, {"points": X, "k": 2}),
    "verify": (
        tonari.verify,
        {"queries": X, "points": X, "indices": GRAPH.indices, "distances": GRAPH.distances},
    ),
    "mutual_neighbors": (tonari.mutual_neighbors, {"points_a": X, "points_b": X[:9], "k": 2}),
    "mutual_reachability_tree": (tonari.mutual_reachability_tree, {"points": X, "min_samples": 3}),
    "knn_graph, approximate": (tonari.knn_graph, {"points": X, "k": 2, "method": "nn-descent"}),
    "KNNGraph": (
        KNNGraph,
        {"indices": GRAPH.indices, "distances": GRAPH.distances, "metric": "euclidean", "method": "exact"},
    ),
    "KNNGraph.recall": (GRAPH.recall, {"points": X}),
    "KNNGraph.add, one by one": (GRAPH.add, {"points": X, "new_points": X[:2]}),
    "KNNGraph.add, by merging": (GRAPH.add, {"points": X, "new_points": X[:9]}),
    "KNNGraph.remove": (GRAPH.remove, {"points": X, "ids": [3]}),
    "KNNGraph.replace": (GRAPH.replace, {"points": X, "ids": [3], "rows": X[:1]}),
    "KNNGraph.reverse_neighbors": (GRAPH.reverse_neighbors, {}),
    "KNNGraph.to_csr": (GRAPH.to_csr, {}),
    "KNNGraph.trim": (GRAPH.trim, {"k": 2}),
    "KNNGraph.subset": (GRAPH.subset, {"rows": [1, 0]}),
    "KNNGraph.permute": (GRAPH.permute, {"order": list(range(20))}),
    "KNNGraph.connected_components": (GRAPH.connected_components, {}),
    "KNNGraph.occurrence": (GRAPH.occurrence, {}),
    "KNNGraph.overlap": (GRAPH.overlap, {"other": GRAPH}),
    "merge": (tonari.merge, {"graph_a": GRAPH, "graph_b": OTHER, "points_a": X, "points_b": X[:9]}),
    "merge_neighbors": (
        tonari.merge_neighbors,
        {"parts": [Neighbors(GRAPH.distances, GRAPH.indices)], "offsets": [0]},
    ),
    "plan": (tonari.plan, {"n": 20, "m": 20, "d": 4, "k": 2}),
    "plan, approximate": (tonari.plan, {"n": 20, "m": 20, "d": 4, "k": 2, "method": "nn-descent"}),
    "warm": (tonari.warm, {"n": 20, "m": 20, "d": 4, "k": 2, "device": "cpu"}),
    "explain": (tonari.explain, {"queries": X, "points": X, "k": 2}),
    "select_k": (tonari.select_k, {"values": X, "k": 2}),
    "search_to_file": (tonari.search_to_file, {"queries": X, "points": X, "k": 2, "out": "found.ibin"}),
    "build_graph": (tonari.build_graph, {"source": X, "k": 2, "out": "found"}),
    "build_graph, approximate": (
        tonari.build_graph,
        {"source": X, "k": 2, "out": "found", "method": "clusters"},
    ),
    "build_neighbors": (tonari.build_neighbors, {"source": X, "queries": X, "k": 2, "out": "found"}),
}

WHOLE = (2.5, "5", True, math.nan, math.inf)
ROWS = (None, 5, "points.npy", MASKED, X[0], X.astype(complex))
HUGE = 10**400
POINTS = (None, 5, "all", [2.5], [[1]], [-1], [1, 1], [HUGE], [[1], 2], np.ma.masked_array([1, 2], mask=[True, False]))

# Values that no function accepts for the argument of this name.
BAD: dict[str, tuple[Any, ...]] = {
    "queries": ROWS,
    "points": ROWS,
    "new_points": ROWS,
    "points_a": ROWS,
    "points_b": ROWS,
    "values": (None, 5, MASKED, X[0], X.astype(complex)),
    "k": (*WHOLE, None, 0, -1, HUGE),
    "radius": (None, "5", True, math.nan, -1.0, [1.0, 2.0], [[1.0]], [[1], 2], MASKED[:, 0]),
    "min_samples": (*WHOLE, None, 0, -1, 21, HUGE),
    "min_similarity": ("5", True, math.nan, math.inf, 0.5, [1.0, 2.0], "x"),
    "closed": ("yes", 1, None),
    "codes": (None, 5, "int9"),
    "copy": ("yes", 1, None),
    "max_neighbors": (*WHOLE, 0, -1, HUGE),
    "n": (*WHOLE, None, 0, -1, HUGE),
    "m": (*WHOLE, None, 0, -1, HUGE),
    "d": (*WHOLE, None, 0, -1, HUGE, 1e30),
    "metric": (None, 5, ["l1"], "euclidian"),
    "weights": (5, "a", [True] * 4, [[1], 2], [[1.0] * 4], [-1.0] * 4, [math.nan] * 4, [0] * 4, [2, 1], MASKED[:, 0]),
    **dict.fromkeys(("VI", "covariance", "V"), (5, "a", np.eye(4), [1.0] * 4)),  # arguments of other metrics
    "transform": (5, "a", [1.0] * 4, [[1], [1, 2]], [[1.0]] * 3, [[0.0]] * 4, [[math.nan]] * 4, [[None]] * 4, MASKED),
    "method": (None, 5, ["exact"], "hnsw"),
    "device": (None, 5, [], "tpu", ["cpu"]),
    "ties": (None, 5, "last", True, ["all"]),
    "exclude_within": (*WHOLE, -1, HUGE),
    "where": (
        5,
        "all",
        X[:, 0],
        [1] * 20,
        [True] * 19,
        MASKED[:, 0] > 0,
        [[True] * 20, [True]],
    ),
    "exclude": (
        5,
        "none",
        {},
        [[1]],
        [[20]] * 20,
        [["a"]] * 20,
        [[True]] * 20,
        ([0], [0]),
        ([0], [0], [0]),
        [None] * 20,
    ),
    "query_groups": (5, "a", [1] * 20, [0.5] * 20, [[1], 2]),
    "point_groups": (5, "a", [1] * 20, [0.5] * 20, [[1], 2]),
    "groups": ("same", "mine", 5, True, ["other"]),
    "batch": (
        5,
        "a",
        [1] * 19,
        [0.5] * 20,
        [True] * 20,
        [[1], 2],
        MASKED[:, 0] > 0,
        [HUGE] * 20,
    ),
    "differentiable": ("yes", 1, None, True),  # NumPy arrays
    "threads": (*WHOLE, 0, -1),
    "memory": (2.5, True, [], "5", "2 elephants", 0, -1, HUGE, "9" * 400 + "GB", "9" * 5000 + "GB"),
    "progress": ("yes", 1, 0, [], 0.5),
    "plan": ("x", 5, True, {}, FOR_GRAPHS, TREE),
    "rows": (*WHOLE, 0, -1),
    "chunk_rows": (*WHOLE, 0, -1),
    "resume": ("yes", 1, None),
    "overwrite": ("yes", 1, None),
    "recall": (True, "x", math.nan, 0, 1, 5),
    "seed": (2.5, "a", True, -1),
    "start": ("x", 5, X, []),
    "update": ("push", 5, X, [], "gnnd"),
    "filters": (None, 5, "where", ["groups"], {"batch": 1}, [[]]),
    "include_self": (2, 0, "no", []),
    "ids": (None, "3", [2.5], [[1]], [-1], [20], [1, 1], [HUGE], np.ma.masked_array([1, 2], mask=[True, False])),
    "indices": (None, GRAPH.indices.tolist(), MASKED, np.ma.masked_equal(GRAPH.indices, GRAPH.indices[0, 0])),
    "distances": (None, GRAPH.distances.tolist(), np.ma.masked_equal(GRAPH.distances, GRAPH.distances[0, 0])),
    "report": ("fine", {}),
    "record": ("fine", {}),
    "run": ("yes", 1, None),
    "sample": (*WHOLE, None, 0, -1),
    "order": (None, "row"),
    "symmetric": ("max", True, 1),
    "dtype": ("float16", "int32", "flot32", object),
    "graph_a": (None, X, "a.npz"),
    "graph_b": (None, X, "b.npz"),
    "other": (None, X, "b.npz"),
    "parts": (None, 5, [None], [(GRAPH.distances, GRAPH.indices)], [Neighbors(MASKED, GRAPH.indices)]),
    "offsets": (None, 5, [2.5], [True], ["0"], [-1], [HUGE]),
    "self_join": (3, 0, "no", None),
    "largest": ("no", 1, None),
    "sorted": ("no", 1, None),
    "lengths": (5, "3", X[0], np.ma.masked_array(np.full(20, 3), mask=np.arange(20) == 7)),
    "nan": (None, "first"),
    "counters": (5, {}),
    "path": (None, 5, "missing/index.npz"),
    "out": ("found.txt", "missing/found.ibin"),
    "source": (None, 5, MASKED, X[0], X.astype(complex), [], [None]),
    "executor": (None, 5, "dask", []),
    # arguments in **overrides and **options
    "resident": ("no", 1, None),
    "adaptive": ("no", 1),
    "precisions": (5, "int8", ["float8"]),
    "capacity": WHOLE,
    "query_block": WHOLE,
    "point_chunk": WHOLE,
    "isa": (5, "sse9"),
    "tile": (3,),
}
EXTRA = {
    "plan": ("resident", "adaptive", "precisions", "capacity", "query_block", "point_chunk", "isa", "tile"),
    "select_k": ("tile",),
}
BUILDS = ("build_graph", "build_graph, approximate", "build_neighbors")
# Arguments with the same name but another meaning.
INSTEAD: dict[tuple[str, str], tuple[Any, ...]] = {
    ("KNNGraph", "method"): (None, 5, ["exact"]),
    ("KNNGraph", "include_self"): (2, 0, "no", None),
    ("KNNGraph", "weights"): (5, "a", [True] * 4, [[1], 2], [-1.0] * 4, [0] * 4, MASKED[:, 0]),
    ("KNNGraph", "transform"): (5, "a", [1.0] * 4, [[1], [1, 2]], [[0.0]] * 4, [[math.nan]] * 4, [[None]] * 4, MASKED),
    ("KNNGraph.to_csr", "include_self"): (2, 0, "no", []),
    ("KNNGraph.subset", "rows"): (*POINTS, [], [20]),
    ("KNNGraph.permute", "order"): (*POINTS, [0], [20]),
    ("KNNGraph.replace", "rows"): (
        None,
        5,
        "points.npy",
        np.ma.masked_array(X[:1], mask=True),
        X[0],
        X[:2],
        X[:1].astype(complex),
    ),
    ("mutual_neighbors", "method"): (None, 5, "hnsw", "nn-descent"),
    ("Index", "method"): (None, 5, "hnsw", "nn-descent"),
    ("mutual_reachability_tree", "method"): (None, 5, "hnsw", "nn-descent"),
    ("verify", "queries"): (5, MASKED, X[0], X.astype(complex)),
    ("verify", "indices"): (
        None,
        5,
        X,
        [[0.5]] * 20,
        [[0]] * 19,
        np.ma.masked_equal(GRAPH.indices, GRAPH.indices[0, 0]),
    ),
    ("verify", "distances"): (5, "a", X, [[None, 1]] * 20, np.ma.masked_equal(GRAPH.distances, GRAPH.distances[0, 0])),
    ("search", "method"): (None, 5, "hnsw", "nn-descent"),
    ("search_to_file", "method"): (5, "hnsw", "nn-descent"),
    ("search_to_file", "metric"): (5, "euclidian"),
    ("search_to_file", "device"): (5, [], "tpu"),
    ("search_to_file", "queries"): (None, 5, X[0], MASKED, X.astype(complex)),
    ("search_to_file", "points"): (None, 5, X[0], MASKED, X.astype(complex)),
    ("radius_search, by similarity", "weights"): (),  # refused as Unsupported: cosine has none
    ("radius_search, by similarity", "radius"): (1.0, [1.0]),
    ("radius_search, by similarity", "min_similarity"): (None, "5", True, math.nan, math.inf, [1.0, 2.0], "x"),
    ("Index.radius_chunks", "queries"): (None, 5, X[0], MASKED, X.astype(complex)),
    ("Index.search_chunks", "queries"): (None, 5, X[0], MASKED, X.astype(complex)),
    **{(verb, "out"): (None, 5, "missing/found") for verb in BUILDS},
    **{(verb, "method"): (None, 5, ["exact"], "hnsw", "kdtree") for verb in BUILDS},
    **{(verb, "seed"): (None, 2.5, "a", True, -1) for verb in BUILDS},
    ("build_neighbors", "queries"): (None, 5, MASKED, X[0], X.astype(complex)),
    ("knn_graph", "plan"): ("x", 5, {}, tonari.plan(20, 20, 4, 3)),
    ("search", "plan"): ("x", 5, {}, FOR_GRAPHS, tonari.plan(20, 20, 4, 3)),
    ("knn_graph, approximate", "plan"): ("x", 5, {}, TREE),
    ("plan, approximate", "self_join"): (3, 0, "no", None),
    ("explain", "queries"): (5, "points.npy", MASKED, X[0], X.astype(complex)),
    ("warm", "dtype"): ("flot32", "int32", object, "float128"),
    ("plan", "dtype"): ("flot32", "int32", object, "float128"),
    ("plan, approximate", "dtype"): ("flot32", "int32", object),
    ("merge_neighbors", "k"): (*WHOLE, 0, -1, 3, HUGE),
}
UNBOUND = ("self", "overrides", "options")


def cases() -> list[Any]:
    found = []
    for verb, (call, good) in GOOD.items():
        streams = {"Index.search_chunks": INDEX.search_chunks, "Index.radius_chunks": INDEX.radius_chunks}
        function = streams.get(verb, call)
        names = [name for name in inspect.signature(function).parameters if name not in UNBOUND]
        for name in [*names, *EXTRA.get(verb, ())]:
            values = INSTEAD.get((verb, name), BAD[name])  # a new argument has to be added to the table
            found.append(pytest.param(call, good, name, values, id=f"{verb}-{name}"))
    return found


def refusal(call: Callable[..., Any], given: dict[str, Any]) -> Exception:
    try:
        call(**given)
    except (TypeError, ValueError, OSError) as error:
        return error
    pytest.fail(f"{given} are accepted")


@pytest.mark.parametrize(("call", "good", "name", "values"), cases())
def test_no_argument_is_ignored_or_fails_in_raw_words(
    call: Callable[..., Any],
    good: dict[str, Any],
    name: str,
    values: tuple[Any, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    named = {
        "dtype": "data type",
        "out": "found",
        "path": "index",
        "plan": "method",
        "parts": "part 0",
        "isa": "instruction set",
    }
    for value in values:
        empty_caches()  # no refusal depends on those before it
        refused = refusal(call, good | {name: value})
        words = str(refused)
        assert name in words or named.get(name, name) in words, (value, words)
        assert len(words) < 400, words
        assert type(refused) in (TypeError, ValueError, FileNotFoundError), value
        assert not list(tmp_path.iterdir()), value


@pytest.mark.parametrize("verb", GOOD)
def test_the_arguments_that_are_replaced_are_good(verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, good = GOOD[verb]
    call(**good)


# Records, and functions whose only argument is a directory.
NOT_HERE = (
    "Explanation",
    "Neighbors",
    "Pairs",
    "Plan",
    "RadiusNeighbors",
    "Verification",
    "recording",  # has no data arguments
    "Selection",
    "SpanningTree",
    "open_neighbors",
)


def test_every_public_function_is_in_the_table() -> None:
    public = {name for name in tonari.__all__ if name not in NOT_HERE}
    assert public <= set(GOOD), "put the new function into GOOD"
    methods = {
        f"{owner}.{name}" for owner, cls in (("Index", tonari.Index), ("KNNGraph", KNNGraph)) for name in vars(cls)
    }
    taken = {name for name in methods if not name.partition(".")[2].startswith("_") and callable_of(name)}
    known = {verb.partition(",")[0] for verb in GOOD} | {"KNNGraph.save", "KNNGraph.load", "KNNGraph.to_numpy"}
    assert taken <= known, "put the new method into GOOD"


def callable_of(name: str) -> bool:
    owner, _, member = name.partition(".")
    return inspect.isfunction(inspect.getattr_static(getattr(tonari, owner), member))


@pytest.mark.parametrize(
    "good",
    [
        lambda: tonari.knn_graph(X, 2, include_self=np.True_, progress=np.False_),
        lambda: tonari.plan(
            np.int64(20), np.int32(20), np.uint8(4), np.int64(2), self_join=np.False_, resident=np.True_
        ),
        lambda: GRAPH.recall(X, sample=np.int64(5), seed=np.uint32(3)),
        lambda: tonari.search(X, X, 2, memory="8 TiB"),
        lambda: tonari.select_k(X, 2, lengths=np.ma.masked_array(np.full(20, 3), mask=np.zeros(20, bool))),
        lambda: KNNGraph(np.ma.masked_array(GRAPH.indices), np.asmatrix(GRAPH.distances), "euclidean", "exact"),
    ],
)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_what_numpy_calls_a_number_a_flag_or_an_array_is_taken(good: Callable[[], Any]) -> None:
    made = good()
    if isinstance(made, KNNGraph):
        assert type(made.indices) is type(made.distances) is np.ndarray


def test_a_plan_has_plain_numbers() -> None:
    made = tonari.plan(np.int64(20), np.int32(20), np.uint8(4), np.int64(2))
    assert {type(getattr(made, name)) for name in ("n", "m", "d", "k")} == {int}
