"""Build the graph of points that are created when they are needed, interrupt the build, and resume it.

The points are an object with a shape and a method rows(begin, end), which could read a database, or compute rows from
images. Here the rows are drawn around a few hundred centres, and every call returns the same rows. The memory of the
build is limited to a fraction of the size of all points. After a third of the work the build is interrupted, as if by
Ctrl-C, and the second call resumes it.

python examples/beyond_memory.py
"""

from __future__ import annotations

import argparse
import functools
import shutil
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt

import tonari

OUTPUT = Path(__file__).parent.parent / "demo-output"
BLOCK = 4096  # rows drawn with one seed
CENTRES, D = 300, 64


@functools.lru_cache(maxsize=2)  # a build also reads single rows, in order, to recognise the points later
def block(number: int) -> npt.NDArray[np.float32]:
    """Draw a block with a seed of its own."""
    centres = 3 * np.random.default_rng(0).standard_normal((CENTRES, D), dtype=np.float32)
    rng = np.random.default_rng([1, number])
    return centres[rng.integers(CENTRES, size=BLOCK)] + rng.standard_normal((BLOCK, D), dtype=np.float32)


class Drawn:
    """Points that are drawn in blocks."""

    def __init__(self, n: int) -> None:
        self.shape = (n, D)

    def rows(self, begin: int, end: int) -> npt.NDArray[np.float32]:
        """Return rows begin to end - 1."""
        first = begin // BLOCK
        blocks = [block(number) for number in range(first, -(-end // BLOCK))]
        return np.concatenate(blocks)[begin - first * BLOCK : end - first * BLOCK]


def main(arguments: list[str] | None = None) -> None:
    """Build, interrupt, resume, and look at the result."""
    parser = argparse.ArgumentParser(description="Build a graph beyond memory.")
    parser.add_argument("--points", type=int, default=60_000)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--memory", default="40MB")
    parser.add_argument("--out", type=Path, default=OUTPUT / "beyond-memory")
    given = parser.parse_args(arguments)
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.parent.mkdir(exist_ok=True)
    points = Drawn(given.points)
    megabytes = given.points * D * 4 / 1e6
    print(f"{given.points:,} points of {D} dimensions: {megabytes:.0f} MB, and a budget of {given.memory}")

    def interrupt(done: int, total: int) -> None:
        if done > total / 3:
            raise KeyboardInterrupt

    started = time.perf_counter()
    try:
        tonari.build_graph(points, given.k, given.out, memory=given.memory, progress=interrupt)
    except KeyboardInterrupt:
        kept = len(list((given.out / "done").glob("*.json")))
        print(f"interrupted after {time.perf_counter() - started:.2f} s, with {kept} tasks done")
    started = time.perf_counter()
    graph = tonari.build_graph(points, given.k, given.out, memory=given.memory)
    print(f"resumed, and complete after another {time.perf_counter() - started:.2f} s: {graph}")
    size = sum(path.stat().st_size for path in given.out.iterdir())
    print(f"{given.out}: {size:,} bytes; row 0 is read from there: {graph.indices[0].tolist()}")


if __name__ == "__main__":
    main()
