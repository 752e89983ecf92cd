"""Small searches that are repeated: their launches are kept, and made again with other values.

cache.py           what is kept, by the shapes of a search
capture.py         CUDA graphs; few.py: two launches without one
kept.py            how a call ends
"""
