"""matsumoto2015: its figures, and TH-heap as a whole search on CUDA."""

from ...harness.case import Case
from .search import compare
from .selection import PAPER

SUITE = PAPER.suite(Case("search", "cuda", 1_000_000, 8192, 128, 64, compare, data="sift", cost=40.0))
