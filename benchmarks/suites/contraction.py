"""Share of points that contracted rows do not rule out (survivors), by their number of columns, on five kinds of data.

Nothing is timed. A case counts the points whose contracted distance, that of f(x) = (V^T x', rest) in p columns
(docs/contraction.md), is at most the query's k-th distance. As in a search, V has the principal directions of a sample.
The k-th distance is exact, so no search can have fewer survivors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..harness.case import Case, Suite
from ..harness.datasets import gist, hard, made_up
from ..harness.plots import Figure, Panel, where
from ..harness.proof import WrongAnswer
from ..harness.rows import Row, newest
from ..harness.run import Run

WIDTHS = (8, 16, 32, 64, 96, 128, 256)
PILOTS = 200
K = 10
LEFT = "left"  # name of the entry of extras with the share of survivors for each number of columns
_KINDS = {"SIFT": "sift", "filter responses": "gist", "topics": "topics", "Gaussian": "gaussian"}


def points_of(case: Case) -> np.ndarray:
    """Return the rows of a case."""
    if case.data == "clustered":
        return made_up.clustered(case.n, 0, case.d).points
    made: np.ndarray = hard.make(_KINDS[case.data], case.n, 0, case.d, "cpu").points.numpy()
    return made


def survivors(run: Run, case: Case) -> None:
    """Measure the shares of survivors on one kind of data; write its row."""
    from tonari.core import _native

    points = np.ascontiguousarray(points_of(case))
    n, d = points.shape
    pilots = np.arange(0, n, -(-n // PILOTS))
    found = run.tonari.search(points[pilots], points, case.k + 1, metric="sqeuclidean", threads=run.threads)
    kth = found.distances[:, -1:].astype(np.float64)  # the nearest point is the row itself
    form = _native.Form("euclidean", points.mean(axis=0, dtype=np.float64).tolist(), 1.0)
    left: dict[str, float] = {}
    for columns in (width for width in WIDTHS if width < d):
        rows = np.empty((n, columns))
        form.contracted(points, -(-n // 2048), columns).screened_rows(points, 1, rows)
        squares = np.einsum("ij,ij->i", rows, rows)
        lower = squares[pilots, None] + squares - 2 * rows[pilots] @ rows.T
        # The margin allows for the rounding of the k-th value to float32, and for sums that are added in another order
        # here.
        within = np.count_nonzero(lower <= kth * (1 + 1e-6) + 1e-9 * squares, axis=1)
        if within.min() < case.k:
            raise WrongAnswer(f"{columns} columns leave {within.min()} points, fewer than the {case.k} neighbours")
        left[str(columns)] = float((within.mean() - 1) / n)
    extras = {LEFT: left, "length": float(np.sqrt(np.median(kth) / np.median(squares)))}
    proof = "as many as there are neighbours"
    run.write(case, [{"who": "tonari", "proof": proof, "proved": len(pilots), "extras": extras}])


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Draw the share of survivors against the number of columns, from the newest run on each kind of data."""
    found = newest([row for row in rows if row["extras"] and row["scale"] == 1], "case")
    if not found:
        return
    curves = {
        f"{row['data']} x {row['d']}": [(int(columns), 100 * share) for columns, share in row["extras"][LEFT].items()]
        for row in found
    }
    panel = Panel("points left to be compared exactly", "columns p", "% of all", curves)
    heading = f"contracted rows, k = {K}; {where(found[-1])}, {found[-1]['commit']}"
    yield Figure("contraction-survivors", heading, found, [panel])


def _case(data: str, d: int) -> Case:
    name = f"{data.lower().replace(' ', '-')}-{d}"
    return Case(name, "cpu", 50_000, PILOTS, d, K, data=data, work=survivors, cost=20)


SUITE = Suite(
    "contraction",
    "contraction",
    (
        _case("SIFT", 128),
        _case("clustered", 784),
        _case("filter responses", gist.WIDTH),
        _case("topics", 768),
        _case("Gaussian", 128),
    ),
    libraries=("tonari", "numpy"),
    torch=False,
    figures=figures,
)
