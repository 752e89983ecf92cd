"""An Index: points that are prepared once, searched many times, and changed.

index.py       the class; its methods are in search.py, radius.py, changes.py and keeping.py, its base class in base.py
codes.py       the argument `codes` on CUDA; coded.py: codes in memory of rows on disk, for the CPU
segments/      the points in segments, with their ids; an update replaces the state that holds all segments
files/         file formats of a saved Index
"""
