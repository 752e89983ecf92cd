"""The points of an Index, in segments: searches visit all segments, and updates replace some.

state.py          the state of an Index, parts in ascending order of id; a change makes a new State
part.py           a segment with the ids of its points and a record of the removed ones
segment.py        points that are prepared once and never change
balancing.py      the choice of the segments that are merged
joining.py        the results of all segments merged into one
sparse_state.py   the state of an Index of sparse rows
"""
