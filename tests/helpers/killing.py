"""Builds of graphs that are killed: a server imports the library once, and forks a process for every build.

    python -m tests.helpers.killing      one JSON object per line in, one per line out

The object of a build may have

    points, out            two arguments of ``tonari.build_graph``; ``given`` has all others
    rows, block            the number of rows in a shard and in a block (helpers/shards.py)
    end_at, power_cut      the call at which the disk fails (helpers/disk.py)
    after, or tasks        the seconds, or the number of tasks, after which the build is killed
    log                    a file to which the name of every task is written when its record is complete
    begun                  a file to which the name of every task is written when its computation begins

The answer has the exit status and the list of counted calls.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Builds:
    """A client of the server, which it starts; a context manager that ends the server."""

    def __enter__(self) -> Builds:
        import tonari

        paths = os.pathsep.join([str(Path(tonari.__file__).parents[1]), str(ROOT)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.helpers.killing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            # One thread, since a fork copies only one.
            env=os.environ | {"PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._process.communicate()

    def run(self, points: Path, out: Path, **more: Any) -> dict[str, Any]:
        """Build until the requested end; return the exit status, negative for a signal, and the counted calls."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"points": str(points), "out": str(out), **more}) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the server has ended"
        told: dict[str, Any] = json.loads(answer)
        return told


def _serve() -> None:
    import tonari.shards.build  # before the first fork

    assert tonari
    for line in sys.stdin:
        wanted = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _leave_with(_build, wanted, writing)
        os.close(writing)
        if "after" in wanted:
            time.sleep(wanted["after"])
            os.kill(child, signal.SIGKILL)
        with os.fdopen(reading) as pipe:
            told = pipe.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(json.dumps({"status": status, "calls": told.split()}), flush=True)


def _leave_with(build: Any, wanted: dict[str, Any], pipe: int) -> None:
    """End the forked process with status 0, or 1 after an exception."""
    import traceback

    try:
        build(wanted, pipe)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _build(wanted: dict[str, Any], pipe: int) -> None:
    import warnings

    import tonari
    from tests.helpers.disk import Disk
    from tests.helpers.shards import plans_of
    from tonari.shards import build
    from tonari.shards.directory.workspace import Workspace
    from tonari.shards.tasks import Worker

    warnings.simplefilter("error")
    if "rows" in wanted:
        build.plan_build = plans_of(wanted["rows"], wanted.get("block"))
    disk = Disk(wanted.get("end_at"), power_cut=wanted.get("power_cut", False))
    log, begun = (
        os.open(wanted[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND) if name in wanted else None
        for name in ("log", "begun")
    )
    finish, compute, finished = Workspace.finish, Worker.compute, itertools.count(1)

    def logged(files: Workspace, task: str, done: Any) -> None:
        finish(files, task, done)
        if log is not None:
            os.write(log, f"{task}\n".encode())
        if next(finished) == wanted.get("tasks"):
            os.kill(os.getpid(), signal.SIGKILL)

    def noted(worker: Worker, step: Any, task: Any, piece: Any) -> Any:
        if begun is not None:
            os.write(begun, f"{task.name}\n".encode())
        return compute(worker, step, task, piece)

    Workspace.finish = logged  # type: ignore[method-assign]
    Worker.compute = noted  # type: ignore[method-assign]
    disk.install()
    try:
        tonari.build_graph(wanted["points"], out=wanted["out"], **wanted["given"])
    finally:
        disk.remove()
    os.write(pipe, " ".join(disk.calls).encode())


if __name__ == "__main__":
    _serve()
