"""The code that each suite and paper measures on each device: a row is stale if this code has changed since."""

from __future__ import annotations

# Paths of the code that all methods use.
_SHARED = ("src/tonari/core", "src/tonari/inputs", "src/tonari/metrics", "native/core", "native/simd")
_EXACT_CPU = ("src/tonari/exact/cpu", "native/exact", "native/select")
_EXACT_CUDA = ("src/tonari/exact/cuda", "src/tonari/select/cuda", "src/tonari/cuda")
_SELECT_CPU = ("src/tonari/select", ":!src/tonari/select/cuda", "native/select")
_SELECT_CUDA = ("src/tonari/select", "src/tonari/cuda")
_KDTREE_CPU = ("src/tonari/kdtree", ":!src/tonari/kdtree/cuda", ":!src/tonari/kdtree/papers/cuda", "native/kdtree")
_KDTREE_CUDA = ("src/tonari/kdtree/cuda", "src/tonari/kdtree/papers", "src/tonari/cuda")
_DESCENT_CPU = (
    *("src/tonari/nn_descent", ":!src/tonari/nn_descent/cuda", ":!src/tonari/nn_descent/papers", "native/nn_descent"),
    *_EXACT_CPU,
)
_DESCENT_CUDA = ("src/tonari/nn_descent", ":!src/tonari/nn_descent/cpu", *_EXACT_CUDA)
_CODE: dict[tuple[str, str], tuple[str, ...]] = {
    ("exact_cpu", "cpu"): _EXACT_CPU,
    ("exact_cuda", "cuda"): _EXACT_CUDA,
    ("contraction", "cpu"): _EXACT_CPU,
    ("kdtree", "cpu"): _KDTREE_CPU,
    ("kdtree", "cuda"): _KDTREE_CUDA,
    ("nn_descent", "cpu"): _DESCENT_CPU,
    ("nn_descent", "cuda"): _DESCENT_CUDA,
    ("filters", "cpu"): ("src/tonari/filters", *_EXACT_CPU, *_KDTREE_CPU),
    ("filters", "cuda"): ("src/tonari/filters", *_EXACT_CUDA),
    ("bits", "cpu"): ("src/tonari/bits", ":!src/tonari/bits/cuda", "native/bits"),
    ("bits", "cuda"): ("src/tonari/bits/cuda", "src/tonari/select/cuda", "src/tonari/cuda"),
    ("radius", "cpu"): (*_EXACT_CPU, *_KDTREE_CPU, "src/tonari/methods/radius.py"),
    ("radius_rules", "cpu"): ("src/tonari/filters", "src/tonari/kdtree/cpu", "native/kdtree"),
    ("radius_cuda", "cuda"): (*_EXACT_CUDA, "src/tonari/kdtree/cuda"),
    ("consumers", "cpu"): ("src/tonari/estimators", "src/tonari/graph/exports", *_DESCENT_CPU),
    ("spanning", "cpu"): ("src/tonari/spanning", "native/spanning", "src/tonari/filters", *_EXACT_CPU, *_KDTREE_CPU),
    ("sparse", "cpu"): ("src/tonari/sparse", "native/sparse"),
    ("promises", "cpu"): ("src/tonari/graph/exports", *_EXACT_CPU),
    ("small", "cpu"): ("src/tonari/api", *_EXACT_CPU, *_KDTREE_CPU),
    ("small", "cuda"): ("src/tonari/api", *_EXACT_CUDA),
    ("shards", "cpu"): ("src/tonari/shards", *_DESCENT_CPU),
    ("shards", "cuda"): ("src/tonari/shards", *_DESCENT_CUDA),
    ("select", "cpu"): _SELECT_CPU,
    ("select", "cuda"): _SELECT_CUDA,
    # in these papers' cases, exact search is timed in addition to the paper's method
    ("tang2015", "cpu"): (*_SELECT_CPU, *_EXACT_CPU),
    ("tang2015", "cuda"): (*_SELECT_CUDA, "src/tonari/exact/cuda"),
    ("matsumoto2015", "cpu"): _SELECT_CPU,
    ("matsumoto2015", "cuda"): (*_SELECT_CUDA, "src/tonari/exact/cuda"),
    ("komarov2014", "cpu"): (*_SELECT_CPU, *_EXACT_CPU),
    ("komarov2014", "cuda"): (*_SELECT_CUDA, "src/tonari/exact/cuda"),
    ("gieseke2014", "cpu"): _KDTREE_CPU,
    ("gieseke2014", "cuda"): _KDTREE_CUDA,
    # updates of lists that only the paper has are a part of the benchmarks' code
    ("wang2021", "cuda"): ("benchmarks/papers/wang2021", *_DESCENT_CUDA),
}
# notes about stale rows name the code by its first path
CODE = {key: (*paths, *_SHARED) for key, paths in _CODE.items()}
