"""The k-d tree on the CPU.

tree.py       the data structure: points in leaf order, a tight box around every leaf and every node
build.py      points -> Tree: exact medians on every level, in parallel
search.py     queries in the order of their first leaves -> neighbours; near leaves are visited first
radius.py     the same for all neighbours within a radius
prepared.py   points and their tree, kept between searches
method.py     the method as registered
"""
