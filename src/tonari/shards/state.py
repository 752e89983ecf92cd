"""The progress of a build, read from its directory without access to its points."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tonari.core.plan import WrittenPlan
from tonari.core.trail import Record
from tonari.graph.files.directory import BUILDING, Manifest, record_of, value_dtype
from tonari.metrics.recall import Recall
from tonari.nn_descent.report import DescentReport
from tonari.shards.directory.disk import is_being_built
from tonari.shards.directory.workspace import Workspace
from tonari.shards.plan import ShardPlan
from tonari.shards.routes.registry import ROUTES
from tonari.shards.tasks import add_tasks, title_of


@dataclass(frozen=True, kw_only=True)
class State:
    """The progress of a build in a directory of :func:`tonari.build_graph`.

    Attributes
    ----------
    running : bool
        Whether a process builds in it now.
    tasks_done, tasks_known : int
        The number of tasks of an unfinished graph that are done, and the number that are known; 0 for a complete graph.
    all_known : bool
        Whether all tasks are known. If not, the results of known tasks decide which other tasks follow.
    covered : float, optional
        For an unfinished graph by "clusters": the share of neighbours in a sample that share a shard with their row,
        which is an upper bound of the recall.
    recall : Recall, optional
        The measured recall.
    record : Record, optional
        The record of the build; for an unfinished graph, the record of its finished tasks. None if no record exists.
    bytes : int
        The bytes of all files in the directory.
    """

    manifest: Manifest
    running: bool
    tasks_done: int
    tasks_known: int
    all_known: bool
    covered: float | None
    recall: Recall | None
    record: Record | None
    bytes: int

    @property
    def plan(self) -> ShardPlan:
        """The plan of the build."""
        return ShardPlan.of_manifest(self.manifest.plan)


def read_state(folder: Path) -> State:
    """Read the progress of the build in a directory.

    Raises
    ------
    FileNotFoundError
        The directory has no graph.
    tonari.io.FileFormatError
        The manifest is damaged or of a later version.
    """
    manifest = Manifest.read(folder)
    facts: dict[str, Any] = {"manifest": manifest, "running": is_being_built(folder), "bytes": bytes_of(folder)}
    facts |= {"tasks_done": 0, "tasks_known": 0, "all_known": True, "covered": None, "recall": None}
    facts["record"] = record_of(manifest)
    if manifest.state == BUILDING:
        facts |= _progress(folder, manifest)
    elif manifest.report is not None:
        facts["recall"] = DescentReport.from_dict(manifest.report).estimate
    return State(**facts)


def bytes_of(folder: Path) -> int:
    """Return the total size of all files in a directory, in bytes; files that vanish during the call are ignored."""
    found = 0
    for path in folder.rglob("*"):
        try:
            found += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return found


def _progress(folder: Path, manifest: Manifest) -> dict[str, Any]:
    source, plan = manifest.source, ShardPlan.of_manifest(manifest.plan)
    files = Workspace(folder, *manifest.shape, value_dtype(source["dtype"]), source["n"])
    done, known, all_known = files.names_done(), set[str](), True
    record = Record(title_of(manifest), manifest.shape[0], plan=WrittenPlan(manifest.plan), method=plan.route)
    stages = ROUTES[plan.route].stages(files, plan)
    while True:
        try:
            tasks = next(stages).tasks
        except StopIteration:
            break
        except FileNotFoundError:  # which tasks follow depends on the result of a task that is not done
            all_known = False
            break
        known |= {task.name for task in tasks}
        add_tasks(record, files, [task for task in tasks if task.name in done])
    record.seconds = sum(part.seconds for part in record.parts)
    return {
        "tasks_done": len(done & known),
        "tasks_known": len(known),
        "all_known": all_known,
        "covered": files.done("centres").facts["covered"] if "centres" in done else None,
        "recall": Recall(**files.done("recall").facts) if "recall" in done else None,
        "record": record if record.steps else None,
    }
