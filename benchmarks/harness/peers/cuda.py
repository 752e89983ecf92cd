"""The libraries with which exact search on a GPU is compared, with one interface.

``PEERS[name].prepare(points)`` makes the peer's index of a device tensor and returns ``search(queries, k)``, which
returns indices (m, k) as a tensor. For a fair comparison, the time does not include the conversion of rows to the
peer's type, nor the construction of its index if ours is not included, and its answers stay on the device.

==================  ==================================================================================================
``torch float32``   torch.mm in float32, |x|² − 2 q·x, torch.topk; tiled over queries where scores do not fit
``torch tf32``      the same with float32 rounded to TF32 by the matrix units
``torch float16``   the same on float16 rows, scores in float32
``cuvs``            NVIDIA cuVS brute_force, float32
``flash float32``   flashlib flash_knn, float32 rows (it ranks in TF32)
``flash float16``   flashlib flash_knn, float16 rows
``certex``          certex's index, which is exact for squared distances; it screens with float16 rows
``certex int8``     the same; it screens with int8 rows
==================  ==================================================================================================

cuVS and flashlib are in the kit that ``shared/tools/peer_kit.sh`` packs. certex is linked with CUDA 12 (cuda12.py).
``HOST_PEERS`` has the peers that search points in host memory: their `prepare` takes a NumPy array of 8-bit integers,
and their searches return squared distances and indices as NumPy arrays.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

Search = Callable[[Any, int], Any]
CERTEX, CERTEX_INT8 = "certex", "certex int8"

# Maximum number of scores (queries times points) in one tile of the contestants by torch.
TILE_BYTES = 1 << 33


@dataclass(frozen=True)
class Peer:
    """A library on a GPU.

    It has the dtype that the library gets, the function that prepares its searches, and in ``compiles`` whether it has
    Triton kernels.
    """

    name: str
    module: str
    dtype: str
    prepare: Callable[[Any], Search]
    compiles: bool = False

    def missing(self) -> str | None:
        """Return the reason why this peer cannot run, or None."""
        return None if find_spec(self.module) else f"skipped: module {self.module!r} is not installed"

    def rows(self, tensor: Any) -> Any:
        """Return rows converted to the dtype of this peer."""
        import torch

        return tensor.to(getattr(torch, self.dtype))


@contextlib.contextmanager
def float32_products(precision: str) -> Iterator[None]:
    """Set the precision of float32 matrix products inside the block: "highest" (float32) or "high" (TF32)."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def products(queries: Any, points: Any) -> Any:
    """Return the inner products (m, n) of all pairs of queries and points, in float32."""
    import torch

    if queries.dtype == torch.float32:
        return torch.mm(queries, points.T)
    if queries.is_cuda:
        return torch.mm(queries, points.T, out_dtype=torch.float32)
    return torch.mm(queries.float(), points.float().T)


def _torch(precision: str) -> Callable[[Any], Search]:
    def prepare(points: Any) -> Search:
        import torch

        squares = torch.linalg.vector_norm(points, dim=1, dtype=torch.float32).square_()
        step = max(1, TILE_BYTES // (4 * len(points)))

        def search(queries: Any, k: int) -> Any:
            found = []
            for start in range(0, len(queries), step):
                with float32_products(precision):
                    scores = products(queries[start : start + step], points)
                torch.sub(squares, scores, alpha=2, out=scores)
                found.append(scores.topk(k, dim=1, largest=False).indices)
                del scores
            return found[0] if len(found) == 1 else torch.cat(found)

        return search

    return prepare


def _cuvs(points: Any) -> Search:
    import torch
    from cuvs.neighbors import brute_force

    index = brute_force.build(points, metric="sqeuclidean")

    def search(queries: Any, k: int) -> Any:
        shape = (len(queries), k)
        indices = torch.empty(shape, dtype=torch.int64, device=queries.device)
        distances = torch.empty(shape, dtype=torch.float32, device=queries.device)
        brute_force.search(index, queries, k, neighbors=indices, distances=distances)
        return indices

    return search


def _flash(points: Any) -> Search:
    from flashlib.primitives.knn import flash_knn

    def search(queries: Any, k: int) -> Any:
        return flash_knn(queries, points, k)[1]

    return search


def _certex(points: Any, **options: Any) -> Any:
    from certex import Index, trim_pool

    trim_pool()  # so that the memory of an earlier index is not counted
    index = Index(points.shape[1], "l2", **options)
    index.add(points)
    return index.search


def _certex_indices(**options: Any) -> Callable[[Any], Search]:
    def prepare(points: Any) -> Search:
        search = _certex(points, **options)
        return lambda queries, k: search(queries, k)[1]

    return prepare


PEERS = {
    peer.name: peer
    for peer in (
        Peer("torch float32", "torch", "float32", _torch("highest")),
        Peer("torch tf32", "torch", "float32", _torch("high")),
        Peer("torch float16", "torch", "float16", _torch("highest")),
        Peer("cuvs", "cuvs", "float32", _cuvs),
        Peer("flash float32", "flashlib", "float32", _flash, compiles=True),
        Peer("flash float16", "flashlib", "float16", _flash, compiles=True),
        Peer(CERTEX, "certex", "float32", _certex_indices()),
        Peer(CERTEX_INT8, "certex", "float32", _certex_indices(int8_rows=True)),
    )
}
HOST_PEERS = {
    peer.name: peer
    for peer in (
        Peer(CERTEX, "certex", "uint8", partial(_certex, storage="host")),
        Peer(CERTEX_INT8, "certex", "uint8", partial(_certex, storage="host", int8_rows=True)),
    )
}
