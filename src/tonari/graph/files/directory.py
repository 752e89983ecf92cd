"""Read a graph, or the neighbours of queries, from a directory of manifest.json, indices.npy and distances.npy.

The two arrays are mapped into memory. While the directory is being built (``shards/``), their names have the suffix
``.part``, and the state in the manifest is "building".
"""

from __future__ import annotations

import base64
import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tonari.core.plan import WrittenPlan
from tonari.core.process.floats import in_default_floats
from tonari.core.results.neighbors import Neighbors, index_dtype
from tonari.core.trail import Record
from tonari.graph.lists import Lists
from tonari.inputs import dtype_of
from tonari.io import schema
from tonari.io._atomic import atomic
from tonari.io._common import FileFormatError, open_regular
from tonari.io.formats import npy
from tonari.io.record import read_record
from tonari.io.schema import whole
from tonari.metrics import get_metric
from tonari.metrics.definitions import Float64
from tonari.metrics.transforms.change import Weights
from tonari.nn_descent.report import DescentReport
from tonari.nn_descent.updates import UPDATES

MANIFEST, INDICES, DISTANCES = "manifest.json", "indices.npy", "distances.npy"
GRAPH, NEIGHBORS = "graph", "neighbors"
VERSION = 1  # format version of a complete directory
# Format version of an unfinished directory. A release whose builds draw or compute anything differently raises it, so
# that it never resumes a build of another release.
BUILDING_VERSION = 3
_FORMATS = {GRAPH: "tonari.graph", NEIGHBORS: "tonari.neighbors"}
BUILDING, COMPLETE = "building", "complete"
_LONGEST = 64 << 20  # largest valid manifest, in bytes; each entry of `rows` takes about 60 bytes
LARGEST_MATRIX = 36 << 20  # largest matrix in a manifest, in bytes; as base64 text it takes 4/3 of that


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The contents of manifest.json.

    Attributes
    ----------
    state : "building" or "complete"
    source : dict
        Facts that identify the points: their number, dimensions and dtype, a digest of some rows, and the files.
    request : dict
        The arguments of the build: k, metric, method, recall and seed; if there are any, also weights and transform.
    plan : dict
        The plan of the build; see :class:`tonari.shards.plan.ShardPlan`.
    method : str
        "exact", or "nn-descent" if neighbours may be missing.
    rows : list of (begin, end, checksum of indices, checksum of distances)
        For a complete graph: CRC-32 of ranges of rows.
    report : dict, optional
        The measured recall, if neighbours may be missing.
    queries : dict, optional
        Facts that identify the queries; None for a graph.
    record : dict, optional
        For a complete graph: the record of its build, without the plan; see :class:`tonari.core.trail.Record`. None in
        manifests of earlier releases, which did not record it.
    version : int
        The format version of the file that was read; files are written in the version of this release.
    """

    state: str
    source: dict[str, Any]
    request: dict[str, Any]
    plan: dict[str, Any]
    method: str
    rows: list[list[int]] = dataclasses.field(default_factory=list)
    report: dict[str, Any] | None = None
    queries: dict[str, Any] | None = None
    record: dict[str, Any] | None = None
    version: int = BUILDING_VERSION

    @property
    def resumable(self) -> bool:
        """Whether this release can resume the build if it is not complete."""
        return self.version == BUILDING_VERSION

    @property
    def kind(self) -> str:
        """ "graph" or "neighbors"."""
        return GRAPH if self.queries is None else NEIGHBORS

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of both arrays: (n, k) for a graph, (m, k) for m queries."""
        asked = self.source if self.queries is None else self.queries
        return asked["n"], self.request["k"]

    def write(self, folder: Path) -> None:
        """Write the manifest into a directory, atomically replacing an earlier one."""
        version = VERSION if self.state == COMPLETE else BUILDING_VERSION
        facts = {"format": _FORMATS[self.kind]} | dataclasses.asdict(self) | {"version": version}
        facts = {name: value for name, value in facts.items() if value is not None or name not in ("queries", "record")}
        with atomic(folder / MANIFEST, follow=False) as file:
            file.write(json.dumps(facts, indent=1).encode())

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read and check the manifest of a directory.

        Raises
        ------
        FileNotFoundError, NotADirectoryError
            The directory or the file does not exist.
        tonari.io.FileFormatError
            The file is damaged or of a later version.
        """
        path = folder / MANIFEST
        try:
            with open_regular(path) as file:
                text = file.read(_LONGEST)
        except (FileNotFoundError, NotADirectoryError) as error:
            what = f"has no {MANIFEST}" if folder.is_dir() else "is a file" if folder.exists() else "does not exist"
            message = f"{folder}: {what}, expected a directory that tonari.build_graph wrote"
            raise type(error)(message) from None
        try:
            facts = json.loads(text)
            format_read = facts.pop("format")
            if format_read not in _FORMATS.values():
                raise ValueError("it is of another format")
            version, known = facts["version"], [VERSION]
            if facts.get("state") == BUILDING:
                known.append(BUILDING_VERSION)
            if type(version) is not int or version not in known:
                raise ValueError(
                    f"its format version is {version!r}, this release reads {' and '.join(map(str, known))}"
                )
            made = cls(**facts)
            kinds = {"state": str, "source": dict, "request": dict, "plan": dict, "method": str, "rows": list}
            for name, kind in kinds.items():
                if not isinstance(getattr(made, name), kind):
                    raise ValueError(f"its {name} is {getattr(made, name)!r}")
            if made.state not in (BUILDING, COMPLETE):
                raise ValueError(f"its state is {made.state!r}")
            if format_read != _FORMATS[made.kind]:
                has = "no queries" if made.queries is None else "queries"
                raise ValueError(f"its format is {format_read!r}, but it has {has}")
            _check(made)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            expected = "the manifest of a graph or of neighbours"
            message = f"{path}: found {len(text)} bytes, expected {expected}: {error}"
            raise FileFormatError(message, path, len(text), expected) from error
        return made


_POINTS: dict[str, schema.Test] = {"n": whole(1), "d": whole(1), "dtype": schema.text, "sample": schema.text}
_OF_FILES: dict[str, schema.Test] = {
    "files": schema.list_of(schema.text),
    "stamps": schema.list_of(schema.list_of(whole(-(2**63)))),
}
_REQUEST: dict[str, schema.Test] = {
    "k": whole(1),
    "metric": schema.text,
    "method": schema.one_of("auto", "exact", "clusters", "ggm"),
    "recall": schema.none_or(schema.real(0, 1)),
    "seed": whole(0, 2**32 - 1),
}
_OPTIONAL: dict[str, schema.Test] = {
    "update": schema.one_of(*UPDATES),
    "weights": schema.list_of(schema.real(0)),
    "transform": schema.map_of(lambda value: schema.text(value) or schema.list_of(whole(1))(value)),
}
_PLAN: dict[str, schema.Test] = {
    "route": schema.one_of("exact", "exact-pairs", "clusters", "ggm"),
    **dict.fromkeys(("rows", "shards", "block"), whole(1)),
    **dict.fromkeys(("clusters", "staged_bytes", "engine_bytes", "host_bytes", "device_bytes", "disk_bytes"), whole(0)),
    "seconds": schema.real(0),
}


def _check(made: Manifest) -> None:
    """Raise ValueError if a field has a value that no build writes."""
    for name, about in (("source", made.source), ("queries", made.queries)):
        if about is not None:
            schema.check(about, _POINTS, name, optional=_OF_FILES)
            if np.dtype(dtype_of(about["dtype"])).kind not in "fiuV":
                raise ValueError(f"its {name} dtype is {about['dtype']!r}")
    schema.check(made.request, _REQUEST, "request", optional=_OPTIONAL)
    columns_of_facts(made.request)
    if get_metric(made.request["metric"]).name != made.request["metric"]:
        raise ValueError(f"its request metric is {made.request['metric']!r}")
    known = _PLAN | {"group": whole(1), "segment": whole(1)}
    if made.state == BUILDING:
        schema.check(made.plan, _PLAN, "plan", optional=known)
    else:  # a complete graph is read without its plan, in which earlier releases may have written other fields
        present = {name: value for name, value in made.plan.items() if name in known}
        schema.check(present, {"route": _PLAN["route"]}, "plan", optional=known)
    if not schema.one_of("exact", "nn-descent")(made.method):
        raise ValueError(f"its method is {made.method!r:.80}")
    if (made.method == "exact") != made.plan["route"].startswith("exact"):
        raise ValueError(f"its method is {made.method!r}, but its route is {made.plan['route']!r}")
    n = made.shape[0]
    for entry in made.rows:
        if not (schema.list_of(whole(0))(entry) and len(entry) == 4 and entry[0] < entry[1] <= n):
            raise ValueError(f"its rows have {entry!r:.80}")
    if made.report is not None:
        DescentReport.from_dict(made.report)
    record_of(made)


def columns_as_facts(weights: Weights | None, transform: Float64 | None) -> dict[str, Any]:
    """Return the weights and the matrix of a metric as values of JSON; {} without them.

    A matrix is stored as its shape and the bytes of its float64 numbers in base64.
    """
    facts: dict[str, Any] = {} if weights is None else {"weights": list(weights)}
    if transform is not None:
        held = base64.b64encode(np.ascontiguousarray(transform, "<f8").tobytes()).decode("ascii")
        facts["transform"] = {"shape": list(transform.shape), "base64": held}
    return facts


def columns_of_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments `weights` and `transform` of :class:`Lists` from the facts of a request.

    >>> columns_of_facts(columns_as_facts((2.0, 1.0), np.array([[0.5]])))
    {'weights': (2.0, 1.0), 'transform': array([[0.5]])}
    """
    weights, transform = facts.get("weights"), facts.get("transform")
    if transform is not None:
        held = base64.b64decode(transform["base64"], validate=True)
        transform = np.frombuffer(held, "<f8").astype(np.float64).reshape(transform["shape"])
    return {"weights": None if weights is None else tuple(map(float, weights)), "transform": transform}


