"""Names and arguments that users of other libraries try are answered with the corresponding name of tonari."""

from __future__ import annotations

import copy
import importlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers.devices import needs_torch
from tonari.core.hints import unexpected

X = np.random.default_rng(0).standard_normal((30, 4)).astype(np.float32)

ATTRIBUTES = [
    ("tonari", "load", "KNNGraph.load"),
    ("tonari", "save", "tonari.io.write"),
    ("tonari", "kneighbors", "tonari.search"),
    ("tonari.io", "save", "tonari.io.write"),
    ("tonari.compat.scipy", "cdist", "scipy.spatial.distance"),
    ("tonari.compat.faiss", "METRIC_NaNEuclidean", "metric='nan_euclidean'"),
    ("tonari.estimators", "OPTICS", "mutual_reachability_tree"),
    ("tonari.estimators", "HDBSCAN", r"clusters\(min_cluster_size\)"),
    ("tonari.compat.faiss", "write_index", r"tonari\.Index\(points\)\.save"),
    ("tonari.compat.faiss", "read_index", r"tonari\.Index\.load"),
    ("tonari.compat.faiss", "METRIC_Lp", "power:3"),
    ("tonari.compat.faiss", "METRIC_Jaccard", "metric='jaccard'"),
    ("tonari.compat.faiss", "IDSelectorBatch", "where="),
    ("tonari.compat.faiss", "IndexIVFPQ", "IndexFlat"),
    ("tonari.compat.scipy", "distance_matrix", "scipy.spatial.distance_matrix"),
    ("tonari.compat.astropy", "match_coordinates_3d", "tonari.search"),
    ("tonari.compat.astropy", "SkyCoord", "astropy.coordinates.SkyCoord"),
    ("tonari", "match_coordinates_sky", "tonari.compat.astropy"),
    ("tonari.compat.pyg", "fps", "torch_cluster.fps"),
    ("tonari.compat.pyg", "DynamicEdgeConv", "EdgeConv"),
    ("tonari.compat.pytorch3d", "ball_query", "tonari.radius_search"),
    ("tonari.compat.pytorch3d", "chamfer_distance", "knn_points"),
    ("tonari.compat.sentence_transformers", "paraphrase_mining", "paraphrase_mining_embeddings"),
    ("tonari.compat.sentence_transformers", "cos_sim", "semantic_search"),
]


@pytest.mark.parametrize(("module", "name", "words"), ATTRIBUTES)
def test_modules(module: str, name: str, words: str) -> None:
    needed = {"tonari.estimators": "sklearn", "tonari.compat.pyg": "torch", "tonari.compat.pytorch3d": "torch"}
    if module in needed:
        pytest.importorskip(needed[module])
    home = importlib.import_module(module)
    with pytest.raises(AttributeError, match=rf"module '{module}' has no attribute '{name}'; .*{words}"):
        getattr(home, name)
    assert not hasattr(home, name)
    for other in ("nothing", "__wrapped__", "_ipython_display_"):
        with pytest.raises(AttributeError, match=rf"module '{module}' has no attribute '{other}'$"):
            getattr(home, other)


def _made() -> dict[str, Any]:
    from tonari.compat import faiss, scipy

    made = {"Index": tonari.Index(X), "KNNGraph": tonari.knn_graph(X, 3), "IndexFlat": faiss.IndexFlatL2(4)}
    made["IndexIDMap"] = faiss.IndexIDMap(faiss.IndexFlatL2(4))
    return made | {"KDTree": scipy.KDTree(X), "cKDTree": scipy.cKDTree(X)}


