"""Data sets as functions: the same arguments give the same rows on the same machine.

Every function returns ``Data(points, queries)``: ``points`` of shape (n, d), ``queries`` of shape (m, d) drawn
independently from the same law, or None when m is 0 (a graph needs no queries). Rows are C-contiguous.

=====================  ===============================================================================
``sift_photo``         real SIFT descriptors of photographs, 128 small integers
``gaussian``           independent N(0, 1): the hardest case for anything that hopes for structure
``clustered``          affine clusters of low dimension in a wide space, spread like 8-bit images
``offset``             Gaussian data far from the origin: the expanded form cancels
``tight_far_clusters`` clusters whose distance dwarfs their size: centring on one mean does not help
``duplicates``         few distinct rows: ties everywhere
``patches``            28 x 28 grey patches of the photographs inside scikit-learn, real-valued
=====================  ===============================================================================
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(__file__).resolve().parent / ".cache"
SIFT_DIRECTORIES = (ROOT.parent / "shared" / "data", ROOT / "shared" / "data")
SIFT_WIDTH = 128
# Key-point sizes and the grid step of each, in pixels.
SIFT_GRID = ((8, 3), (12, 4), (20, 5), (32, 6))


class Data(NamedTuple):
    """``points`` (n, d) and ``queries`` (m, d) or None."""

    points: Array
    queries: Array | None


# --- real descriptors --------------------------------------------------------------------------------------------


def sift_photo(n: int = 100_000, dtype: str = "float32", *, m: int = 0) -> Data:
    """SIFT descriptors (n, 128) of photographs, and m more as queries; float32 or uint8 with the same values.

    The rows come from the file that the environment variable TONARI_SIFT names (``.bvecs``, queries taken behind the
    points), else from ``shared/data`` beside or inside the repository, else they are computed from the photographs
    inside scikit-image and scikit-learn with OpenCV (about 1.7 million rows; kept under ``benchmarks/.cache``).

    Raises
    ------
    ValueError
        The file TONARI_SIFT names holds too few rows or is no ``.bvecs`` file of width 128.
    RuntimeError
        No source has n + m rows; the message says what each lacked.
    """
    if dtype not in ("float32", "uint8"):
        raise ValueError(f"SIFT rows come as 'float32' or 'uint8', got {dtype!r}")
    points, queries = _sift_rows(n, m)
    return Data(np.ascontiguousarray(points, dtype=dtype), np.ascontiguousarray(queries, dtype=dtype) if m else None)


def _sift_rows(n: int, m: int) -> tuple[Array, Array]:
    named = os.environ.get("TONARI_SIFT")
    if named:
        rows = read_bvecs(Path(named))
        if len(rows) < n + m:
            raise ValueError(f"TONARI_SIFT={named} holds {len(rows)} rows, {n} points and {m} queries were asked for")
        return rows[:n], rows[n : n + m]
    lacks = ["TONARI_SIFT is not set"]
    for directory in SIFT_DIRECTORIES:
        points_path = directory / "sift-photo-100k.bvecs"
        queries_path = directory / "sift-photo-queries-1k.bvecs"
        if not points_path.exists():
            lacks.append(f"{points_path} does not exist")
            continue
        points = read_bvecs(points_path)
        queries = read_bvecs(queries_path) if m else points[:0]
        if len(points) >= n and len(queries) >= m:
            return points[:n], queries[:m]
        lacks.append(f"{directory} holds {len(points)} points and {len(queries)} queries, not {n} and {m}")
    try:
        rows = _sift_of_photographs()
    except ImportError as error:
        lacks.append(f"computing them needs scikit-image, scikit-learn and opencv-python-headless ({error})")
        raise RuntimeError("no SIFT descriptors: " + "; ".join(lacks)) from error
    if len(rows) < n + m:
        lacks.append(f"the photographs give {len(rows)} rows")
        raise RuntimeError(f"no {n + m} SIFT descriptors: " + "; ".join(lacks))
    return rows[:n], rows[n : n + m]


def read_bvecs(path: Path) -> Array:
    """Rows (n, 128) uint8 of a TEXMEX ``.bvecs`` file, as a view of the mapped file."""
    record = 4 + SIFT_WIDTH
    size = path.stat().st_size
    if size == 0 or size % record:
        raise ValueError(f"{path}: {size} bytes are no whole number of {record}-byte rows")
    raw = np.memmap(path, dtype=np.uint8, mode="r").reshape(-1, record)
    widths = raw[:, :4].copy().view("<i4")[:, 0]
    if (widths != SIFT_WIDTH).any():
        row = int(np.argmax(widths != SIFT_WIDTH))
        raise ValueError(f"{path}: row {row} says width {widths[row]}, expected {SIFT_WIDTH}")
    return raw[:, 4:]


def write_bvecs(path: Path, rows: Array) -> None:
    """Write rows (n, 128) uint8 as ``.bvecs``; the file appears whole or not at all."""
    raw = np.empty((len(rows), 4 + SIFT_WIDTH), np.uint8)
    raw[:, :4] = np.frombuffer(np.array(SIFT_WIDTH, "<i4").tobytes(), np.uint8)
    raw[:, 4:] = rows
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.part")
    raw.tofile(partial)
    partial.replace(path)


def _sift_of_photographs() -> Array:
    """All distinct descriptors of the bundled photographs, shuffled by a fixed seed; computed once, then kept."""
    kept = CACHE / "sift-photo.bvecs"
    if kept.exists():
        return read_bvecs(kept)
    import cv2
    import skimage
    import sklearn

    folders = (Path(skimage.__file__).parent / "data", Path(sklearn.__file__).parent / "datasets" / "images")
    suffixes = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp"}
    sift = cv2.SIFT_create()
    parts: list[Array] = []
    for path in sorted(p for folder in folders for p in folder.rglob("*") if p.suffix.lower() in suffixes):
        image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        # OpenCV reads no GIF and no multi-channel TIFF; those few pictures are no part of the set.
        if image is None:
            continue
        height, width = image.shape
        for size, step in SIFT_GRID:
            grid = [
                cv2.KeyPoint(float(x), float(y), float(size))
                for y in range(size, height - size, step)
                for x in range(size, width - size, step)
            ]
            if grid:
                _, descriptors = sift.compute(image, grid)
                rows = descriptors.astype(np.uint8)
                parts.append(rows[np.count_nonzero(rows, axis=1) > 16])
    rows = np.unique(np.concatenate(parts), axis=0)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    write_bvecs(kept, rows)
    return rows


# --- made-up rows ------------------------------------------------------------------------------------------------


def gaussian(n: int, m: int, d: int, *, dtype: str = "float32", seed: int = 0) -> Data:
    """Independent N(0, 1) entries."""
    rng = np.random.default_rng(seed)
    return _split(rng.standard_normal((n + m, d), dtype=np.float32).astype(dtype, copy=False), n)


def clustered(
    n: int, m: int, d: int, *, intrinsic: int = 12, clusters: int = 100, noise: float = 1.0, seed: int = 0
) -> Data:
    """Affine clusters of dimension ``intrinsic`` in width d, spread like 8-bit images; float32.

    A row is mean brightness 100 + its cluster's centre (45 grey levels per entry) + a combination of the cluster's
    ``intrinsic`` directions whose strength falls as 1/sqrt(1), 1/sqrt(2), ... (25 grey levels per entry in all)
    + ``noise`` grey levels per entry. Cluster sizes are uneven: the largest is some ten times the smallest.
    """
    if intrinsic > d:
        raise ValueError(f"clusters of dimension {intrinsic} do not fit into width {d}")
    rng = np.random.default_rng(seed)
    centres = 100 + 45 * rng.standard_normal((clusters, d))
    strength = 1 / np.sqrt(np.arange(1, intrinsic + 1))
    strength *= 25 * np.sqrt(d) / np.linalg.norm(strength)
    share = rng.uniform(0.1, 1, clusters)
    members = rng.choice(clusters, n + m, p=share / share.sum())
    rows = np.empty((n + m, d), np.float32)
    for cluster, centre in enumerate(centres):
        inside = np.flatnonzero(members == cluster)
        directions = np.linalg.qr(rng.standard_normal((d, intrinsic)))[0].T
        place = rng.standard_normal((len(inside), intrinsic)) * strength
        rows[inside] = centre + place @ directions + noise * rng.standard_normal((len(inside), d))
    return _split(rows, n)


def offset(n: int, m: int, d: int, *, shift: float = 1e4, dtype: str = "float32", seed: int = 0) -> Data:
    """Gaussian rows with ``shift`` added to every entry, rounded to ``dtype`` once, after the addition."""
    rows = np.random.default_rng(seed).standard_normal((n + m, d)) + shift
    return _split(rows.astype(dtype), n)


def tight_far_clusters(
    n: int, m: int, d: int, *, clusters: int = 20, apart: float = 1e4, dtype: str = "float32", seed: int = 0
) -> Data:
    """N(0, 1) clouds around centres drawn as ``apart`` x N(0, 1) per entry."""
    rng = np.random.default_rng(seed)
    centres = apart * rng.standard_normal((clusters, d))
    rows = centres[rng.integers(clusters, size=n + m)] + rng.standard_normal((n + m, d))
    return _split(rows.astype(dtype), n)


def duplicates(n: int, m: int, d: int, *, distinct: int = 100, dtype: str = "float32", seed: int = 0) -> Data:
    """Rows drawn with repetition from ``distinct`` Gaussian rows, queries too: every query has ties at distance 0."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((distinct, d), dtype=np.float32).astype(dtype, copy=False)
    # Each distinct row is among the points whenever there is room for all, so that no query is without its copies.
    chosen = np.concatenate(
        [np.arange(min(distinct, n)), rng.integers(min(distinct, n), size=n + m - min(distinct, n))]
    )
    chosen[:n] = rng.permutation(chosen[:n])
    return _split(rows[chosen], n)


