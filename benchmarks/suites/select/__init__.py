"""Cases of k-selection: cases with bars, few long rows, all methods over a grid of shapes, and shapes of every kind."""

from ...harness.case import Suite
from . import bars, few, grid, topk
from .measure import LIBRARIES

SUITE = Suite(
    "select",
    "select",
    (*bars.cases(), *few.cases(), *grid.cases(), *topk.cases()),
    libraries=LIBRARIES,
    repeats=7,
    workload=bars.workload,
)
