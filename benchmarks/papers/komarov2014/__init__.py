"""komarov2014: its figures and table 2, and whole graphs by quick multi-select."""

from . import graphs
from .selection import PAPER

SUITE = PAPER.suite(*graphs.cases())
