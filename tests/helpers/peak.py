"""Measures the peak memory of a build of a graph for each kind of task.

    python -m tests.helpers.peak JSON      the arguments of tonari.build_graph

Prints one JSON object: the budget, and the peaks of the process' own memory (RssAnon, which excludes the pages of
mapped files), overall and during tasks of each kind. Peaks are relative to the memory after a tiny build by the same
route.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

_LOOK_SECONDS = 0.001
_OWN = re.compile(rb"RssAnon:\s+(\d+) kB")


def own_bytes() -> int:
    """Return the bytes of this process that are not mapped from a file."""
    found = _OWN.search(Path("/proc/self/status").read_bytes())
    assert found is not None
    return 1024 * int(found[1])


class Peak:
    """Measures the memory of this process repeatedly in a thread; a context manager.

    Attributes
    ----------
    kind : str
        The kind of the task that is running.
    highest : dict
        The largest number of bytes during each kind of task.
    """

    def __init__(self) -> None:
        self.kind, self.highest = "", {"": own_bytes()}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._stop.wait(_LOOK_SECONDS):
            self.highest[self.kind] = max(self.highest.get(self.kind, 0), own_bytes())

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def main(given: dict[str, Any]) -> dict[str, Any]:
    """Build a graph, and return its budget and the peaks."""
    import numpy as np

    import tonari
    from tonari.graph.files.directory import Manifest
    from tonari.shards.tasks import Job, Step, Task
    from tonari.shards.workers import local

    options = {name: value for name, value in given.items() if name in ("method", "recall", "threads")}
    rows = np.random.default_rng(0).standard_normal((600, 8)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        tonari.build_graph(rows, 3, Path(folder, "graph"), **options)
    before, step_of = own_bytes(), local.step_of
    with Peak() as peak:

        def watched(job: Job, task: Task) -> Step:
            def compute(*arguments: Any) -> Any:
                peak.kind = task.kind
                return step.compute(*arguments)

            step = step_of(job, task)
            return step._replace(compute=compute)

        local.step_of = watched
        tonari.build_graph(**given)
    highest = {kind: most - before for kind, most in peak.highest.items()}
    route = Manifest.read(Path(given["out"])).plan["route"]
    return {"memory": given["memory"], "peak": max(highest.values()), "kinds": highest, "route": route}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
