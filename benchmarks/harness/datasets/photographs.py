"""Real rows from photographs: SIFT descriptors, their principal components, and pixels."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..machine import ROOT
from .data import Array, Data, blocks, split

CACHE = ROOT / "benchmarks" / ".cache"
SIFT_DIRECTORIES = (ROOT.parent / "shared" / "data", ROOT / "shared" / "data")
SIFT_WIDTH = 128
# Pairs (size of key points, step of their grid), in pixels.
SIFT_GRID = ((8, 3), (12, 4), (20, 5), (32, 6))
PICTURES = {".png", ".jpg", ".jpeg", ".tif", ".tiff", ".gif", ".bmp"}
COMPONENTS = 27
# Principal directions are computed from every 17th descriptor; more would not change them noticeably.
PCA_STEP = 17
# Copies of principal components are displaced by N(0, 1) times this per entry, about the distance of nearest
# neighbours.
PCA_NOISE = 4.0
# Copies of pixels are displaced by at most this many grey levels or pixels, uniformly in both directions.
PIXEL_NOISE = 0.5


# --- real descriptors ------------------------------------------------------------------------------------------------


def sift_photo(n: int = 100_000, dtype: str = "float32", *, m: int = 0) -> Data:
    """Return SIFT descriptors (n, 128) of photographs, and m more as queries; float32 or uint8 with the same values.

    The rows are read from the file that the environment variable TONARI_SIFT names (``.bvecs``; queries follow the
    points), or else from ``shared/data`` beside or inside the repository. Otherwise they are computed with OpenCV from
    the photographs of scikit-image and scikit-learn (about 1.7 million rows; kept under ``benchmarks/.cache``).

    Raises
    ------
    ValueError
        The file that TONARI_SIFT names has too few rows, or is not a ``.bvecs`` file of width 128.
    RuntimeError
        No source has n + m rows; the message gives the reason for each.
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


def every_sift() -> Array:
    """Return all descriptors, (rows, 128) uint8, of the file that TONARI_SIFT names or else of the photographs."""
    named = os.environ.get("TONARI_SIFT")
    return read_bvecs(Path(named)) if named else _sift_of_photographs()


def read_bvecs(path: Path) -> Array:
    """Return rows, (n, 128) uint8, of a TEXMEX ``.bvecs`` file, as a view of the mapped file."""
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
    """Write rows, (n, 128) uint8, to a ``.bvecs`` file, which appears complete or not at all."""
    raw = np.empty((len(rows), 4 + SIFT_WIDTH), np.uint8)
    raw[:, :4] = np.frombuffer(np.array(SIFT_WIDTH, "<i4").tobytes(), np.uint8)
    raw[:, 4:] = rows
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}.part")
    raw.tofile(partial)
    partial.replace(path)


def _sift_of_photographs() -> Array:
    """Return all distinct descriptors of the photographs, shuffled with a fixed seed; a file caches them."""
    kept = CACHE / "sift-photo.bvecs"
    if kept.exists():
        return read_bvecs(kept)
    import cv2

    sift = cv2.SIFT_create()
    parts: list[Array] = []
    for path in _photographs():
        image = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
        # OpenCV cannot read GIF and multi-channel TIFF files, so the few pictures of this kind are left out.
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


def _photographs() -> list[Path]:
    """Return the pictures of scikit-image and scikit-learn."""
    import skimage
    import sklearn

    folders = (Path(skimage.__file__).parent / "data", Path(sklearn.__file__).parent / "datasets" / "images")
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix.lower() in PICTURES)


# --- few dimensions --------------------------------------------------------------------------------------------------


def pca_sift(n: int, m: int, d: int, *, seed: int = 0) -> Data:
    """Return the d strongest principal components (1 to 27) of SIFT descriptors, float32; no point is also a query.

    If n + m exceeds the number of descriptors (1.7 million), copies of real rows follow, displaced by 4 N(0, 1) per
    entry. Points are copied from real points, queries from real queries; see :func:`real_rows`.
    """
    if not 1 <= d <= COMPONENTS:
        raise ValueError(f"principal components of SIFT are 1 to {COMPONENTS}, got d = {d}")
    rng = np.random.default_rng(seed)
    rows = _extended(principal_components()[:, :d], n, m, rng, lambda shape: PCA_NOISE * rng.standard_normal(shape))
    return split(rows, n)


