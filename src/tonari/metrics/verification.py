"""Verification: the comparison of a caller's neighbour lists with the exact lists, and the report of differences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tonari.core.results.neighbors import Neighbors
from tonari.metrics import get_metric
from tonari.metrics.recall import SLACK_UNITS, Recall, near_entries, recall_of, rounding, shared_entries

Float64 = npt.NDArray[np.float64]

# For each metric, the quantities that other libraries return under its name: a conversion of tonari's values to the
# quantity, and the quantity's description for the report.
_OTHER_VALUES: dict[str, tuple[tuple[Any, str], ...]] = {
    "euclidean": ((np.square, 'squared distances: verify them with metric="sqeuclidean"'),),
    "sqeuclidean": ((np.sqrt, 'square roots: verify them with metric="euclidean"'),),
    "cosine": ((lambda v: 1 - v, "similarities: pass 1 - distances"),),
    "correlation": ((lambda v: 1 - v, "similarities: pass 1 - distances"),),
    "inner_product": (
        (np.negative, "negated inner products: pass -distances"),
        (lambda v: 1 - v, "1 minus the inner product: pass 1 - distances"),
    ),
    "haversine": ((np.degrees, "degrees: pass numpy.radians(distances)"),),
}


@dataclass(frozen=True)
class DistanceErrors:
    """The differences between the caller's distances and the exact distances of the listed points.

    Attributes
    ----------
    wrong : int
        Number of distances that differ from the exact value by more than four roundings of their dtype.
    compared : int
        Number of distances compared.
    largest : float
        The largest difference; inf for a distance that is not a number.
    row, point : int
        The query and the listed point of the largest difference.
    given, exact : float
        The caller's distance and the exact distance of that point.
    dtype : str
        The less precise of the dtypes of the caller's and the exact distances.
    looks_like : str
        A description of the quantity that most of the caller's numbers seem to be, such as squared distances; "" if
        they are distances, or if the quantity is unknown.
    """

    wrong: int
    compared: int
    largest: float
    row: int
    point: int
    given: float
    exact: float
    dtype: str
    looks_like: str

    def __str__(self) -> str:
        units = f"{SLACK_UNITS} roundings of {self.dtype}"
        if not self.wrong:
            return f"all {self.compared:,} within {units}"
        text = (
            f"{self.wrong:,} of {self.compared:,} differ from the exact value by more than {units}; the largest "
            f"difference is {self.largest:.3g} (row {self.row}, point {self.point}: {self.given:.8g} given, "
            f"{self.exact:.8g} exact)"
        )
        return f"{text}\n{'':20}they look like {self.looks_like}" if self.looks_like else text


@dataclass(frozen=True)
class WorstRow:
    """A row whose list lacks true neighbours.

    Attributes
    ----------
    row : int
    missed : int
        Number of its true neighbours that it does not list.
    listed : float
        The exact value of the farthest point that it lists; for "inner_product" the smallest similarity.
    true : float
        The value of its true k-th neighbour.
    """

    row: int
    missed: int
    listed: float
    true: float


@dataclass(frozen=True)
class Verification:
    """The differences between the caller's neighbour lists and the exact ones, on a sample of rows.

    Attributes
    ----------
    recall : Recall
        ``recall.by_distance`` counts any of several tied points; ``recall.by_index`` counts only the smaller indices.
    of_rows : int
        Number of lists that the caller passed; ``recall.rows`` of them were compared.
    metric : str
    farther : int
        Number of listed points that are farther than the true k-th neighbour.
    tied : int
        Number of listed points that are as near as the true k-th neighbour, but not in the exact list, where ties go to
        the smaller index. They are not errors.
    missing : int
        Number of entries that are -1 although a neighbour exists.
    invalid : int
        Number of entries that are not row numbers of the points.
    repeated : int
        Number of entries that repeat a point of their row.
    itself : int
        Number of entries that list the row itself. Always 0 if queries were given.
    unsorted_rows : int
        Number of rows whose points are not listed nearest first.
    distances : DistanceErrors, optional
        None if the caller passed no distances.
    worst : tuple of WorstRow
        Up to five rows that lack the most neighbours.
    """

    recall: Recall
    of_rows: int
    metric: str
    farther: int
    tied: int
    missing: int
    invalid: int
    repeated: int
    itself: int
    unsorted_rows: int
    distances: DistanceErrors | None
    worst: tuple[WorstRow, ...]

    @property
    def exact(self) -> bool:
        """Whether every compared row lists its k nearest points, where any choice among tied points is accepted."""
        return not (self.farther or self.missing or self.invalid or self.repeated or self.itself)

    def __str__(self) -> str:
        r = self.recall
        of = f"{r.rows:,} of {self.of_rows:,} rows, k={r.k}, {self.metric}"
        lines = [("recall by distance", f"{r.by_distance:.8g}, 95 % interval {r.low:.8g} to {r.high:.8g}; {of}")]
        ties = f": {self.tied:,} entries are ties with points of smaller index" if self.tied else ""
        lines.append(("recall by index", f"{r.by_index:.8g}{ties}"))
        faults = [
            (self.farther, "farther than the true k-th neighbour"),
            (self.missing, "missing (-1)"),
            (self.invalid, "no row of the points"),
            (self.repeated, "repeated in their row"),
            (self.itself, "the row itself"),
        ]
        wrong = ", ".join(f"{count:,} {fault}" for count, fault in faults if count)
        lines.append(("entries", wrong or "every listed point is one of the k nearest"))
        if self.unsorted_rows:
            lines.append(("order", f"{self.unsorted_rows:,} rows are not listed nearest first"))
        if self.distances is not None:
            lines.append(("distances", str(self.distances)))
        for i, w in enumerate(self.worst):
            text = (
                f"row {w.row} misses {w.missed} of {r.k}: it lists up to {w.listed:.8g}, the true k-th is {w.true:.8g}"
            )
            lines.append(("worst rows" if i == 0 else "", text))
        return "\n".join(f"{name:20}{text}" for name, text in lines)


def verified(
    given: Neighbors,
    values: npt.NDArray[Any],
    truth: Neighbors,
    rows: npt.NDArray[np.int64],
    *,
    n: int,
    of_rows: int,
    metric: str,
    own: bool,
) -> Verification:
    """Compare the lists of a sample of rows with their true neighbours.

    Parameters
    ----------
    given : Neighbors of shape (r, k)
        The caller's lists, with int64 indices; distances are None if the caller passed only indices.
    values : floats of shape (r, k)
        The exact distances of the listed points, in the dtype of the truth; arbitrary where no point is listed.
    truth : Neighbors of shape (r, k)
        The true neighbours.
    rows : int64 of shape (r,)
        The row numbers of the sampled lists.
    n, of_rows : int
        Number of points, and number of rows from which the sample was drawn.
    metric : str
        The metric of the values.
    own : bool
        Whether the rows are points, which are not their own neighbours.
    """
    listed = given.indices
    points = (listed >= 0) & (listed < n)
    itself = points & (listed == rows[:, None]) if own else np.zeros_like(points)
    repeated = points & _repeats(listed)
    counted = points & ~itself & ~repeated
    found = Neighbors(values, np.where(counted, listed, -1))
    near = near_entries(found, truth, metric)
    descending = get_metric(metric).descending
    nowhere = np.inf if descending else -np.inf
    return Verification(
        recall=recall_of(found, truth, metric, rows, of_rows),
        of_rows=of_rows,
        metric=metric,
        farther=int((counted & ~near).sum()),
        tied=int((near & ~shared_entries(found, truth, metric)).sum()),
        missing=int(((listed == -1) & (truth.indices >= 0)).sum()),
        invalid=int((~points & (listed != -1)).sum()),
        repeated=int((repeated & ~itself).sum()),
        itself=int(itself.sum()),
        unsorted_rows=int(_unsorted(values, points, descending=descending).sum()),
        distances=None if given.distances is None else _errors(given, values, points, rows, metric),
        worst=_worst(near, np.where(counted, values, nowhere), truth, rows, descending=descending),
    )


def _repeats(listed: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return a mask of the entries whose point is already listed earlier in the same row."""
    order = np.argsort(listed, axis=1, kind="stable")
    ascending = np.take_along_axis(listed, order, axis=1)
    again = np.zeros(listed.shape, bool)
    again[:, 1:] = ascending[:, 1:] == ascending[:, :-1]
    repeats = np.empty_like(again)
    np.put_along_axis(repeats, order, again, axis=1)
    return repeats