@pytest.mark.parametrize(
    ("owner", "name", "words"),
    [
        ("Index", "query", r"Index\.search"),
        ("Index", "kneighbors", r"Index\.search"),
        ("Index", "radius_neighbors", r"Index\.radius_search"),
        ("KNNGraph", "query", r"tonari\.Index"),
        ("KNNGraph", "kneighbors", r"graph\.distances"),
        ("IndexFlat", "add_with_ids", "IndexIDMap"),
        ("IndexIDMap", "reconstruct", "IndexIDMap2"),
        ("cKDTree", "query_radius", "query_ball_point"),
        ("KDTree", "query_radius", "query_ball_point"),
        ("KDTree", "kneighbors", r"query\(x, k\)"),
    ],
)
def test_objects(owner: str, name: str, words: str) -> None:
    one = _made()[owner]
    with pytest.raises(AttributeError, match=rf"has no attribute '{name}'; .*{words}"):
        getattr(one, name)
    assert not hasattr(one, name)
    for probe in ("__array_interface__", "_repr_mimebundle_", "_ipython_canary_method_should_not_exist_", "nothing"):
        with pytest.raises(AttributeError, match=rf"has no attribute '{probe}'$"):
            getattr(one, probe)
    for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert type(again) is type(one)


def test_the_estimator() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone

    from tonari.estimators import NearestNeighbors

    for one in (NearestNeighbors(), clone(NearestNeighbors())):
        with pytest.raises(AttributeError, match=r"'query_radius'; use radius_neighbors"):
            one.query_radius  # noqa: B018
    with pytest.raises(ValueError, match=r"metric_params=.*pass p=0\.5"):
        NearestNeighbors(metric_params={"p": 0.5}).fit(X)
    for metric in ("hamming", "jaccard"):
        with pytest.raises(ValueError, match=rf"rows of bits.*tonari\.Index\(bits, metric='{metric}'\)"):
            NearestNeighbors(metric=metric).fit(X > 0)


