"""Filters decide which points a query may find: masks, lists of excluded points, windows of row numbers, and groups.

    rules.py       the rules of a call, and whether a query may find a point
    shared.py      a mask that is the same for all queries
    arguments.py   checks of the callers' arguments
    excluded.py    the points that are excluded for each query
    searches/      searches by rules: nearest points, points within a radius, their number
    scope.py       the points to search, and the memory for searches that ignore the rules
    listed.py      for few allowed points per query: computes the exact values of all of them
    dropping.py    for many allowed points per query: a search for more than k neighbours without the forbidden ones
    looking.py     estimates that choose the fastest of these methods

Every answer has the same bits as a search among only the allowed points: row numbers keep their order when points are
left out, and the value of a pair does not depend on other points. Ties therefore go to the smaller row number here too.
"""
