"""matsumoto2015: the paper's figures, its min-max heap timed alone, and its TH-heap as a complete search on CUDA."""

from ...harness.case import Case
from . import finish, search
from .selection import PAPER

SUITE = PAPER.suite(
    Case("finish", "cpu", 0, 0, 0, 0, finish.compare, data="", metric="", cost=30.0),
    Case("search", "cuda", 1_000_000, 8192, 128, 64, search.compare, data="sift", cost=40.0),
)
