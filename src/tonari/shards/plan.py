"""The plan of a build: its route, the rows of a shard, and its host memory, device memory and disk space."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tonari.core.plan import table

METHODS = ("auto", "exact", "clusters", "ggm")


@dataclass(frozen=True, kw_only=True)
class ShardPlan:
    """Every choice for a build, made before it starts.

    Attributes
    ----------
    route : "exact", "exact-pairs", "clusters" or "ggm"
    rows : int
        Largest number of rows in a slab or shard.
    shards : int
        The number of slabs or shards; for "clusters" the expected number.
    block : int
        Rows of the result that one task merges.
    clusters : int
        Number of centres that assign rows to shards; 0 for the other routes.
    group : int
        For "ggm", the largest number of slabs in a group; the lists of a group stay in memory while its slabs are
        compared with the slabs of another group (pair_rounds.py). For "clusters", the number of shards whose rows are
        read in one pass.
    segment : int
        For "clusters", the number of blocks in a segment. The lists of a shard are stored in one part for each segment,
        which is removed when the rows of the segment are merged. So the disk never holds the lists of all shards and
        all rows of the result.
    staged_bytes : int
        Page-locked host memory for the rows of the next task; 0 if these rows are stored on the device.
    engine_bytes : int
        The part of the memory budget that a search, or the build of one shard's graph, may use.
    host_bytes, device_bytes, disk_bytes : int
        The largest use of host memory by each worker, beyond the interpreter and the system's file cache; of device
        memory on each device; and of disk space in the directory.
    seconds : float
        Expected duration on one worker.
    """

    route: str
    rows: int
    shards: int
    block: int
    clusters: int
    staged_bytes: int
    engine_bytes: int
    host_bytes: int
    device_bytes: int
    disk_bytes: int
    seconds: float
    group: int = 1
    segment: int = 1

    @classmethod
    def of_manifest(cls, facts: dict[str, Any]) -> ShardPlan:
        """Make a plan from the fields of a manifest; earlier releases lack `group` and `segment`, which are then 1."""
        missing = {"group": 1, "segment": 1}
        return cls(**{one.name: facts.get(one.name, missing.get(one.name, 0)) for one in dataclasses.fields(cls)})

    @property
    def is_exact(self) -> bool:
        """Whether the lists are exact, so that no neighbour can be missed."""
        return self.route in ("exact", "exact-pairs")

    @property
    def reads_ahead(self) -> bool:
        """Whether the rows of the next task are read while the current task is computed.

        True on CUDA. On the CPU, the memory for the next rows is used for larger shards instead, which save more time
        than reading ahead.
        """
        return self.device_bytes > 0

    @property
    def by_parts(self) -> bool:
        """Whether a row of the result is merged from the lists of several shards, one segment of rows after another."""
        return self.route == "clusters" and self.shards > 1

    def segments(self, n: int) -> list[range]:
        """Return the segments of a result of n rows, each as a range of block numbers.

        >>> facts = dict.fromkeys(("clusters", "staged_bytes", "engine_bytes", "host_bytes", "device_bytes"), 0)
        >>> plan = ShardPlan(route="clusters", rows=9, shards=3, block=4, disk_bytes=0, seconds=0.0, segment=2, **facts)
        >>> plan.segments(19)
        [range(0, 2), range(2, 4), range(4, 5)]
        """
        blocks = -(-n // self.block)
        return [range(at, min(at + self.segment, blocks)) for at in range(0, blocks, self.segment)]

    @property
    def rows_read(self) -> int:
        """The largest number of rows that are read at once.

        On a device, this includes the rows of the next task, which are read while the current task is computed.
        """
        return self.rows if self.is_exact else self.block

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        return table(self.as_dict())
