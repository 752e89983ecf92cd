"""The k-d tree on the CPU.

tree.py       the data structure: points in leaf order, a tight box around every leaf and every node
build.py      points -> Tree: exact medians on every level, in parallel
search.py     queries, ordered by the leaf that contains them -> neighbours, by visiting the nearest leaves first
radius.py     queries in the same order -> all neighbours within a radius
prepared.py   the points and their tree, which later searches use again
method.py     the methods' common interface, implemented for this tree; a few queries in one native call
"""
