"""The k-d tree on the CPU.

tree.py       the data structure: points in leaf order, a tight box around every leaf and every node
build.py      points -> Tree: exact medians on every level, in parallel
search.py     queries in the order of their first leaves -> neighbours, by visiting the nearest leaves first
radius.py     queries in the same order -> all neighbours within a radius
prepared.py   points and their tree, kept between searches
method.py     the method as registered
"""
