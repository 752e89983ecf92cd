"""An Index: points that are prepared once, searched many times, and changed.

index.py       the class; its methods are in search.py, radius.py, changes.py and keeping.py, its base class in base.py
coded.py       the argument `codes`: a route on CUDA; on the CPU, codes in memory of rows on disk
segments/      the points in segments, with their ids; an update replaces the state that holds all segments
files/         file formats of a saved Index
"""
