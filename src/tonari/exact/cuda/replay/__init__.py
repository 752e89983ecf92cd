"""Replay: the launches of repeated small searches are kept, and run again on new values.

cache.py           the cache of kept launches, by the shapes of a search
capture.py         launches kept as a CUDA graph (recorded.py); few.py: two launches without a graph
spread.py          on several devices: a graph for each, and one that joins their lists
kept.py            the last steps of a replayed call
"""
