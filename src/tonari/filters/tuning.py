"""Tuned numbers of searches with filters."""

# Case: filters once-0.01-10000, once-0.001-10000 on cuda. Chosen on: EPYC (Zen 4), H100.
# A million entries take 28, 83, 181 and 213 µs if 0.1, 1, 6 and 10 % are true; in NumPy 113, 195, 830 and 424 µs.
FEW_ENTRIES = 16  # at most one in this many entries of a mask is true: their positions are found quickly
# Finding positions on an H100 takes 0.2 ms, with the copy of the mask.
COPIED_ENTRIES = 1 << 18  # entries of a mask; a larger one with more true entries is read on the points' device

# Not measured by a case, but by hand on an EPYC (Zen 4): 65,000 points in lists, looked up in 200,000 excluded pairs.
SEARCHED_NUMBERS = 16  # binary searches are faster than a table for this many excluded pairs per number
TABLE_BYTES = 4  # bytes of the table for each excluded pair, at least; at most twice as many
TABLE_BLOCK = 1 << 15  # numbers per block: its temporary arrays fit into a cache

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_count with groups="other" and one group of half of the
# points. For such a group, a copy of the other points is counted: they are fewer than all points and the group.
COMPLEMENT_SHARE = 3  # a group is large if it has at least one in this many points
COMPLEMENT_QUERIES = 64  # fewest queries of a large group that justify the copy

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_count of 2,000 queries among 20,000 points.
APART_GROUPS = 8  # most groups of queries that are counted one after another if each is large
LISTED_PAIRS = 1 << 17  # per block: its arrays fit into a cache
NEAR_FEW = 4  # nearest points of a list that are searched for at first, if few are within the radius
NEAR_ALL = 16  # longest list whose points are all searched for at once
LISTED_POINT = 5e-8  # additional seconds per point of a list that is filtered, compared with a count

# Not measured by a case, but by hand on a Xeon (Sapphire Rapids): radius_count and radius_search by rules, against the
# same without rules. Forbidden points are dropped from lists of everything within the radius if a few queries show that
# the lists are short. No count of all queries is needed if the memory holds the longest lists of UNCOUNTED_QUERIES.
SHORT_LISTS = 16  # at most one in this many points is within the radius
UNCOUNTED_QUERIES = 64
# Exact values of points that rules list are preferred if they take less than this share of the time of a search.
SOON = 0.5
LOOKED_AT = 2e-9  # seconds per point in a table of allowed points

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_search with max_neighbors from 65 on. Counting for all
# queries takes about as long as a search for the nearest; a count of a few says whether that search is worth its time.
COUNTED_QUERIES = 64
COUNTED_ONE_OF = 32  # one query in this many is counted
SHORT_SEARCH = 256  # a search for more neighbours takes longer than a count and somewhat longer lists

# Not measured: the budget that a refusal names must also be enough for later searches with other k.
SLACK = 4  # later searches may need one part in this many more

# Not measured by a case, but by hand on an H200: the first spanning tree of 200,000 x 20 asked for 12 different lengths
# for one or two queries, and compiled kernels for eight ranges of them, 1 to 4 s each.
LEAST_LENGTH = 32  # neighbours; searches of a few queries for up to this many take two launches
MANY_QUERIES = 512  # for this many queries, lists that are longer than necessary take more time than they save

# Case: filters once-0.1, once-0.001 on cpu. Chosen on: not recorded.
GROWTH = 4  # ratio of the lengths of the next lists, for queries whose lists were too short [2, 4, 8]
FEW_POINTS = 4096  # up to this many points, all lists are short
LARGE_PAIRS = 1 << 20  # pairs of a group; a group with more may be searched separately [1 << 18, 1 << 20, 1 << 22]

# Not measured by a case. Chosen on: not recorded.
TABLE_POINT_SECONDS = 1e-8  # seconds per listed point in a table of allowed points
COPIED_BYTE_SECONDS = 5e-10  # approximate seconds per byte of rows that are gathered in host memory
GATHERED_READS = 2.0  # gathering a byte on a device takes this many times as long as reading it
COUNTED_FEW = 16  # if less than one in this many points is allowed, their exact values are the fastest way
COUNTED_PIECE = 256  # points of a list that are counted in one step
COUNTED_LARGE = 1 << 18  # pairs of a group that is counted by a separate search
WITHIN_LARGE = 4096  # points of a group that is searched separately within a radius
# Ratios above which another way takes less time.
TOO_MANY = 2  # points within the radius to points wanted: a search for the nearest
FEWER = 8  # points within the radius to allowed points: exact values of the allowed points
LISTED_FEW = 32  # all points to allowed points: the same

# Not measured: bounds of memory.
ROOM_BYTES = 1 << 30  # bytes of the pairs that are checked in one block, if there is no budget
ROOM_SHARE = 4  # one part in this many of the memory may be used by pairs while rules are checked
