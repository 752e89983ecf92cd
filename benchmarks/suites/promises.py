"""Measurements of the promises of README.md: recall on hard data, ties, UMAP's weights, and memory.

Nothing is timed. There are five kinds of cases, all on one CPU:

    offset    Gaussian rows with a number added to all entries: recall of tonari and of peers, against the number
    tight     clouds of N(0, 1) around far centres: recall, against the distance between the centres
    weights   UMAP's weights from tonari's neighbours and from scikit-learn's, whose distance of a row to itself is
              rarely 0: the mean weight of the i-th neighbour
    ties      rows of whole numbers, with many equal distances: the share of lists in the order of (distance, row
              number), against the number of different values of an entry
    memory    the planned and the measured memory of searches, against the limit ``memory=``

All libraries get float32 rows. faiss (for many queries, as here) and torch.cdist compute |q|² + |x|² - 2 <q, x> in
float32; scikit-learn converts blocks of rows to float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..harness.case import Case, Suite
from ..harness.memory import Peak
from ..harness.peers.cpu import PEERS
from ..harness.plots import Figure, Panel, where
from ..harness.proof import WrongAnswer
from ..harness.rows import Row, newest
from ..harness.run import Run

OFFSETS = (1, 10, 100, 1e3, 1e4, 1e5)
APART = (1, 10, 100, 1e3, 1e4, 1e5)
CLOUDS = 20
VALUES = (2, 3, 4, 8, 16, 64, 256)
MEGABYTES = (20, 30, 40, 60, 80, 120)
NAMES = {
    "torch cdist": "torch.cdist",
    "faiss": "faiss",
    "sklearn": "scikit-learn",
    "tonari": "tonari",
}
MEASURED = 500  # number of queries whose true neighbours are computed
# Name of the entry of extras with the mean weights of the 1st, 2nd, ... neighbour.
WEIGHTS = "weights"
UMAP_NEIGHBORS = 15


def rows_of(case: Case, value: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points and queries, rounded once to float32; `value` is the offset, or scales the clouds' centres."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((case.n + case.m, case.d))
    if case.data == "offset":
        rows += value
    else:
        rows += value * rng.standard_normal((CLOUDS, case.d))[rng.integers(CLOUDS, size=len(rows))]
    rows = rows.astype(np.float32)
    return rows[: case.n], rows[case.n :]


def by_cdist(points: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """Return the neighbours that torch.cdist finds, from float32 products."""
    import torch

    mode = "use_mm_for_euclid_dist"
    found = torch.cdist(torch.from_numpy(queries), torch.from_numpy(points), compute_mode=mode).topk(k, largest=False)
    indices: np.ndarray = found.indices.numpy()
    return indices


def recall(run: Run, case: Case) -> None:
    """Measure the recall of each contestant for each offset, or for each distance between the centres."""
    from tonari.metrics.recall import neighbors_recall
    from tonari.metrics.reference import brute, returned, values_at

    for value in OFFSETS if case.data == "offset" else APART:
        points, queries = rows_of(case, value)
        some = queries[:MEASURED]
        truth = brute(some, points, case.k, "euclidean")

        def measured(indices: Any, points: Any = points, queries: Any = some, truth: Any = truth) -> float:
            """Return the recall of lists: the share of points that are no farther than the k-th true neighbour."""
            distances = returned(values_at(queries, points, indices, "euclidean"), np.float32)
            order = np.argsort(distances, axis=1, kind="stable")
            lists = (np.take_along_axis(rows, order, axis=1) for rows in (distances, np.asarray(indices)))
            return float(neighbors_recall(type(truth)(*lists), truth).by_distance)

        parameters = {"value": value}
        found = run.tonari.search(some, points, case.k, **run.options())
        if not np.array_equal(found.indices, truth.indices):
            raise WrongAnswer(f"{case.data} {value}: other neighbours than by the definition")
        shared = {"parameters": parameters, "proof": "all distances in float64", "proved": len(some)}
        run.write(case, [shared | {"who": "tonari", "recall": measured(found.indices)}])
        for name in case.peers:
            peer = PEERS[name]
            if run.wants(name) and peer.missing() is None:
                _, indices = peer.prepare(points, "euclidean", run.threads or 1)(queries, case.k)
                run.write(case, [shared | {"who": name, "recall": measured(indices[:MEASURED])}])
        if run.wants("torch cdist"):
            run.write(case, [shared | {"who": "torch cdist", "recall": measured(by_cdist(points, some, case.k))}])


def weights(run: Run, case: Case) -> None:
    """Measure UMAP's directed weights from the lists of tonari and of scikit-learn."""
    from umap.umap_ import smooth_knn_dist

    points = 10 * np.random.default_rng(0).standard_normal((case.n, case.d), dtype=np.float32)
    ours = run.tonari.knn_graph(points, UMAP_NEIGHBORS - 1, **run.options()).to_umap()[1]
    theirs, _ = PEERS["sklearn"].prepare(points, "euclidean", run.threads or 1)(points, UMAP_NEIGHBORS)
    for who, distances in (("tonari", ours), ("sklearn", np.ascontiguousarray(theirs, np.float32))):
        sigmas, rhos = smooth_knn_dist(distances, float(UMAP_NEIGHBORS))
        each = np.exp(-np.maximum(distances[:, 1:] - rhos[:, None], 0) / sigmas[:, None]).mean(axis=0)
        extras = {
            WEIGHTS: [round(float(one), 6) for one in each],
            "selves_above_0": float((distances[:, 0] > 0).mean()),
            "rho": float(rhos.mean()),
            "sigma": float(sigmas.mean()),
        }
        run.write(case, [{"who": who, "extras": extras, "proof": "the same neighbours", "proved": case.n}])


