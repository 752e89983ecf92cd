"""Which points a query may find: masks, lists of points that it must not find, and groups.

    rules.py       the rules of a call, and whether a query may find a point
    shared.py      a mask that is the same for all queries
    arguments.py   checks of the callers' arguments
    asking.py      answers to a call, with rules if it has any
    scope.py       the points of the current search without rules, and the memory that it may use
    listed.py      few allowed points for each query: exact values of all of them
    dropping.py    many allowed points: search for more than k neighbours, and drop the forbidden ones
    nearest.py     the choice between the two, and the k nearest
    within.py      all points within a radius, or the nearest of them
    counting.py    the number of points within a radius

Every answer has the bits of a search among the allowed points alone: row numbers keep their order when points are left
out, and the value of a pair does not depend on other points. Ties therefore go to the smaller row number here too.
"""
