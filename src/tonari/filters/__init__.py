"""Which points a query may find: masks, lists of points that it must not find, and groups.

    rules.py       the rules of a call, and whether a query may find a point
    shared.py      a mask that is the same for all queries
    arguments.py   from what callers give to rules
    asking.py      what a call finds of its points, by rules if there are some
    scope.py       the points that are searched at the moment, without rules, and the memory that is left for that
    listed.py      few points for each query: exact values of all that it may find
    dropping.py    many: the nearest without rules, more than are wanted, less those that are not allowed
    nearest.py     which of the two, and the k nearest
    within.py      everything within a radius, or the nearest of it
    counting.py    how much is within a radius

Every answer is that of a search among the allowed points alone, bit for bit: numbers of points keep their order when
points are left out, and values of pairs do not depend on other points. So ties go to the smaller number here, too.
"""
