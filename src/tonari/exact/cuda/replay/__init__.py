"""Replay: the launches of repeated small searches are kept, and run again on new values.

cache.py           the cache of kept launches, by the shapes of a search
capture.py         launches kept as a CUDA graph; few.py: two launches without a graph
kept.py            the last steps of a replayed call
"""
