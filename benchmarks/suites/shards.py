"""Graphs in a directory, of points that are read by ranges, compared with the graph that is built in memory.

The time is from the source to the finished directory, with all steps: the true neighbours of a sample, reading,
assigning rows to shards, building, writing, and waiting for the disk. The build measures its recall; here the recall is
measured again, on other rows.
"""

from __future__ import annotations

import functools
import gc
import logging
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..harness import memory
from ..harness.case import Bar, Case, Suite
from ..harness.datasets import synthesized
from ..harness.device import Timing
from ..harness.proof import WrongAnswer
from ..harness.run import Run, say, seconds_of

MILLION = 1_000_000
MEMORY = "memory within the budget"
OF_MEMORY = "of knn_graph"
ONE = "of one GPU"
LOCAL = "of this process"
IN_MEMORY = "tonari knn_graph"
PROVED_ROWS = 400
STEP = 1 << 20  # number of rows in a block that is made or written
_LOOK_SECONDS = 0.02


def points_of(run: Run, case: Case) -> synthesized.Synthesized:
    """Return the points of a case, as an array or a source that is read by ranges."""
    found: synthesized.Synthesized = run.keep(
        (case.data, case.n, case.d), lambda: synthesized.Synthesized(case.n, case.d, run.where)
    )
    return found


def file_of(points: Any, folder: Path) -> Path:
    """Write rows to a file, by blocks."""
    path = folder / "points.npy"
    made = np.lib.format.open_memmap(path, "w+", np.float32, tuple(points.shape))
    for begin in range(0, len(made), STEP):
        made[begin : begin + STEP] = points.rows(begin, min(begin + STEP, len(made))).cpu().numpy()
    made.flush()
    return path


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder for one measurement, in TONARI_SCRATCH or else in the folder of temporary files."""
    folder = Path(tempfile.mkdtemp(prefix="shards-", dir=os.environ.get("TONARI_SCRATCH")))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class HostPeak:
    """Measures the peak memory of this process while a block of code runs, without mapped pages of files."""

    def __init__(self) -> None:
        self.bytes = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._done.wait(_LOOK_SECONDS):
            self.bytes = max(self.bytes, memory.resident("RssAnon"))

    def __enter__(self) -> HostPeak:
        gc.collect()
        self._before = memory.resident("RssAnon")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.bytes = max(0, self.bytes - self._before)


class Stages(logging.Handler):
    """A logging handler that adds up, by kind, the seconds of the tasks of a build while a block of code runs."""

    def __init__(self, message: str) -> None:
        super().__init__(logging.INFO)
        self.seconds: dict[str, float] = {}
        self._message, self._logger = message, logging.getLogger("tonari")

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == self._message:
            kind, _, seconds = record.args  # type: ignore[misc]
            self.seconds[str(kind)] = self.seconds.get(str(kind), 0.0) + float(seconds)  # type: ignore[arg-type]

    def __enter__(self) -> Stages:
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)
        self._logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)


def recall_of(run: Run, case: Case, points: Any, found: Any) -> float:
    """Return a graph's recall on a sample that the build did not use; raise WrongAnswer if a distance is inexact."""
    import torch

    rows = np.sort(np.random.default_rng(12345).choice(case.n, min(case.n, PROVED_ROWS), replace=False))
    blocks = [(begin, min(begin + STEP, case.n)) for begin in range(0, case.n, STEP)]
    parts = []
    for begin, end in blocks:
        here = rows[(rows >= begin) & (rows < end)] - begin
        if len(here):
            parts.append(points.rows(begin, end)[torch.from_numpy(here).to(run.where)])
    asked = torch.cat(parts)
    best: list[Any] = []
    for begin, end in blocks:
        part = run.tonari.search(asked, points.rows(begin, end), case.k + 1, method="exact", progress=False)
        best.append((part.distances.double(), part.indices.long() + begin))
    values, ids = (torch.cat(parts, 1) for parts in zip(*best, strict=True))
    order = values.argsort(dim=1, stable=True)[:, : case.k + 1]
    values, ids = values.gather(1, order).cpu().numpy(), ids.gather(1, order).cpu().numpy()
    hits = 0
    for row, far, near in zip(rows.tolist(), values, ids, strict=True):
        truth = dict(zip(near.tolist(), far.tolist(), strict=True))
        truth.pop(row, None)
        last = sorted(truth.values())[case.k - 1]
        listed = zip(np.array(found.indices[row]).tolist(), np.array(found.distances[row]).tolist(), strict=True)
        for one, value in listed:
            hits += value <= last
            if value != truth.get(one, value):
                raise WrongAnswer(f"row {row}: the distance to {one} is {value}, expected {truth[one]}")
    return hits / (len(rows) * case.k)