def patches(n: int, m: int, *, side: int = 28, seed: int = 0) -> Data:
    """Grey patches (side x side, flattened) of the photographs inside scikit-learn, float32 in grey levels 0 to 255.

    Each patch starts at a random sub-pixel place (bilinear) and is dimmed to 60-100 %: real-valued rows of image
    statistics, no two alike.

    Raises
    ------
    RuntimeError
        scikit-learn, or the Pillow that it reads pictures with, is not installed.
    """
    try:
        from sklearn.datasets import load_sample_images

        pictures = [image.mean(axis=2, dtype=np.float64) for image in load_sample_images().images]
    except ImportError as error:
        raise RuntimeError(f"image patches need scikit-learn and Pillow ({error})") from error
    rng = np.random.default_rng(seed)
    rows = np.empty((n + m, side * side), np.float32)
    picture_of = rng.integers(len(pictures), size=n + m)
    place = rng.uniform(size=(n + m, 2))
    gain = rng.uniform(0.6, 1, size=n + m)
    for i in range(n + m):
        picture = pictures[picture_of[i]]
        y, x = place[i] * (np.array(picture.shape) - side - 1)
        top, left = int(y), int(x)
        down, right = y - top, x - left
        view = picture[top : top + side + 1, left : left + side + 1]
        view = (1 - down) * view[:-1] + down * view[1:]
        view = (1 - right) * view[:, :-1] + right * view[:, 1:]
        rows[i] = gain[i] * view.ravel()
    return _split(rows, n)


def _split(rows: Array, n: int) -> Data:
    return Data(rows[:n], rows[n:] if len(rows) > n else None)
