"""Rows of few dimensions for the benchmarks of the k-d tree, as tensors on the device of the run.

Rows in host memory are made by the other modules of this folder. Rows on a GPU are drawn on the device, from the same
distributions with other random numbers: ten million rows take a moment. The rows of a stream are made chunk by chunk.

===============  ====================================================================================================
``sift``         principal components of real SIFT descriptors (``photographs.pca_sift``)
``pixels``       colour and position of the pixels of photographs, d = 5 (``photographs.pixels``)
``magnitudes``   a synthetic catalogue of the sky (``sky.magnitudes``)
``uniform``      independent, uniform from 0 to 1
===============  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import made_up, photographs, sky
from .hard import DeviceData

PIXEL_WIDTH = 5
KINDS = ("sift", "pixels", "magnitudes", "uniform")
# Number of rows that are made in one step on a device.
BLOCK = 1 << 20
STREAM_SEED = 1000


def make(kind: str, n: int, m: int, d: int, where: str) -> DeviceData:
    """Return float32 points (n, d) and queries (m, d) of one kind; the queries are None if m is 0.

    Raises
    ------
    ValueError
        The kind is unknown, or does not support d columns.
    RuntimeError, ImportError
        The photographs are not installed.
    """
    if kind not in KINDS:
        raise ValueError(f"data are {', '.join(KINDS)}, got {kind!r}")
    if kind == "pixels" and d != PIXEL_WIDTH:
        raise ValueError(f"pixels have {PIXEL_WIDTH} dimensions, not {d}")
    if where == "cpu":
        return _in_host_memory(kind, n, m, d)
    if kind in ("sift", "pixels"):
        return _copies_on_device(kind, n, m, d, where)
    import torch

    law = Law(kind, d, where, 0)
    rows = [torch.cat(list(law.blocks(count))) if count else None for count in (n, m)]
    return DeviceData(*rows)


def _in_host_memory(kind: str, n: int, m: int, d: int) -> DeviceData:
    import torch

    if kind == "sift":
        found = photographs.pca_sift(n, m, d)
    elif kind == "pixels":
        found = photographs.pixels(n, m)
    else:
        found = {"magnitudes": sky.magnitudes, "uniform": made_up.uniform}[kind](n, m, d)
    return DeviceData(*(None if rows is None else torch.from_numpy(rows) for rows in found))


def _copies_on_device(kind: str, n: int, m: int, d: int, where: str) -> DeviceData:
    """Return points and queries: real rows and, if these are too few, displaced copies of them (``photographs``)."""
    import torch

    whole = photographs.principal_components()[:, :d] if kind == "sift" else photographs.all_pixels()
    points, queries = photographs.real_rows(len(whole), n, m)
    real = torch.from_numpy(whole[: points + queries]).to(where)
    generator = torch.Generator(where).manual_seed(0)
    targets = []
    for source, count in ((real[:points], n), (real[points:], m)):
        target = torch.empty((count, d), dtype=torch.float32, device=where)
        target[: len(source)] = source
        for part in target[len(source) :].split(BLOCK) if count > len(source) else ():
            chosen = torch.randint(len(source), (len(part),), generator=generator, device=where)
            if kind == "sift":
                noise = torch.empty_like(part).normal_(generator=generator) * photographs.PCA_NOISE
            else:
                noise = torch.empty_like(part).uniform_(generator=generator).sub_(0.5) * (2 * photographs.PIXEL_NOISE)
            torch.add(source[chosen], noise, out=part)
        targets.append(target)
    return DeviceData(targets[0], targets[1] if m else None)


class Law:
    """A generator of rows of one kind, on a torch device."""

    def __init__(self, kind: str, d: int, where: str, seed: int) -> None:
        import torch

        self.kind, self.d, self.where = kind, d, where
        self._generator = torch.Generator(where).manual_seed(seed)
        self._sky = sky.Sky(*(torch.from_numpy(part).to(where) for part in sky.sky()))

    def rows(self, count: int) -> Any:
        """Return the next `count` rows, (count, d) float32."""
        import torch

        if self.kind == "uniform":
            return torch.rand((count, self.d), generator=self._generator, device=self.where)
        rows = torch.empty((count, self.d), dtype=torch.float32, device=self.where)
        place = torch.rand((count,), generator=self._generator, device=self.where, dtype=torch.float64)
        draws = torch.empty((count, sky.MAGNITUDE_DRAWS), dtype=torch.float32, device=self.where)
        kind = torch.searchsorted(self._sky.shares[:-1].contiguous(), place, right=True)
        sky.fill_magnitudes(rows, kind, draws.normal_(generator=self._generator), self._sky)
        return rows

    def blocks(self, count: int) -> Iterator[Any]:
        """Yield the next `count` rows in blocks, so that temporary arrays stay small."""
        for start in range(0, count, BLOCK):
            yield self.rows(min(BLOCK, count - start))


def chunks(kind: str, total: int, chunk: int, d: int, where: str) -> Iterator[Any]:
    """Yield ``total`` queries of a kind in chunks of ``chunk`` rows, each of which is made when it is requested."""
    import torch

    law = Law(kind, d, where, STREAM_SEED)
    for start in range(0, total, chunk):
        yield torch.cat(list(law.blocks(min(chunk, total - start))))
