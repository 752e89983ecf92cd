"""An Index: points that are prepared once, searched many times, and changed.

index.py       the class; its methods are in search.py, radius.py, changes.py and keeping.py, with the base base.py
codes.py       the argument `codes`
file.py        its file format
state.py       the state of an Index, parts in ascending order of id; a change makes a new State
part.py        a segment with the ids of its points and a record of the removed ones
segment.py     points that are prepared once and never change
balancing.py   the choice of the segments that are merged
joining.py     the results of all segments merged into one
sparse_state.py, sparse_file.py    state and file of an Index of sparse rows
"""
