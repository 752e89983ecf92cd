"""Graphs by NN-Descent, by the exact engine, by auto and by the peers: proved, timed in turns, judged.

The clock runs from raw points to the finished graph, everything included: checks, packing, start, rounds, the
measuring of recall that a run does itself. Every contestant first makes a small graph, which compiles what has to be
compiled; then one of all points, whose lists are proved and whose peak memory is taken; then they take turns. What
takes longer than VERY_LONG is not made again: the proved run is the timed one. What is made again has to have the same
bits.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from . import descent_peers as peers
from .descent_memory import Peak
from .descent_proof import GraphTruth
from .descent_rows import parameters_of, report_columns
from .exact_cpu import WrongAnswer
from .exact_gpu_proof import Answer, as_answer
from .exact_gpu_rows import Bar, seconds_of
from .exact_gpu_run import LONG, VERY_LONG, say
from .select_device import Timing, take_turns

if TYPE_CHECKING:
    from .descent_cases import Case
    from .descent_run import DescentRun

DESCENT, EXACT, AUTO = "tonari descent", "tonari exact", "tonari auto"
PROOF = "distances of tonari.metrics.reference"
SEED = 0
# Points of the small graph that everything is compiled with.
WARM_ROWS = 20_000
INDEX_BYTES = DISTANCE_BYTES = 4
# The screen's copy: float16 on CUDA, at most float32 on a processor.
SCREEN_BYTES = {"cpu": 4, "cuda": 2}
GRAPHS = 3
RECALL_BARS = ("recall@10", "recall@k")
MEMORY = "memory"


class Contestant(Protocol):
    """Who makes graphs of a case's points."""

    name: str
    share: float  # of the rows, that the clock sees
    settings: dict[str, Any]

    def warm(self) -> dict[str, Any]:
        """Have everything compiled; columns about that."""

    def call(self) -> None:
        """Do the work once."""

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        """Columns about what was made last; WrongAnswer if it is."""


class OurGraph:
    """A graph by ``tonari.knn_graph``; settings other than the arguments that it has are overrides of the plan."""

    share = 1.0
    arguments = ("method", "recall", "seed", "start")

    def __init__(self, run: DescentRun, case: Case, name: str, **settings: Any) -> None:
        self.name, self.settings = name, settings
        self._run, self._case = run, case
        self._points = run.points(case)
        self._made: Any = None
        self._proved: Answer | None = None

    def _graph(self, rows: int | None) -> Any:
        run, case = self._run, self._case
        points = self._points[:rows]
        settings = dict(self.settings)
        given = {name: settings.pop(name) for name in self.arguments if name in settings}
        given |= run.options()
        if settings:
            progress, n = given.pop("progress"), len(points)
            place = {"device": run.where} if run.cuda else {}
            plan = run.tonari.plan(n, n, case.d, case.k, dtype=case.dtype, **place, **given, **settings)
            given = {"method": given["method"], "progress": progress, "plan": plan}
        with warnings.catch_warnings():
            # A target that is not reached is a column.
            warnings.simplefilter("ignore", UserWarning)
            return run.tonari.knn_graph(run.device.values(points), case.k, **given)

    def warm(self) -> dict[str, Any]:
        if self._case.n > WARM_ROWS:
            self._graph(WARM_ROWS)
        return {}

    def call(self) -> None:
        self._made = None
        self._made = self._graph(None)

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        """A second look at what was made again finds the same bits."""
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
        facts = {"proof": PROOF, "proved": proved} | truth.columns(ids, k)
        facts |= report_columns(getattr(self._made, "report", None))
        return facts | ({"note": f"auto chose {method}"} if self.name == AUTO else {})


class ExactSlice:
    """The exact engine on the first rows of a graph; the points are packed before the clock starts."""

    def __init__(self, run: DescentRun, case: Case, rows: int) -> None:
        self.name, self.share = EXACT, rows / case.n
        self.settings: dict[str, Any] = {}
        self._run, self._case = run, case
        self._queries = run.device.values(run.points(case)[:rows])
        self._index: Any = None

    def warm(self) -> dict[str, Any]:
        # Not before: the others' graphs need the room.
        points = self._run.device.values(self._run.points(self._case))
        self._index = self._run.tonari.Index(points, method="exact", **self._run.options())
        self.call()
        return {}

    def call(self) -> None:
        self._index.search(self._queries, self._case.k + 1, **self._run.options())

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        recalls = [f"recall_{rank}{end}" for rank in ("10", "k") for end in ("", "_low", "_high")]
        return {"rows_timed": len(self._queries)} | dict.fromkeys(recalls, 1.0)


