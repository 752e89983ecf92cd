"""Proofs of answers before they are timed, one for each kind of answer.

================  ===================================================================================================
``neighbors``     exact neighbours: order of every row, bits of tonari.metrics.reference on a sample
``graph``         approximate graphs: exact distances of the listed points, recall with its interval
``selection``     selections: bits of a stable sort
================  ===================================================================================================
"""

from .rows import WrongAnswer, check_rows, own_places, without_self

__all__ = ["WrongAnswer", "check_rows", "own_places", "without_self"]