def _unsorted(values: npt.NDArray[Any], points: npt.NDArray[np.bool_], *, descending: bool) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that list a point after a clearly farther point; invalid entries are ignored."""
    ascending = np.where(points, -values if descending else values, -np.inf).astype(np.float64)
    before, after = np.maximum.accumulate(ascending, axis=1)[:, :-1], ascending[:, 1:]
    slack = SLACK_UNITS * rounding(values.dtype) * np.abs(before, where=np.isfinite(before), out=np.zeros_like(before))
    return np.asarray((points[:, 1:] & (after < before - slack)).any(axis=1))


def _errors(
    given: Neighbors,
    values: npt.NDArray[Any],
    points: npt.NDArray[np.bool_],
    rows: npt.NDArray[np.int64],
    metric: str,
) -> DistanceErrors:
    """Compare the caller's distances with the exact ones of all listed points."""
    at, column = np.nonzero(points)
    theirs, ours = given.distances[points].astype(np.float64), values[points].astype(np.float64)
    dtype = max((given.distances.dtype, values.dtype), key=rounding)
    with np.errstate(invalid="ignore"):
        difference: Float64 = np.abs(theirs - ours)
    difference[np.equal(theirs, ours)] = 0  # equal infinities count as equal, although their difference is NaN
    difference[np.isnan(difference)] = np.inf
    if not len(ours):
        return DistanceErrors(0, 0, 0.0, -1, -1, np.nan, np.nan, str(dtype), "")
    place = int(difference.argmax())
    slack = SLACK_UNITS * rounding(dtype) * np.abs(ours)
    return DistanceErrors(
        wrong=int(np.count_nonzero(difference > slack)),
        compared=len(ours),
        largest=float(difference[place]),
        row=int(rows[at[place]]),
        point=int(given.indices[at[place], column[place]]),
        given=float(theirs[place]),
        exact=float(ours[place]),
        dtype=str(dtype),
        looks_like=_looks_like(theirs, ours, metric),
    )


