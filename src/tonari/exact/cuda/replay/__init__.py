"""Repeated small searches: their launches are kept and replayed with new values.

cache.py           the kept launches, by the shapes of a search
capture.py         launches kept as a CUDA graph; few.py: two launches without a graph
kept.py            the end of a replayed call
"""
