"""One run of the benchmarks of approximate graphs, on some threads of a processor or on a GPU."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from . import descent_data, descent_rows
from .descent_proof import GraphTruth
from .kdtree_run import TreeRun

if TYPE_CHECKING:
    from .descent_cases import Case

# Rows that recall is measured on.
SAMPLE = {"cpu": 2000, "cuda": 4000}


@dataclass
class DescentRun(TreeRun):
    """A run whose rows are those of ``descent_rows``.

    Attributes
    ----------
    who : shell patterns of the contestants that are wanted
    """

    who: tuple[str, ...] = ("*",)
    columns: ClassVar[tuple[str, ...]] = descent_rows.COLUMNS
    libraries: ClassVar[tuple[str, ...]] = descent_rows.LIBRARIES
    line_of: ClassVar[Callable[[dict[str, Any]], str]] = staticmethod(descent_rows.line_of)

    def wants(self, name: str) -> bool:
        """Whether a contestant takes part."""
        return any(fnmatch.fnmatch(name, pattern) for pattern in self.who)

    def points(self, case: Case) -> Any:
        """The points of a case, a tensor; cases that follow one another share theirs."""
        shape = (case.data, case.n, case.d, case.dtype)
        return self.keep(shape, lambda: descent_data.make(*shape, self.where))

    def truth(self, case: Case) -> GraphTruth:
        """What is true of a case's points, kept beside them."""
        points = self.points(case)
        k = max(case.k, case.truth_k)
        if ("truth", k) not in self.kept:
            sample = SAMPLE[self.device.kind]
            self.kept["truth", k] = GraphTruth(self.tonari, points, k, sample, self.device.values, self.options())
        found: GraphTruth = self.kept["truth", k]
        return found

    def options(self) -> dict[str, Any]:
        """Arguments that every call of ours has."""
        return {"progress": False} | ({} if self.cuda else {"threads": self.threads})
