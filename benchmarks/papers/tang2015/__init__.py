"""tang2015: its figures, and the share of the selection in a search."""

from . import share
from .selection import PAPER

SUITE = PAPER.suite(*share.cases())