def record_of(manifest: Manifest) -> Record | None:
    """Return the record of the build of a graph, including the plan; None if the manifest contains no record."""
    if manifest.record is None:
        return None
    record = read_record(manifest.record)
    record.plan = WrittenPlan(manifest.plan)
    return record


def array_path(folder: Path, name: str, state: str) -> Path:
    """Return the path of indices.npy or distances.npy, whose name has the suffix .part until the graph is complete."""
    return folder / (name if state == COMPLETE else f"{name}.part")


def value_dtype(source_dtype: str) -> Any:
    """Return the dtype of distances: float64 for float64 points, float32 for all others."""
    return np.dtype(np.float64 if source_dtype == "float64" else np.float32)


def open_lists(folder: Path) -> Lists:
    """Map the lists of a complete graph.

    Raises
    ------
    FileNotFoundError
        The directory contains no graph.
    ValueError
        The graph is not complete yet.
    tonari.io.FileFormatError
        A file is damaged, or of a later version.
    """
    manifest = Manifest.read(folder)
    found = _open_arrays(folder, manifest, GRAPH, "holds neighbours of queries; open it with tonari.open_neighbors")
    report = None if manifest.report is None else DescentReport.from_dict(manifest.report)
    request = manifest.request
    seed = None if manifest.method == "exact" else request["seed"]
    columns, record = columns_of_facts(request), record_of(manifest)
    return Lists(found, request["metric"], manifest.method, False, seed, report, record=record, **columns)