CALLS: dict[str, tuple[Callable[..., Any], type[Exception], str]] = {
    "knn_graph n_neighbors": (lambda: tonari.knn_graph(X, n_neighbors=3), TypeError, "'n_neighbors'; .*k="),
    "search n_jobs": (lambda: tonari.search(X, X, 2, n_jobs=2), TypeError, "'n_jobs'; .*threads="),
    "search top_k": (lambda: tonari.search(X, X, top_k=2), TypeError, "'top_k'; .*k="),
    "search min_similarity": (lambda: tonari.search(X, X, 2, min_similarity=0.5), TypeError, "radius_search and pairs"),
    "search radius": (lambda: tonari.search(X, X, 2, radius=0.5), TypeError, "tonari.radius_search"),
    "pairs threshold": (lambda: tonari.pairs(X, threshold=0.5), TypeError, "radius= or min_similarity="),
    "tree min_cluster_size": (
        lambda: tonari.mutual_reachability_tree(X, 3, min_cluster_size=5),  # type: ignore[call-arg]
        TypeError,
        r"\.clusters\(min_cluster_size\)",
    ),
    "search p": (lambda: tonari.search(X, X, 2, p=3), TypeError, "metric='minkowski:3'"),
    "search w": (lambda: tonari.search(X, X, 2, w=[1, 2]), TypeError, "weights="),
    "search metric_params": (lambda: tonari.search(X, X, 2, metric_params={}), TypeError, "VI= and V="),
    "Index n_jobs": (lambda: tonari.Index(X, n_jobs=2).search(X, 1), TypeError, "n_jobs: .*threads="),
    "Index.search n_jobs": (lambda: tonari.Index(X).search(X, 2, n_jobs=2), TypeError, "threads="),
    "radius_search k": (lambda: tonari.radius_search(X, X, 1.0, k=2), TypeError, "max_neighbors="),
    "Index.search exclude_within": (lambda: tonari.Index(X).search(X, 2, exclude_within=1), TypeError, "exclude="),
    "Index.search ties": (
        lambda: tonari.Index(X).search(X, 2, ties="all"),
        TypeError,
        r"radius_search\(queries, radius\)",
    ),
    "Index.radius_search exclude_within": (
        lambda: tonari.Index(X).radius_search(X, 1.0, exclude_within=1),
        TypeError,
        "exclude=",
    ),
    "Index.radius_count exclude_within": (
        lambda: tonari.Index(X).radius_count(X, 1.0, exclude_within=1),
        TypeError,
        "exclude=",
    ),
    "kth_distance exclude_within": (lambda: tonari.kth_distance(X, 2, exclude_within=1), TypeError, "have windows"),
    "mutual_neighbors exclude_within": (
        lambda: tonari.mutual_neighbors(X, X, 2, exclude_within=1),
        TypeError,
        "have windows",
    ),
    "farthest ties": (
        lambda: tonari.farthest(X, X, 2, ties="all"),
        TypeError,
        "tonari.search and knn_graph take ties=",
    ),
    "mahalanobis": (lambda: tonari.search(X, X, 2, metric="mahalanobis"), ValueError, "pass VI=, .*covariance="),
    "seuclidean": (lambda: tonari.Index(X, metric="seuclidean"), ValueError, "pass V="),
    "braycurtis": (lambda: tonari.pairs(abs(X), 1.0, metric="braycurtis"), ValueError, "divide each row by its sum"),
    "dice": (lambda: tonari.knn_graph(X, 2, metric="dice"), ValueError, "jaccard"),
    "precomputed": (lambda: tonari.knn_graph(X, 2, metric="precomputed"), ValueError, r"expected \(n, n\)"),
    "minkowski": (lambda: tonari.search(X, X, 2, metric="minkowski"), ValueError, "minkowski:p"),
    "callable": (lambda: tonari.search(X, X, 2, metric=lambda a, b: 0), ValueError, "lambda a, B: numpy.array"),
    "callable of an Index": (
        lambda: tonari.Index(X, metric=lambda a, b: 0),  # type: ignore[arg-type]
        ValueError,
        "metric='function:<lambda>' is a function, which tonari.search, .* take on the CPU",
    ),
    "None": (lambda: tonari.search([[None, 2]], X, 1), TypeError, "rows of numbers"),
    "path": (lambda: tonari.knn_graph("points.npy", 3), TypeError, "tonari.io.read"),
    "table": (
        lambda: tonari.search(np.zeros(5, [("RA", "f8"), ("DEC", "f8")]), X, 1),
        TypeError,
        r'numpy.stack\(\[t\["DEC"\], t\["RA"\]\], 1\)',
    ),
    "other table": (lambda: tonari.Index(np.zeros(5, [("a", "f8")])), TypeError, "structured_to_unstructured"),
    "complex": (lambda: tonari.Index(X.astype("c8")), TypeError, "real and imaginary"),
    "exclude flat": (lambda: tonari.search(X, X, 2, exclude=np.arange(30)), TypeError, r"ids\[:, None\]"),
    "exclude set": (lambda: tonari.search(X, X, 2, exclude={1, 2}), TypeError, "list"),
    "exclude sets": (lambda: tonari.search(X, X, 2, exclude=[{1}] * 30), TypeError, r"list\(row\) for row"),
    "exclude floats": (lambda: tonari.search(X, X, 2, exclude=[[0.5]] * 30), TypeError, "only whole numbers$"),
}


VERBS: dict[str, Callable[..., Any]] = {
    "search": lambda **given: tonari.search(X, X, 2, **given),
    "search_to_file": lambda **given: tonari.search_to_file(X, X, 2, "absent.ibin", **given),
    "Index": lambda **given: tonari.Index(X, **given),
    "knn_graph": lambda **given: tonari.knn_graph(X, 2, **given),
    "kth_distance": lambda **given: tonari.kth_distance(X, 2, **given),
    "radius_search": lambda **given: tonari.radius_search(X, X, 1.0, **given),
    "radius_count": lambda **given: tonari.radius_count(X, X, 1.0, **given),
    "radius_graph": lambda **given: tonari.radius_graph(X, 1.0, **given),
    "pairs": lambda **given: tonari.pairs(X, 1.0, **given),
    "mutual_reachability_tree": lambda **given: tonari.mutual_reachability_tree(X, min_samples=2, **given),
    "build_graph": lambda **given: tonari.build_graph(X, 2, "absent", **given),
    "build_neighbors": lambda **given: tonari.build_neighbors(X, X, 2, "absent", **given),
    "explain": lambda **given: tonari.explain((30, 4), (30, 4), 2, **given),
}