@functools.cache
def principal_components() -> Array:
    """Return all descriptors, in their original order, in 27 principal components: (rows, 27) float32.

    The rows come from the file that TONARI_SIFT names, else from the photographs (see :func:`sift_photo`).
    """
    rows = every_sift()
    sample = rows[::PCA_STEP].astype(np.float64)
    mean = sample.mean(axis=0)
    _, directions = np.linalg.eigh(np.cov((sample - mean).T))
    strongest = directions[:, ::-1][:, :COMPONENTS].astype(np.float32)
    parts = np.array_split(rows, max(1, len(rows) >> 17))
    return np.concatenate([(part.astype(np.float32) - mean.astype(np.float32)) @ strongest for part in parts])


def pixels(n: int, m: int, *, seed: int = 0) -> Data:
    """Return the colour (red, green, blue) and position (x, y) of pixels, (n, 5) float32 whole numbers, and m queries.

    The photographs lie side by side in one plane. Their 5 million pixels are drawn without repetition; if n + m is
    larger, the other rows are copies, displaced by at most half a grey level or pixel.
    """
    rng = np.random.default_rng(seed)
    rows = _extended(all_pixels(), n, m, rng, lambda shape: rng.uniform(-PIXEL_NOISE, PIXEL_NOISE, shape))
    return split(rows, n)


@functools.cache
def all_pixels() -> Array:
    """Return the pixels of all pictures with 8-bit colours, shuffled with a fixed seed: (rows, 5) float32."""
    parts: list[Array] = []
    left = 0
    for image in colour_photographs():
        height, width = image.shape[:2]
        y, x = np.mgrid[:height, :width]
        parts.append(np.dstack([image, x + left, y]).reshape(-1, 5).astype(np.float32))
        left += width
    rows = np.concatenate(parts)
    return rows[np.random.default_rng(0).permutation(len(rows))]


def colour_photographs(side: int | None = None) -> list[Array]:
    """Return the pictures with 8-bit colours, uint8 arrays of shape (height, width, 3).

    With ``side``, larger pictures are shrunk until no side exceeds this number of pixels.
    """
    from PIL import Image, UnidentifiedImageError

    found = []
    for path in _photographs():
        try:
            opened = Image.open(path)
        # the picture does not have 8-bit colours, for example a TIFF of several channels
        except UnidentifiedImageError:
            continue
        with opened as image:
            if image.mode != "RGB":
                continue
            shrink = max(image.size) / side if side else 1.0
            if shrink > 1:
                width, height = (max(1, round(length / shrink)) for length in image.size)
                found.append(np.array(image.resize((width, height), Image.Resampling.BOX)))
            else:
                found.append(np.array(image))
    return found


def real_rows(total: int, n: int, m: int) -> tuple[int, int]:
    """Divide ``total`` real rows between points and queries; return the number of rows that each gets.

    If there are enough real rows, all n points and m queries are real. Otherwise the points have at least five sixths
    of the real rows, or n if that is less, so that they keep the structure of real data.
    """
    points = n if n + m <= total else min(n, max(total - m, total * 5 // 6))
    return points, min(m, total - points)


def _extended(real: Array, n: int, m: int, rng: np.random.Generator, noise: Callable[[Any], Array]) -> Array:
    """Return n points followed by m queries; each of the two consists of real rows, then displaced copies of them."""
    if n + m <= len(real):
        return np.ascontiguousarray(real[: n + m])
    points, queries = real_rows(len(real), n, m)
    rows = np.empty((n + m, real.shape[1]), np.float32)
    for source, target in ((real[:points], rows[:n]), (real[points : points + queries], rows[n:])):
        target[: len(source)] = source
        for part in blocks(target[len(source) :]):
            part[:] = source[rng.integers(len(source), size=len(part))] + noise(part.shape)
    return rows