def ties(run: Run, case: Case) -> None:
    """Measure the share of lists in the order of (distance, row number), for each number of different values."""
    from tonari.metrics.reference import brute

    for values in VALUES:
        rng = np.random.default_rng(0)
        rows = rng.integers(values, size=(case.n + case.m, case.d)).astype(np.float32)
        points, queries = rows[: case.n], rows[case.n :]
        truth = brute(queries[:MEASURED], points, case.k, "euclidean").indices
        shared = {"parameters": {"value": values}, "proof": "all distances in float64", "proved": len(truth)}

        def ordered(indices: Any, truth: Any = truth) -> dict[str, float]:
            return {"ordered": float((np.asarray(indices)[:MEASURED] == truth).all(axis=1).mean())}

        found = run.tonari.search(queries, points, case.k, **run.options()).indices
        if ordered(found)["ordered"] < 1:
            raise WrongAnswer(f"{values} values: another order than (distance, row number)")
        run.write(case, [shared | {"who": "tonari", "extras": ordered(found)}])
        for name in case.peers:
            if run.wants(name) and PEERS[name].missing() is None:
                _, indices = PEERS[name].prepare(points, "euclidean", run.threads or 1)(queries, case.k)
                run.write(case, [shared | {"who": name, "extras": ordered(indices)}])
        if run.wants("torch cdist"):
            run.write(case, [shared | {"who": "torch cdist", "extras": ordered(by_cdist(points, queries, case.k))}])


def memory(run: Run, case: Case) -> None:
    """Measure the peak memory of searches for each memory limit, and record their planned memory."""
    rng = np.random.default_rng(0)
    points, queries = (rng.standard_normal((count, case.d), dtype=np.float32) for count in (case.n, case.m))
    # a first search, which loads modules, is not measured
    run.tonari.search(queries[:10], points[:1000], case.k, **run.options())
    for limit in MEGABYTES:
        limited = {"memory": limit * 10**6, "method": "exact"}
        plan = run.tonari.plan(case.n, case.m, case.d, case.k, threads=run.threads, **limited)
        peak = Peak("cpu")
        run.tonari.search(queries, points, case.k, **run.options(), **limited)
        row = {"who": "tonari", "peak_bytes": peak.bytes(), "extras": {"planned": plan.total_bytes}}
        run.write(case, [row | {"parameters": {"value": limit}, "proof": "none: only memory is measured"}])


def figures(rows: Sequence[Row]) -> Iterator[Figure]:
    """Draw the newest run of each case: recall against offset and distance, weights by rank, ties, and memory."""
    found = newest([row for row in rows if row["scale"] == 1 and not row["note"]], "case")
    for case, title, axis in (
        ("offset", "far from the origin", "number added to every entry"),
        ("tight", "tight clusters", "distance of the centres, in radii"),
    ):
        own = [row for row in found if row["case"] == case]
        if own:
            curves = {
                name: [(row["parameters"]["value"], row["recall"]) for row in own if row["who"] == who]
                for who, name in NAMES.items()
            }
            panel = Panel(title, axis, f"recall at {own[0]['k']}", curves, log_y=False, base=10)
            yield Figure(f"recall-{case}", f"float32 rows, {own[0]['d']} columns, exact search", own, [panel])
    own = [row for row in found if row["case"] == "weights"]
    if own:
        names = {"tonari": "self at exactly 0 (tonari)", "sklearn": "self at a rounding error (scikit-learn)"}
        curves = {names[row["who"]]: list(enumerate(row["extras"][WEIGHTS], 1)) for row in own}
        panel = Panel("UMAP's weights", "neighbour", "mean weight", curves, log_x=False, log_y=False)
        yield Figure("umap-weights", f"the same neighbours; {where(own[-1])}", own, [panel])
    own = [row for row in found if row["case"] == "ties"]
    if own:
        curves = {
            name: [(row["parameters"]["value"], row["extras"]["ordered"]) for row in own if row["who"] == who]
            for who, name in NAMES.items()
        }
        panel = Panel("ties", "different values of an entry", "share of lists in order", curves, log_y=False)
        heading = f"lists by (distance, row number); whole numbers, {own[0]['d']} columns; {where(own[-1])}"
        yield Figure("ties", heading, own, [panel])
    own = [row for row in found if row["case"] == "memory"]
    if own:
        limits = [row["parameters"]["value"] for row in own]
        curves = {
            "limit": [(limit, float(limit)) for limit in limits],
            "planned": [(row["parameters"]["value"], row["extras"]["planned"] / 1e6) for row in own],
            "measured": [(row["parameters"]["value"], row["peak_bytes"] / 1e6) for row in own],
        }
        panel = Panel("memory of a search", "memory=, in MB", "MB beyond the input", curves, log_x=False, log_y=False)
        heading = f"{own[0]['m']:,} queries, {own[0]['n']:,} points of {own[0]['d']} columns; {where(own[-1])}"
        yield Figure("memory", heading, own, [panel])


def _hard(data: str) -> Case:
    return Case(data, "cpu", 20_000, 20_000, 64, 10, recall, data=data, peers=("faiss", "sklearn"), cost=60)


SUITE = Suite(
    "promises",
    "promises",
    (
        _hard("offset"),
        _hard("tight"),
        Case("ties", "cpu", 20_000, 2_000, 8, 10, ties, data="integers", peers=("faiss", "sklearn"), cost=30),
        Case("memory", "cpu", 200_000, 5_000, 64, 10, memory, cost=30),
        Case("weights", "cpu", 10_000, 10_000, 50, UMAP_NEIGHBORS - 1, weights, cost=30),
    ),
    libraries=("tonari", "numpy", "faiss-cpu", "scikit-learn", "torch", "umap-learn"),
    torch=False,
    figures=figures,
)