@pytest.mark.parametrize("given", [{"metric": "minkowski", "p": 3}, {"p": 3}, {"metric": "minkowski"}], ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_p_is_part_of_a_name(verb: str, given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises((TypeError, ValueError), match="metric='minkowski:3'"):
        VERBS[verb](**given)
    assert not list(tmp_path.iterdir())


def test_an_argument_that_the_verb_has_is_not_explained() -> None:
    """The error then comes from a call inside the function."""
    error = TypeError("inner() got an unexpected keyword argument 'k'")
    assert unexpected(error, "search", ("queries", "points", "k")) is None
    assert unexpected(error, "radius_search", ("queries", "points", "radius")) is not None
    assert unexpected(TypeError("another"), "search", ()) is None


def test_the_metric_of_an_index() -> None:
    with pytest.raises(TypeError, match=r"search\(\) got .* 'metric'; the metric is that of the Index"):
        tonari.Index(X).search(X, 2, metric="l1")  # type: ignore[call-arg]


def test_the_radius_that_is_named_for_ties_finds_all_ties() -> None:
    x = np.random.default_rng(0).integers(0, 3, (60, 3)).astype(np.float32)
    index = tonari.Index(x)
    found = index.radius_search(x, index.search(x, 4).distances[:, -1])
    ties = tonari.search(x, x, 4, ties="all")
    assert all(np.array_equal(*parts) for parts in zip(found, ties, strict=True))


@pytest.mark.parametrize("call", CALLS)
def test_calls(call: str) -> None:
    ask, kind, words = CALLS[call]
    with pytest.raises(kind, match=words):
        ask()


def test_tables() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1.0, 2.0], "name": ["a", "b"]})
    with pytest.raises(TypeError, match=r"column 'name' is (object|str)"):
        tonari.Index(frame)
    with pytest.raises(TypeError, match="column 'y' is Float32"):
        tonari.Index(pandas.DataFrame({"x": [1.0, 2.0], "y": pandas.array([1.0, None], "Float32")}))


def test_tables_of_pyarrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    named = {"x": [1.0, 2.0], "name": ["a", "b"]}
    listed = {"v": pyarrow.array([[1.0, 2.0], [3.0, 4.0]]), "x": [1.0, 2.0]}
    for columns, words in (
        (named, r"drop_columns\(\['name'\]\).*column 'name' is string"),
        (listed, r"numpy.stack\(table\['v'\]"),
        ({"x": [1.0, 2.0]}, r"use table\.to_pandas\(\)\.to_numpy\(\)$"),
    ):
        for table in (pyarrow.table(columns), pyarrow.RecordBatch.from_pydict(columns)):
            for ask in (lambda table=table: tonari.Index(table), lambda table=table: tonari.search(table, X, 1)):
                with pytest.raises(TypeError, match=words):
                    ask()


def test_lazy_frames() -> None:
    polars = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"LazyFrame.*\.collect\(\)"):
        tonari.Index(polars.LazyFrame({"x": [1.0]}))
    with pytest.raises(TypeError, match="column 'name' is String"):
        tonari.Index(polars.DataFrame({"x": [1.0], "name": ["a"]}))


@needs_torch
def test_tensors() -> None:
    import torch

    cases = {
        "nested tensor": torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged),
        "view_as_real": torch.zeros((5, 2), dtype=torch.complex64),
        "holds no values": torch.zeros((5, 2), device="meta"),
    }
    for words, x in cases.items():
        with pytest.raises((TypeError, ValueError), match=words):
            tonari.Index(x)
    negated = torch.conj(torch.randn(9, 2, dtype=torch.complex64)).imag
    assert negated.is_neg()
    assert tonari.search(negated, negated, 1).indices.ravel().tolist() == list(range(9))
