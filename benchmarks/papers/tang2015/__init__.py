"""tang2015: its figures, and the selection's share of the time of a search."""

from . import share
from .selection import PAPER

SUITE = PAPER.suite(*share.cases())