def _looks_like(theirs: Float64, ours: Float64, metric: str) -> str:
    """Describe the caller's numbers if most of them are a known quantity other than the distances.

    Otherwise return "".
    """
    if _mostly_alike(theirs, ours):
        return ""
    for convert, description in _OTHER_VALUES.get(metric, ()):
        if _mostly_alike(theirs, convert(ours)):
            return description
    return ""


def _mostly_alike(theirs: Float64, ours: Float64) -> bool:
    # Two float32 computations of a distance differ by a smaller share than rtol; a distance and its square differ by
    # more.
    return bool(2 * np.isclose(theirs, ours, rtol=1e-3, atol=0).sum() > len(ours))


def _worst(
    near: npt.NDArray[np.bool_],
    values: npt.NDArray[Any],
    truth: Neighbors,
    rows: npt.NDArray[np.int64],
    *,
    descending: bool,
) -> tuple[WorstRow, ...]:
    """Return the rows that lack the most neighbours; among equal counts, rows with the farthest points come first."""
    missed = near.shape[1] - near.sum(axis=1)
    last = (values.min(axis=1) if descending else values.max(axis=1)).astype(np.float64)
    true = truth.distances[:, -1].astype(np.float64)
    with np.errstate(invalid="ignore"):
        beyond = np.nan_to_num(true - last if descending else last - true)
    order = np.lexsort((rows, -beyond, -missed))[:5]
    return tuple(WorstRow(int(rows[i]), int(missed[i]), float(last[i]), float(true[i])) for i in order if missed[i] > 0)
