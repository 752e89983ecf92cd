"""The points of an Index, in segments: searches visit every segment, and updates replace some segments.

state.py          the state of an Index: parts in ascending order of id; an update makes a new State
part.py           a part: a segment with the ids of its points and a record of the removed ones
segment.py        a segment: points that are prepared once and never change
balancing.py      chooses the segments to merge
joining.py        merges the results of all segments
sparse_state.py   the state of an Index of sparse rows
"""
