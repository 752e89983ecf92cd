"""The contestants that make graphs of a case's points: tonari's NN-Descent, exact search and auto, and the peers.

Every contestant first makes a small graph, which compiles all kernels, and then a graph of all points, whose lists are
verified.
"""

from __future__ import annotations

import warnings
from typing import Any, Protocol

from ...harness.case import Case
from ...harness.datasets import clusters
from ...harness.peers import graphs as peers
from ...harness.proof import WrongAnswer
from ...harness.proof.graph import GraphTruth
from ...harness.proof.neighbors import Answer, as_answer
from ...harness.rows import Row, merged, settings
from ...harness.run import Run

DESCENT, EXACT, AUTO = "tonari nn_descent", "tonari exact", "tonari auto"
PROOF = "distances of tonari.metrics.reference"
SEED = 0
# Number of points on which recall is measured.
SAMPLE = {"cpu": 2000, "cuda": 4000}
# Number of points in the small graph that compiles all kernels.
WARM_ROWS = 20_000


def points_of(run: Run, case: Case) -> Any:
    """Return the points of a case as a tensor; successive cases share them."""
    shape = (case.data, case.n, case.d, case.dtype)
    return run.keep(shape, lambda: clusters.make(*shape, run.where))


def truth_of(run: Run, case: Case) -> GraphTruth:
    """Return the true neighbours of sampled points of a case, which are stored together with the points."""
    points = points_of(run, case)
    k = max(case.k, case.truth_k)
    sample = SAMPLE[run.device.kind]
    found: GraphTruth = run.also(
        ("truth", k), lambda: GraphTruth(run.tonari, points, k, sample, run.device.values, run.options())
    )
    return found


def report_columns(found: Any) -> dict[str, Any]:
    """Return extras about a build, from its report; {} if it has none."""
    if found is None:
        return {}
    return {
        "estimate": found.estimate.by_distance,
        "estimate_low": found.estimate.low,
        "estimate_high": found.estimate.high,
        "reached": found.reached,
        "start": found.start,
        "rounds": len(found.rounds),
        "phi": [float(f"{one.phi:.6g}") for one in found.rounds],
        "changed": [int(one.changed) for one in found.rounds],
    }


class Contestant(Protocol):
    """A library or method that builds graphs of a case's points."""

    name: str
    share: float  # share of the points for which the timed call finds neighbours
    settings: dict[str, Any]

    def warm(self) -> dict[str, Any]:
        """Compile all kernels; return columns about the compilation."""

    def call(self) -> None:
        """Build the graph once; this call is timed."""

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        """Return columns about the last graph; raise WrongAnswer if it is wrong."""


class OurGraph:
    """A graph by ``tonari.knn_graph``; settings that are not arguments of this function override fields of the plan."""

    share = 1.0
    arguments = ("method", "recall", "seed", "start")

    def __init__(self, run: Run, case: Case, name: str, **settings: Any) -> None:
        self.name, self.settings = name, settings
        self._run, self._case = run, case
        self._points = points_of(run, case)
        self._made: Any = None
        self._proved: Answer | None = None

    def _graph(self, rows: int | None) -> Any:
        run, case = self._run, self._case
        points = self._points[:rows]
        settings = dict(self.settings)
        given = {name: settings.pop(name) for name in self.arguments if name in settings}
        given |= self._options()
        if settings:
            progress, n = given.pop("progress"), len(points)
            place = {"device": run.where} if run.cuda else {}
            plan = run.tonari.plan(n, n, case.d, case.k, dtype=case.dtype, **place, **given, **settings)
            given = {"method": given["method"], "progress": progress, "plan": plan}
        with warnings.catch_warnings():
            # ignores the warning about a missed recall, because the row records the recall
            warnings.simplefilter("ignore", UserWarning)
            return run.tonari.knn_graph(run.device.values(points), case.k, **given)

    def _options(self) -> dict[str, Any]:
        return self._run.options()

    def warm(self) -> dict[str, Any]:
        if self._case.n > WARM_ROWS:
            self._graph(WARM_ROWS)
        return {}

    def make(self) -> Any:
        """Return the graph of all points."""
        return self._graph(None)

    def call(self) -> None:
        self._made = None
        self._made = self.make()

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        """Verify the first graph; check that every later build has the same bits."""
        found = as_answer(self._made, self._run.where)
        if self._proved is not None:
            same(found, self._proved)
            return {}
        self._proved = found
        return self._facts(truth, found)

    def _facts(self, truth: GraphTruth, found: Answer) -> dict[str, Any]:
        k, method = self._case.k, self._made.method
        exact = method != "nn-descent"
        proved = truth.check_exact(found, k) if exact else truth.check(found, k)
        ids = sampled(found, truth)
        facts: Row = {"proof": PROOF, "proved": proved}
        if self.name == AUTO:
            facts["note"] = f"auto chose {method}"
        report = report_columns(getattr(self._made, "report", None))
        return merged(facts, truth.columns(ids, k), {"extras": report})


