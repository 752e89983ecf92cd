"""An Index: points that are prepared once, searched many times, and changed.

index.py       the class; its methods are in search.py, radius.py, changes.py and keeping.py, with the base base.py
codes.py       the argument `codes` on CUDA; coded.py: rows on disk with codes in memory, on the CPU
segments/      the points: segments, the ids of their points, and the state that a change replaces
files/         its file formats
"""
