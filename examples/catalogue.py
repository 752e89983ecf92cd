"""Estimate the redshifts of the galaxies in a file from the galaxies with the nearest magnitudes.

Galaxies with a measured spectrum have a known redshift. For all others the redshift is estimated as the mean redshift
of the k galaxies with spectra whose magnitudes in five bands (u, g, r, i, z) are nearest. Catalogues of sky surveys
have a billion rows, so queries are read, searched and written chunk by chunk, in bounded memory. If the search was
interrupted, run the program again, and it resumes.

The galaxies are synthetic: smooth spectra of two families that redden with redshift, with noise that grows with the
magnitude.

python examples/catalogue.py
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

import tonari
import tonari.io

OUTPUT = Path(__file__).parent.parent / "demo-output"
ROWS_AT_ONCE = 1 << 20


def galaxies(rows: int, seed: int) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Draw magnitudes (rows, 5) and redshifts (rows,) of synthetic galaxies."""
    rng = np.random.default_rng(seed)
    redshift = rng.gamma(3.0, 0.08, rows).astype(np.float32)
    red = (rng.random(rows) < 0.5).astype(np.float32)  # old stars or young stars
    brightness = 17.5 + 2.5 * np.log10(0.02 + redshift) + rng.normal(2.0, 0.7, rows)
    # Colours u-g, g-r, r-i, i-z: a break in the spectrum moves through the bands as the redshift grows.
    slope = np.array([1.2, 2.6, 1.1, 0.6], np.float32)
    turn = np.array([0.15, 0.35, 0.65, 0.95], np.float32)
    base = np.array([1.1, 0.6, 0.3, 0.2], np.float32)
    step = np.tanh((redshift[:, None] - turn) * 6.0)
    colours = base + (0.35 + 0.65 * red[:, None]) * (0.35 * slope * (1 + step)) + 0.05 * rng.standard_normal((rows, 4))
    offsets = np.cumsum(np.hstack([np.zeros((rows, 1)), colours]), axis=1)
    magnitudes = brightness[:, None] + offsets[:, 2:3] - offsets
    noise = 0.01 * 10 ** (0.2 * (magnitudes - 19.0))
    return (magnitudes + noise * rng.standard_normal((rows, 5))).astype(np.float32), redshift


def write_catalogue(path: Path, rows: int, seed: int) -> npt.NDArray[np.float32]:
    """Write the magnitudes of a catalogue and return its redshifts."""
    magnitudes = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(rows, 5))
    redshifts = np.empty(rows, np.float32)
    for number, first in enumerate(range(0, rows, ROWS_AT_ONCE)):
        here = slice(first, min(rows, first + ROWS_AT_ONCE))
        magnitudes[here], redshifts[here] = galaxies(here.stop - first, seed + number)
    magnitudes.flush()
    return redshifts


def estimate(found: tonari.Neighbors, redshifts: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the mean redshift of every row's neighbours; the files may be of any size."""
    means = np.empty(len(found.indices), np.float32)
    for first in range(0, len(means), ROWS_AT_ONCE):
        here = slice(first, first + ROWS_AT_ONCE)
        means[here] = redshifts[found.indices[here]].mean(axis=1)
    return means


def main(arguments: list[str] | None = None) -> None:
    """Write the catalogues, search, average, and compare with the truth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--spectra", type=int, default=1_000_000, help="galaxies with spectra, hence known redshifts")
    parser.add_argument("--images", type=int, default=10_000_000, help="galaxies without spectra")
    parser.add_argument("-k", type=int, default=10, help="neighbours per galaxy")
    parser.add_argument("--device", default="auto", help="where to search, such as cpu or cuda")
    parser.add_argument("--folder", type=Path, default=OUTPUT, help="where files are written")
    given = parser.parse_args(arguments)
    given.folder.mkdir(exist_ok=True)
    spectra, images = given.folder / "spectra.npy", given.folder / "images.npy"

    started = time.perf_counter()
    known = write_catalogue(spectra, given.spectra, seed=1_000_000)
    truth = write_catalogue(images, given.images, seed=2_000_000)
    print(f"{given.spectra:,} galaxies with spectra, {given.images:,} without: {time.perf_counter() - started:.1f} s")

    started = time.perf_counter()
    index = tonari.Index(tonari.io.read(spectra), device=given.device)
    prepared = time.perf_counter()
    out = tonari.search_to_file(images, index, given.k, given.folder / "neighbours.ibin")
    seconds = time.perf_counter() - prepared
    print(f"{index}: prepared in {prepared - started:.1f} s")
    print(
        f"{given.k} neighbours each, file to file, in {seconds:.1f} s: {given.images / seconds:,.0f} queries a second"
    )

    estimated = estimate(tonari.io.read_ground_truth(out), known)
    errors = (estimated - truth) / (1 + truth)
    spread = 1.4826 * np.median(np.abs(errors - np.median(errors)))
    print(
        f"mean redshift of the neighbours: spread of the error {spread:.4f} (1 + z), "
        f"{np.mean(np.abs(errors) > 0.15):.2%} wrong by more than 0.15 (1 + z); "
        f"the mean redshift of all galaxies would be off by {np.std(truth):.3f}"
    )


if __name__ == "__main__":
    main()
