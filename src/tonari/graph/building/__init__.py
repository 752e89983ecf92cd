"""Build the neighbour lists of a graph, merge two graphs, and change the points of a graph.

build.py         build the graph of a set of points: exactly, or approximately up to a recall
sides.py         check two graphs and their points against each other before a merge
merging.py       merge two graphs (wang2021, section 5), and add points to a graph
changing.py      remove points from a graph, or replace their rows; repair.py completes lists that lost entries
changed_rows.py  merge and change graphs whose metric compares transformed rows, such as mahalanobis
"""