class TheirGraph:
    """pynndescent, or cuVS's nn_descent."""

    share = 1.0

    def __init__(
        self, run: DescentRun, case: Case, name: str, process: peers.Pynndescent | None, settings: dict[str, Any]
    ) -> None:
        self.name, self.settings = name, settings
        self._run, self._case, self._process = run, case, process
        self._made: Any = None
        self.peak: int | None = None

    def with_settings(self, settings: dict[str, Any], *, named: bool) -> TheirGraph:
        """The same with other settings, and a name that tells them."""
        name = f"{self.name} {parameters_of(settings)}" if named else self.name
        return TheirGraph(self._run, self._case, name, self._process, settings)

    @property
    def _given(self) -> dict[str, Any]:
        # It lists the point itself.
        return {"n_neighbors": self._case.k + 1} | self.settings

    def warm(self) -> dict[str, Any]:
        if self._process is not None:
            return {"compile_seconds": self._process.warm(self._given)}
        peers.cuvs_graph(self._run.points(self._case)[:WARM_ROWS], self.settings)
        return {}

    def call(self) -> None:
        if self._process is not None:
            self.peak = self._process.build(self._given)
        else:
            self._made = None
            self._made = peers.cuvs_graph(self._run.points(self._case), self.settings)

    def judged(self, truth: GraphTruth) -> dict[str, Any]:
        process = self._process
        ids = process.lists(truth.rows) if process is not None else peers.cuvs_lists(self._made, truth.rows)
        return {"proved": len(ids)} | truth.columns(ids, self._case.k)


def sampled(found: Answer, truth: GraphTruth) -> Any:
    """Lists of the sample, in host memory."""
    import torch

    return found.indices[torch.from_numpy(truth.rows).to(found.indices.device)].cpu().numpy()


def same(found: Answer, expected: Answer) -> None:
    """Raise WrongAnswer unless two graphs have the same bits."""
    import torch

    for name, one, other in zip(("distance", "index"), found, expected, strict=True):
        if not torch.equal(one, other):
            row = int((one != other).any(dim=1).int().argmax())
            raise WrongAnswer(f"{name} of row {row}: made again, the graph is another")


class Look(NamedTuple):
    """What is known of a contestant: seconds of its first graph, columns."""

    seconds: float
    facts: dict[str, Any]


def first_look(run: DescentRun, case: Case, one: Contestant, truth: GraphTruth) -> Look:
    """Warm a contestant, let it make the graph once, prove it."""
    facts = one.warm()
    run.free()
    peak = Peak(run.where)
    seconds = run.time_once(one.call) / one.share
    taken = one.peak if isinstance(one, TheirGraph) else peak.bytes()
    points = run.points(case)
    facts |= {"peak_bytes": taken, "input_bytes": points.numel() * points.element_size()}
    facts |= {"parameters": parameters_of(one.settings), "target": one.settings.get("recall")}
    return Look(seconds, facts | one.judged(truth))


def clocked(
    run: DescentRun, case: Case, contestants: Sequence[Contestant], truth: GraphTruth
) -> dict[str, tuple[Timing, dict[str, Any]]]:
    """Seconds and columns of everyone who can be trusted, by name; rows say of others what went wrong."""
    seen: dict[str, Look] = {}
    for one in contestants:

        def look(one: Contestant = one) -> None:
            seen[one.name] = first_look(run, case, one, truth)

        say(f"{case.name}: {one.name}")
        run.guarded(case, one.name, look)
    timings = {name: Timing(look.seconds, look.seconds, look.seconds, 1) for name, look in seen.items()}
    again = [one for one in contestants if one.name in seen and seen[one.name].seconds * one.share <= VERY_LONG]
    count = run.repeats if all(seen[one.name].seconds * one.share <= LONG for one in again) else min(3, run.repeats)
    round_seconds = sum(seen[one.name].seconds * one.share for one in again)
    while count > 1 and not run.reaches(count * round_seconds):
        count -= 1
    calls: dict[str, Callable[[], object]] = {one.name: one.call for one in again}
    turns = take_turns(run.device, calls, seconds=0.0, least=count, most=count, settle=not run.cuda)
    found = {}
    for one in contestants:
        if one.name not in seen:
            continue

        def whole(one: Contestant = one) -> None:
            if one.name in turns:
                if not isinstance(one, TheirGraph):
                    one.judged(truth)
                timing = turns[one.name]
                timings[one.name] = Timing(*(part / one.share for part in timing[:3]), timing.repeats)
            found[one.name] = timings[one.name], seen[one.name].facts

        run.guarded(case, one.name, whole)
    return found