class ExactSlice:
    """Exact search for the first rows of a graph, scaled to all rows; the points are packed before the clock starts."""

    def __init__(self, run: Run, case: Case, rows: int) -> None:
        self.name, self.share = EXACT, rows / case.n
        self.settings: dict[str, Any] = {}
        self._run, self._case = run, case
        self._queries = run.device.values(points_of(run, case)[:rows])
        self._index: Any = None

    def warm(self) -> dict[str, Any]:
        # the index is made only now, because other contestants needed the memory before
        points = self._run.device.values(points_of(self._run, self._case))
        self._index = self._run.tonari.Index(points, method="exact", **self._run.options())
        self.call()
        return {}

    def call(self) -> None:
        self._index.search(self._queries, self._case.k + 1, **self._run.options())

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        ends = ("", "_low", "_high")
        recalls = dict.fromkeys([f"recall{end}" for end in ends], 1.0)
        extras = dict.fromkeys([f"recall_10{end}" for end in ends], 1.0)
        return {"rows_timed": len(self._queries), **recalls, "extras": extras}


class TheirGraph:
    """pynndescent, or cuVS's nn_descent."""

    share = 1.0

    def __init__(
        self, run: Run, case: Case, name: str, process: peers.Pynndescent | None, settings: dict[str, Any]
    ) -> None:
        self.name, self.settings = name, settings
        self._run, self._case, self._process = run, case, process
        self._made: Any = None
        self.peak: int | None = None

    def with_settings(self, given: dict[str, Any], *, named: bool) -> TheirGraph:
        """Return this peer with other settings; with `named`, the settings become a part of its name."""
        name = f"{self.name} {settings(given)}" if named else self.name
        return TheirGraph(self._run, self._case, name, self._process, given)

    @property
    def _given(self) -> dict[str, Any]:
        # pynndescent lists the point itself
        return {"n_neighbors": self._case.k + 1} | self.settings

    def warm(self) -> dict[str, Any]:
        if self._process is not None:
            return {"extras": {"compile_seconds": self._process.warm(self._given)}}
        peers.cuvs_graph(points_of(self._run, self._case)[:WARM_ROWS], self.settings)
        return {}

    def call(self) -> None:
        if self._process is not None:
            self.peak = self._process.build(self._given)
        else:
            self._made = None
            self._made = peers.cuvs_graph(points_of(self._run, self._case), self.settings)

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        process = self._process
        ids = process.lists(truth.rows) if process is not None else peers.cuvs_lists(self._made, truth.rows)
        return {"proved": len(ids)} | truth.columns(ids, self._case.k)


def sampled(found: Answer, truth: GraphTruth) -> Any:
    """Return the lists of the sampled points, in host memory."""
    import torch

    return found.indices[torch.from_numpy(truth.rows).to(found.indices.device)].cpu().numpy()


def same(found: Answer, expected: Answer) -> None:
    """Raise WrongAnswer unless two graphs have the same bits."""
    import torch

    for name, one, other in zip(("distance", "index"), found, expected, strict=True):
        if not torch.equal(one, other):
            row = int((one != other).any(dim=1).int().argmax())
            raise WrongAnswer(f"{name} of row {row}: made again, the graph is another")