def build(run: Run, case: Case) -> None:
    """Time a case by all its routes, and in memory if the case says so; write a row for each."""
    points = points_of(run, case)
    given = dict(case.parameters)
    routes, budget, compared = given.pop("routes"), given.pop("memory", None), given.pop("in_memory", False)
    devices, workers, each = given.pop("devices", 1), given.pop("dask", 0), given.pop("each", False)
    update = given.pop("update", None)
    with scratch() as folder:
        source = file_of(points, folder) if given.pop("on_disk", True) else points
        seconds = {}
        if compared:
            timing, facts = _in_memory(run, case, np.load(source, mmap_mode="r"))
            seconds[IN_MEMORY] = timing.median
            run.write(case, [{"who": IN_MEMORY} | seconds_of(timing) | facts])
        if budget is not None:
            budget = _whole(run, case) // 10 if budget == "tenth" else round(budget * run.scale)
        for route in routes:
            ways = (
                Way(route, update=update),
                Way(route, devices, update=update),
                Way(route, workers=workers, update=update),
            )
            for way in dict.fromkeys(ways):
                if run.wants(way.who):
                    has = budget // way.workers if way.workers and not each else budget
                    given = case, way, source, folder, has, seconds
                    run.guarded(case, way.who, functools.partial(_build, run, *given))


