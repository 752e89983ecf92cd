"""Filters decide which points a query may find: masks, lists of excluded points, windows of row numbers, and groups.

    rules.py       the rules of a call, and whether a query may find a point
    shared.py      a mask that is the same for all queries
    arguments.py   checks of the callers' arguments
    asking.py      entry points of a call, with or without rules
    scope.py       the points to search, and the memory for searches that ignore the rules
    listed.py      for few allowed points per query: computation of the exact values of all of them
    dropping.py    for many allowed points per query: a search for more than k neighbours without the forbidden ones
    nearest.py     the k nearest allowed points, by the faster of these two methods
    within.py      all allowed points within a radius, or the nearest of them
    ties.py        the k nearest points, and all others at the distance of the k-th
    counting.py    the number of allowed points within a radius
    looking.py     estimates that choose the fastest of these methods

Every answer has the same bits as a search among only the allowed points: row numbers keep their order when points are
left out, and the value of a pair does not depend on other points. Ties therefore go to the smaller row number here too.
"""