def build(run: DescentRun, case: Case) -> None:
    """A case's graph by everyone."""
    truth = run.truth(case)
    with contextlib.ExitStack() as stack:
        given = {"recall": case.target, "seed": SEED} | dict(case.parameters)
        contestants: list[Contestant] = [OurGraph(run, case, DESCENT, method="nn-descent", **given)]
        if case.auto:
            contestants.append(OurGraph(run, case, AUTO, method="auto", recall=case.target))
        if run.wants(EXACT):
            sliced = 0 < case.exact_rows < case.n
            exact = ExactSlice(run, case, case.exact_rows) if sliced else OurGraph(run, case, EXACT, method="exact")
            contestants.append(exact)
        contestants += rivals(stack, run, case)
        contestants = [one for one in contestants if run.wants(one.name)]
        write(run, case, clocked(run, case, contestants, truth))


def rivals(stack: contextlib.ExitStack, run: DescentRun, case: Case) -> list[TheirGraph]:
    """The peers that can run here, with every setting of the case; a row says of others why not."""
    found: list[TheirGraph] = []
    for name in case.peers:
        if not run.wants(name):
            continue
        missing = peers.missing(name)
        if missing:
            run.write(case, [{"who": name, "note": missing}])
            continue
        process = None
        if name == peers.PYNNDESCENT:
            process = stack.enter_context(peers.Pynndescent(run.points(case).numpy(), run.threads or 1))
        found.append(TheirGraph(run, case, name, process, {}))
        found += [found[-1].with_settings(settings, named=True) for settings in map(dict, case.peer_settings)]
    return found


def write(run: DescentRun, case: Case, found: dict[str, tuple[Timing, dict[str, Any]]], whose: str = DESCENT) -> None:
    """A row of ours for each bar, then one for everyone else."""
    mine = found.get(whose)
    rows = []
    if mine is not None:
        timing, facts = mine
        measured = {name: other[0].median / timing.median for name, other in found.items()}
        measured |= {"seconds": timing.median, "recall@10": facts["recall_10"], "recall@k": facts["recall_k"]}
        if facts["peak_bytes"] is not None:
            measured[MEMORY] = (facts["input_bytes"] + facts["peak_bytes"]) / allowed_bytes(run, case)
        if AUTO in found:
            best = min(found[name][0].median for name in (DESCENT, EXACT) if name in found)
            measured["auto over the best"] = found[AUTO][0].median / best
        whole = {"who": whose} | facts | seconds_of(timing)
        rows = [whole | verdict for verdict in verdicts(run, case.bars, measured)]
    for name, (timing, facts) in found.items():
        if name != whose:
            ratio = {} if mine is None else {"ratio": timing.median / mine[0].median}
            rows.append({"who": name} | facts | seconds_of(timing) | ratio)
    run.write(case, rows)


def allowed_bytes(run: DescentRun, case: Case) -> float:
    """What the input, a copy of it for the screen and three graphs take."""
    points = run.points(case)
    screen = points.numel() * SCREEN_BYTES[run.device.kind]
    graph = case.n * case.k * (INDEX_BYTES + DISTANCE_BYTES)
    return float(points.numel() * points.element_size() + screen + GRAPHS * graph)


def verdicts(run: DescentRun, bars: Sequence[Bar], measured: dict[str, float]) -> list[dict[str, Any]]:
    """Verdicts on the bars; none on time is met by a graph that misses its recall."""
    found = run.verdicts(bars, measured)
    if any(row.get("bar_on") in RECALL_BARS and row["passed"] is False for row in found):
        for row in found:
            if row["passed"] and row["bar_on"] not in (*RECALL_BARS, MEMORY):
                row |= {"passed": False, "note": "its recall is missed"}
    return found
