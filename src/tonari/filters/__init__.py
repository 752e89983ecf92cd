"""Filters decide which points a query may find: masks, lists of excluded points, windows of row numbers, and groups.

    rules.py       the rules of a call, and whether a query may find a point
    shared.py      a mask that is the same for all queries
    arguments.py   checks of the callers' arguments
    answers/       answers to a call: nearest points, points within a radius, their number
    scope.py       the points of the current search without rules, and the memory that it may use
    listed.py      few allowed points per query: computes the exact values of all of them
    dropping.py    many allowed points per query: searches for more than k neighbours, and drops the forbidden ones
    looking.py     estimates, from a few queries, that decide between ways to answer

Every answer has the bits of a search among the allowed points alone: row numbers keep their order when points are left
out, and the value of a pair does not depend on other points. Ties therefore go to the smaller row number here too.
"""
