"""How the lists of a graph are made.

build.py         for a set of points: exact, or up to a recall (approximate.py)
sides.py         two sets of points and their graphs, checked against each other
merging.py       merge two graphs (wang2021, section 5), and add points to a graph
changing.py      remove points from a graph, and replace the rows of points; again.py: searches for their lists
"""
