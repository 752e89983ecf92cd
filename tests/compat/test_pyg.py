"""`tonari.compat.pyg`: edges compared with the reference and, if it is installed, with torch_cluster."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.helpers import checks, consumers
from tests.helpers.devices import HAS_TORCH, needs_torch, on_cuda
from tests.helpers.refusals import assert_refused_by_name
from tonari.api import graphs, radius, searching
from tonari.metrics.reference import brute

if HAS_TORCH:
    import torch

    from tonari.compat import pyg

pytestmark = needs_torch
everywhere = pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_cuda])])

NAMES = ("gaussian", "duplicates", "all_equal", "offset_1e4", "tight_far_clusters")
CLOUDS = {
    "one": lambda n: np.zeros(n, np.int64),
    "sorted": lambda n: np.arange(n) * 3 // n,
    "mixed": lambda n: np.arange(n) % 3,
    "a lonely point": lambda n: np.minimum(np.arange(n), 1) * 4,
}


def reference(
    x: Any, y: Any, groups_x: Any, groups_y: Any, *, k: int | None = None, r: float = math.inf, cosine: bool = False
) -> list[tuple[int, int]]:
    """Return pairs of a row of y and a row of x, nearest first, by the reference in each cloud."""
    pairs = []
    for i in range(len(y)):
        near = np.flatnonzero(groups_x == groups_y[i])
        if len(near):
            found = brute(y[i : i + 1], x[near], len(near), "cosine" if cosine else "euclidean")
            ids = near[found.indices[0][found.distances[0] < r]]
            pairs += [(i, int(j)) for j in ids[:k]]
    return pairs


def pairs_of(edges: Any) -> list[tuple[int, int]]:
    assert edges.dtype == torch.int64
    assert edges.shape[0] == edges.dim() == 2
    assert edges.is_contiguous()
    return list(map(tuple, edges.T.tolist()))


def others(pairs: list[tuple[int, int]], most: int | None = None) -> list[tuple[int, int]]:
    """Return the pairs of different rows, with a limit on the pairs of each row."""
    kept: list[tuple[int, int]] = []
    for i in sorted({i for i, _ in pairs}):
        kept += [(a, b) for a, b in pairs if a == i != b][:most]
    return kept


@everywhere
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("clouds", CLOUDS)
@pytest.mark.parametrize("k", [1, 4, 30])
@pytest.mark.parametrize("name", NAMES)
def test_the_nearest_are_those_of_the_reference(name: str, k: int, clouds: str, cosine: bool, device: str) -> None:
    x, y = checks.HOSTILE[name](20, 3, 0), checks.HOSTILE[name](9, 3, 1)
    groups_x, groups_y = CLOUDS[clouds](20), CLOUDS[clouds](9)
    to = [torch.from_numpy(part).to(device) for part in (x, y, groups_x, groups_y)]
    expected = reference(x, y, groups_x, groups_y, k=k, cosine=cosine)
    found = pyg.knn(to[0], to[1], k, to[2], to[3], cosine=cosine)
    assert found.device == to[0].device
    assert pairs_of(found) == expected
    if clouds == "one":
        assert pairs_of(pyg.knn(to[0], to[1], k, cosine=cosine)) == expected

    pairs = reference(x, x, groups_x, groups_x, cosine=cosine)
    graph = pyg.knn_graph(to[0], k, to[2], cosine=cosine, flow="target_to_source")
    assert pairs_of(graph) == others(pairs, k)
    turned = pyg.knn_graph(to[0], k, to[2], cosine=cosine)
    assert torch.equal(turned, graph.flip(0))
    own = [(i, i) for i in range(20)]
    looped = pairs_of(pyg.knn_graph(to[0], k, to[2], loop=True, cosine=cosine, flow="target_to_source"))
    kept = others(pairs, k - 1) if k > 1 else []
    assert looped == sorted(own + kept, key=lambda pair: (pair[0], pair[1] != pair[0]))

    nearest = pyg.nearest(to[1], to[0], to[3], to[2])
    assert nearest.dtype == torch.int64
    if not cosine:
        assert nearest.tolist() == [j for _, j in reference(x, y, groups_x, groups_y, k=1)]


@everywhere
@pytest.mark.parametrize("most", [1, 3, 32, None])
@pytest.mark.parametrize("clouds", CLOUDS)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_within_a_radius_is_that_of_the_reference(
    name: str, clouds: str, most: int | None, device: str
) -> None:
    x, y = checks.HOSTILE[name](40, 2, 0), checks.HOSTILE[name](9, 2, 1)
    groups_x, groups_y = CLOUDS[clouds](40), CLOUDS[clouds](9)
    to = [torch.from_numpy(part).to(device) for part in (x, y, groups_x, groups_y)]
    for r in (1.0, math.inf):
        found = pyg.radius(to[0], to[1], r, to[2], to[3], max_num_neighbors=most)
        assert found.device == to[0].device
        assert pairs_of(found) == reference(x, y, groups_x, groups_y, k=most, r=r)
        pairs = reference(x, x, groups_x, groups_x, r=r)
        graph = pyg.radius_graph(to[0], r, to[2], max_num_neighbors=most, flow="target_to_source")
        assert pairs_of(graph) == others(pairs, most)
        assert torch.equal(pyg.radius_graph(to[0], r, to[2], max_num_neighbors=most), graph.flip(0))
        looped = pyg.radius_graph(to[0], r, to[2], True, most, "target_to_source")
        assert pairs_of(looped) == reference(x, x, groups_x, groups_x, k=most, r=r)


def test_edges_by_hand() -> None:
    x = torch.tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    y = torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
    assert pyg.knn(x, y, 2).tolist() == [[0, 0, 1, 1], [0, 1, 2, 3]]
    assert pyg.nearest(y, x).tolist() == [0, 2]
    assert pyg.knn_graph(x, 2).tolist() == [[1, 2, 0, 3, 0, 3, 1, 2], [0, 0, 1, 1, 2, 2, 3, 3]]
    assert pyg.knn_graph(x, 1, loop=True).tolist() == [[0, 1, 2, 3], [0, 1, 2, 3]]
    # The radius contains more than 32 points, and the 32 nearest are kept.
    line = torch.arange(40.0)
    assert pyg.radius(line, line[:1], 2.0).tolist() == [[0, 0], [0, 1]]
    assert pyg.radius(line, line[39:], 100.0)[1].tolist() == list(range(39, 7, -1))
    assert pyg.radius_graph(line, 1.5).shape == (2, 78)
    assert pyg.radius_graph(line, 1.0).shape == (2, 0)
    assert pyg.radius_graph(line, 1.5, loop=True).shape == (2, 118)


def test_nothing_has_no_edges() -> None:
    none, some = torch.empty(0, 3), torch.zeros(4, 3)
    for edges in (
        *(pyg.knn(none, some, 2), pyg.knn(some, none, 2), pyg.knn_graph(none, 2), pyg.knn_graph(some[:1], 2)),
        *(pyg.radius(none, some, 1.0), pyg.radius(some, none, 1.0), pyg.radius_graph(none, 1.0)),
        *(pyg.radius_graph(some[:1], 1.0), pyg.knn(none, some, 2, torch.empty(0), torch.zeros(4, dtype=torch.int64))),
    ):
        assert (edges.shape, edges.dtype) == ((2, 0), torch.int64)
    assert pyg.nearest(none, some).shape == (0,)
    assert pyg.knn_graph(some[:1], 2, loop=True).tolist() == [[0], [0]]


def test_clouds_without_their_like_have_no_edges_and_no_nearest() -> None:
    x, y = torch.arange(4.0), torch.tensor([0.0, 9.0])
    assert pyg.knn(x, y, 2, torch.zeros(4).long(), torch.tensor([1, 1])).shape == (2, 0)
    assert pyg.nearest(y, x, None, torch.tensor([0, 0, 1, 1])).tolist() == [0, 1]
    with pytest.raises(ValueError, match="batch_x: has clouds that batch_y does not have"):
        pyg.nearest(y, x, torch.tensor([0, 5]), torch.zeros(4).long())
    with pytest.raises(ValueError, match="y: has no points"):
        pyg.nearest(y, x[:0])


def test_every_dtype_stride_and_gradient_is_taken() -> None:
    x = torch.from_numpy(checks.gaussian(20, 4)).to(torch.bfloat16).float()
    expected = pyg.knn_graph(x, 3)
    wide = torch.stack([x, x], dim=2).flip(0)
    for other in (x.half(), x.bfloat16(), x.double(), x.requires_grad_(), wide[..., 0].flip(0)):
        assert torch.equal(pyg.knn_graph(other, 3, num_workers=-1), expected)


@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (3, 3), (-1, None)])
def test_workers_are_threads(workers: int, threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def watched(verb: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **options: Any) -> Any:
            asked.append(options["threads"])
            return verb(*given, **options)

        return call

    asks = [(searching, "search"), (graphs, "knn_graph"), (radius, "radius_search"), (radius, "radius_graph")]
    for module, name in asks:
        monkeypatch.setattr(module, name, watched(getattr(module, name)))
    x = torch.from_numpy(checks.gaussian(20, 4))
    pyg.knn(x, x, 2, num_workers=workers)
    pyg.knn_graph(x, 2, num_workers=workers)
    pyg.radius(x, x, 1.0, num_workers=workers)
    pyg.radius_graph(x, 1.0, num_workers=workers)
    assert asked == [threads] * 4


if HAS_TORCH:
    X, B = torch.from_numpy(checks.gaussian(20, 3)), torch.zeros(20).long()
    ROWS = (None, 5, X.numpy(), X.to(torch.complex64), X[None], X * torch.nan, X.to_sparse(), X[:, :2])
    OWN = ROWS[:-1]
    K, MOST = (0, -1, 2.5, True, None), (0, -1, 2.5, True)
    GROUPS = (5, B[:7], X[:, 0], B - 1, [[1], [2, 3]], "a")
    COMMON = {"num_workers": (0, -2, 1.5, None), "batch_size": (0, 1.5, "1")}
    TWO = {"x": X, "y": X, "batch_x": B, "batch_y": B, "batch_size": 1}
    ONE = {"x": X, "batch": B, "batch_size": 1}
    PAIR = {"x": ROWS, "y": ROWS, "batch_x": (None, *GROUPS, B + 1), "batch_y": (None, *GROUPS, B + 1)}
    FLAGS = {"loop": (1, None), "flow": ("up", None)}
    COSINE = {"cosine": (1, None, "yes")}
    WITHIN = {"r": (-1.0, math.nan, None, "1", True), "max_num_neighbors": MOST}
    REFUSED: list[tuple[Callable[..., Any], dict[str, Any], dict[str, tuple[Any, ...]]]] = [
        (pyg.knn, TWO | {"k": 2}, {"k": K} | PAIR | COSINE | COMMON),
        (pyg.knn_graph, ONE | {"k": 2}, {"x": OWN, "k": K, "batch": (*GROUPS, B + 1)} | FLAGS | COSINE | COMMON),
        (pyg.radius, TWO | {"r": 1.0}, WITHIN | PAIR | COMMON),
        (pyg.radius_graph, ONE | {"r": 1.0}, {"x": OWN, "batch": (*GROUPS, B + 1)} | WITHIN | FLAGS | COMMON),
        (pyg.nearest, {"x": X, "y": X}, {"x": ROWS, "y": ROWS, "batch_x": GROUPS, "batch_y": GROUPS}),
    ]
else:
    REFUSED = []


@pytest.mark.parametrize(
    ("call", "good", "name", "values"),
    [(call, good, name, values) for call, good, bad in REFUSED for name, values in bad.items()],
)
def test_no_argument_is_ignored_or_fails_in_raw_words(
    call: Callable[..., Any], good: dict[str, Any], name: str, values: tuple[Any, ...]
) -> None:
    assert_refused_by_name(call, good, name, values)


@pytest.mark.interop
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("clouds", ["one", "sorted"])
def test_torch_cluster_gives_the_same(clouds: str) -> None:
    original = consumers.consumer("torch_cluster")
    x, y = (torch.from_numpy(checks.gaussian(n, 3, n)) for n in (60, 25))
    batches = [torch.from_numpy(CLOUDS[clouds](len(rows))) for rows in (x, y)]
    for k in (1, 5, 100):
        assert pairs_of(pyg.knn(x, y, k, *batches)) == pairs_of(original.knn(x, y, k, *batches))
        for flow in ("source_to_target", "target_to_source"):
            for loop in (False, True):
                ours, theirs = (each.knn_graph(x, k, batches[0], loop, flow) for each in (pyg, original))
                assert pairs_of(ours) == pairs_of(theirs)
    for r in (0.5, 1.5):
        assert set(pairs_of(pyg.radius(x, y, r, *batches, 100))) == set(
            pairs_of(original.radius(x, y, r, *batches, 100))
        )
        for loop in (False, True):
            ours, theirs = (each.radius_graph(x, r, batches[0], loop, 100) for each in (pyg, original))
            assert set(pairs_of(ours)) == set(pairs_of(theirs))
    line = torch.arange(9.0)
    assert set(pairs_of(pyg.radius(line, line, 2.0))) == set(pairs_of(original.radius(line, line, 2.0)))
    assert pyg.nearest(x, y, *batches).tolist() == original.nearest(x, y, *batches).tolist()
