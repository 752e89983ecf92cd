"""Replay: store the launches of a small search, and run them again when the search is repeated with new values.

cache.py           the cache of stored launches, by the shapes of a search
capture.py         stores launches as a CUDA graph (cuda/recorded.py); few.py stores two launches without a graph
spread.py          stores, for several devices, a graph for each device and a graph that joins their lists
kept.py            a stored search, and the last steps of a replayed call
"""