class Way(NamedTuple):
    """A way to build the graph of a case: route, devices, workers and update.

    Attributes
    ----------
    route : str
    devices : int
        GPUs, if it is built on GPUs.
    workers : int
        Processes of a Dask cluster, of one thread each; 0 for this process. They share the case's memory; if the case
        says so, each process has this memory, like the machines of a cluster.
    update : str, optional
        The update of NN-Descent, if it is not the default.
    """

    route: str
    devices: int = 1
    workers: int = 0
    update: str | None = None

    @property
    def who(self) -> str:
        """The contestant's name in rows."""
        where = f" on {self.workers} Dask workers" if self.workers else ""
        if self.devices > 1:
            where = f" on {self.devices} GPUs"
        by = "" if self.update is None else f" {self.update}"
        return f"tonari build_graph {self.route}{by}{where}"

    @contextmanager
    def options(self) -> Iterator[dict[str, Any]]:
        """Yield the argument ``executor`` of the build if there are workers; shut the cluster down afterwards."""
        if not self.workers:
            yield {}
            return
        import distributed

        silent = {"dashboard_address": None, "memory_limit": 0, "silence_logs": 50}
        with (
            distributed.LocalCluster(n_workers=self.workers, threads_per_worker=1, processes=True, **silent) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield {"executor": client}


def _whole(run: Run, case: Case) -> int:
    """Return the bytes of device memory that a build in a single shard needs."""
    made = run.tonari.plan(
        case.n, case.n, case.d, case.k, method="nn-descent", device=run.where, recall=case.target, self_join=True
    )
    return int(made.total_bytes)


def _in_memory(run: Run, case: Case, rows: Any) -> tuple[Timing, dict[str, Any]]:
    points = np.array(rows)
    method = "nn-descent" if case.target else "exact"
    options = {"recall": case.target} if case.target else {}
    given = {"method": method, "device": run.where if run.cuda else "cpu", **options, **run.options()}
    seconds = run.time_once(functools.partial(run.tonari.knn_graph, points, case.k, **given))
    return Timing(seconds, seconds, seconds, 1), {}


def _build(run: Run, case: Case, way: Way, source: Any, folder: Path, budget: Any, seconds: dict[str, float]) -> None:
    """Time one build, measure its recall on another sample, and write its row."""
    import torch

    route, devices, who = way.route, way.devices, way.who
    say(f"{case.name}: {who}")
    out = folder / f"graph-{route}-{devices}-{way.workers}"
    where = [f"cuda:{at}" for at in range(devices)] if run.cuda else "cpu"
    from tonari.graph.files.directory import Manifest
    from tonari.shards.build import STAGE_DONE

    options = run.options() | ({"recall": case.target} if case.target else {})
    if run.cuda:
        run.free()
        for device in where:
            torch.cuda.reset_peak_memory_stats(device)
    # the library of the rows depends on their source
    held = {device: torch.cuda.memory_allocated(device) for device in where} if run.cuda else {}
    found: list[Any] = []
    stages: list[Stages] = []

    def call() -> None:
        given = {"method": route, "device": where, "memory": budget} | options
        given |= {} if way.update is None else {"update": way.update}
        with Stages(STAGE_DONE) as seen:
            found.append(run.tonari.build_graph(source, case.k, out, **given))
        stages.append(seen)

    with way.options() as more, HostPeak() as host, warnings.catch_warnings():
        options |= more
        if way.workers:
            del options["threads"]  # each worker has one thread in any case
        warnings.simplefilter("ignore", UserWarning)
        took = first = run.time_once(call)
        if case.warm_scale < 1:  # the first build has compiled the kernels
            shutil.rmtree(out)
            took = run.time_once(call)
    graph = found[-1]
    # read before the proof, which also needs memory
    peaks = [torch.cuda.max_memory_allocated(device) - before for device, before in held.items()]
    peak = max(peaks) if run.cuda else host.bytes
    manifest = Manifest.read(out)
    recall = 1.0 if route == "exact" else recall_of(run, case, points_of(run, case), graph)
    plan = manifest.plan
    extras = {
        "plan": {name: plan[name] for name in ("rows", "shards", "host_bytes", "device_bytes", "disk_bytes")},
        "expected_seconds": plan["seconds"],
        "first_seconds": first,
        "stage_seconds": stages[-1].seconds,
        "host_peak_bytes": host.bytes,
        "disk_bytes": sum(path.stat().st_size for path in out.rglob("*")),
    }
    if manifest.report is not None:
        extras["measured_by_the_build"] = manifest.report["estimate"]["by_distance"]
    measured = {"seconds": took, "recall": recall}
    if budget is not None:
        measured[MEMORY] = peak / budget
    if IN_MEMORY in seconds:
        measured[OF_MEMORY] = took / seconds[IN_MEMORY]
    one = Way(route, update=way.update).who
    if one in seconds:
        measured[ONE if devices > 1 else LOCAL] = seconds[one] / took
    seconds[who] = took
    facts = {"who": who, "gpus": devices if run.cuda else None, "recall": recall, "peak_bytes": peak, "extras": extras}
    facts |= seconds_of(Timing(took, took, took, 1)) | {"parameters": {"memory": budget}}
    bars = [bar for bar in case.bars if bar.on in measured and (not bar.isa or bar.isa == route)]
    run.write(case, [facts | verdict for verdict in run.verdicts(bars, measured)])
    shutil.rmtree(out)


def _case(name: str, device: str, n: int, d: int, **changes: Any) -> Case:
    defaults: dict[str, Any] = {"graph": True, "work": build, "data": "synthesized SIFT", "cost": 60.0}
    return Case(name, device, n, n, d, 10, **defaults | changes)


def _most(on: str, bound: float, home: str = "H200") -> Bar:
    return Bar(on, bound, most=True, home=home)


SUITE = Suite(
    "shards",
    "shards",
    (
        _case(
            *("exact-1m", "cpu", MILLION, 128),
            parameters={"routes": ("exact",), "memory": 600 * MILLION, "in_memory": True},
            bars=(_most(OF_MEMORY, 1.15, ""), _most(MEMORY, 1.0, "")),
            cost=1000,
        ),
        _case(
            *("recall-1m", "cpu", MILLION, 128),
            target=0.97,
            parameters={"routes": ("clusters",), "memory": 600 * MILLION, "in_memory": True},
            bars=(_most(OF_MEMORY, 1.5, ""), _most(MEMORY, 1.0, ""), Bar("recall", 0.97, home="")),
            cost=300,
        ),
        _case(
            *("dask-300k", "cpu", 300_000, 128),
            target=0.97,
            parameters={"routes": ("clusters",), "memory": 200 * MILLION, "dask": 2},
            bars=(Bar(LOCAL, 0.9, home=""), Bar("recall", 0.97, home="")),
            cost=60,
        ),
        _case(
            *("dask-1m", "cpu", MILLION, 128),
            target=0.97,
            parameters={"routes": ("clusters",), "memory": 300 * MILLION, "dask": 2, "each": True},
            bars=(Bar(LOCAL, 0.9, home=""), Bar("recall", 0.97, home="")),
            cost=200,
        ),
        _case(
            *("10m-clusters", "cuda", 10 * MILLION, 96),
            warm_scale=0.0,
            target=0.98,
            parameters={"routes": ("clusters",), "memory": "tenth"},
            bars=(_most("seconds", 10.0), Bar("recall", 0.98, home="H200"), _most(MEMORY, 1.0)),
        ),
        _case(
            *("10m-ggm", "cuda", 10 * MILLION, 96),
            warm_scale=0.0,
            target=0.98,
            parameters={"routes": ("ggm",), "memory": "tenth"},
            bars=(_most("seconds", 25.0), Bar("recall", 0.98, home="H200"), _most(MEMORY, 1.0)),
        ),
        _case(  # the method of wang2021: GNND for each shard, GGM to merge each pair of shards
            *("10m-gnnd", "cuda", 10 * MILLION, 96),
            warm_scale=0.0,
            target=0.98,
            parameters={"routes": ("ggm",), "update": "gnnd", "memory": "tenth"},
            bars=(Bar("recall", 0.956, home=""), _most(MEMORY, 1.0)),
            cost=120,
        ),
        _case(
            *("100m", "cuda", 100 * MILLION, 96),
            target=0.95,
            parameters={"routes": ("clusters",), "on_disk": False},
            bars=(_most("seconds", 180.0), Bar("recall", 0.95, home="H200")),
            cost=200,
        ),
        _case(
            *("40m-two", "cuda", 40 * MILLION, 96),
            target=0.95,
            parameters={"routes": ("clusters",), "devices": 2, "memory": "tenth"},
            bars=(Bar(ONE, 1.8, home="H200"), Bar("recall", 0.95, home="H200")),
            cost=120,
        ),
        _case(
            *("200m-two", "cuda", 200 * MILLION, 96),
            target=0.95,
            # less than the device's memory, because the first device also makes the rows
            parameters={"routes": ("clusters",), "on_disk": False, "devices": 2, "memory": 60_000 * MILLION},
            bars=(_most("seconds", 480.0), Bar("recall", 0.95, home="H200")),
            rare=True,
            cost=500,
        ),
    ),
    libraries=("tonari", "numpy", "torch", "triton"),
)