@in_default_floats
def open_neighbors(folder: str | os.PathLike[str]) -> Neighbors:
    """Map the neighbours in a directory that :func:`tonari.build_neighbors` wrote; values are read when they are used.

    Raises
    ------
    FileNotFoundError
        The directory contains no neighbours.
    ValueError
        The neighbours are not complete yet.
    tonari.io.FileFormatError
        A file is damaged, or of a later version of the format.
    """
    folder = Path(folder)
    return _open_arrays(folder, Manifest.read(folder), NEIGHBORS, "holds a graph; open it with tonari.KNNGraph.open")


def _open_arrays(folder: Path, manifest: Manifest, kind: str, other: str) -> Neighbors:
    if manifest.kind != kind:
        raise ValueError(f"{folder}: {other}")
    if manifest.state != COMPLETE:
        what = "this graph is" if kind == GRAPH else "these neighbours are"
        raise ValueError(f"{folder}: {what} not complete; build it with the same call, which resumes")
    expected = {INDICES: index_dtype(manifest.source["n"]), DISTANCES: value_dtype(manifest.source["dtype"])}
    arrays = {}
    for name, dtype in expected.items():
        path = folder / name
        array = npy.read(path, mmap=True, key=None, most=np.inf)
        if array.shape != manifest.shape or array.dtype != dtype:
            size, wanted = os.stat(path).st_size, f"{dtype} of shape {manifest.shape}"
            message = f"{path}: found {array.dtype} of shape {array.shape}, expected {wanted} as the manifest says"
            raise FileFormatError(message, path, size, wanted)
        arrays[name] = array
    return Neighbors(arrays[DISTANCES], arrays[INDICES])
