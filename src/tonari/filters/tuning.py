"""Tuned numbers of searches with filters."""

# Not measured by a case, but by hand on an EPYC (Zen 4): if 0.1, 1, 5 and 10 % of a million entries are true, NumPy
# takes 118, 206, 759 and 443 µs to find their places, and words take 48, 128, 358 and 562 µs.
WORDS_ENTRIES = 1 << 18  # entries of a mask from which on testing words of eight entries is faster
FOUND_WORDS = 2  # of so many words at most one may have a true entry for that

# Not measured by a case, but by hand on an H100: the places of a million entries of which 1 % are true take 0.2 ms to
# find on the device, with the copy of the mask, and 0.5 ms in host memory; those of 0.1 % take 0.1 ms in host memory.
COPIED_ENTRIES = 1 << 18  # of a mask: a larger one is copied to the points' device and read there
READ_WORDS = 64  # unless at most one of so many words of eight entries has a true entry
SAMPLED_WORDS = 64  # one of so many words shows that

# Not measured by a case, but by hand on an EPYC (Zen 4): 65,000 points in lists, looked up in 200,000 excluded pairs.
SEARCHED_NUMBERS = 16  # times as many excluded pairs as numbers take longer to enter into a table than binary searches
TABLE_BYTES = 4  # of the table for each excluded pair, or up to twice that
TABLE_BLOCK = 1 << 15  # numbers per block: its temporary arrays fit into a cache

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_count with groups="other", of which one has half of the
# points. Such a group's complement is counted, since that is less than all points and the group, and worth a copy.
COMPLEMENT_SHARE = 3  # one of so many points, or more, is of a query's own group
COMPLEMENT_QUERIES = 64  # at least so many queries are of that group

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_count of 2,000 queries among 20,000 points.
APART_GROUPS = 8  # of all queries, at most, that are counted one after the other if each is large
LISTED_PAIRS = 1 << 17  # per block: its arrays fit into a cache
NEAR_FEW = 4  # nearest points of a list that are searched for at first, if few are within the radius
NEAR_ALL = 16  # points of a list of which all are searched for at once
LISTED_POINT = 5e-8  # seconds of a point in a list that is cut, more than of one that is counted

# Not measured by a case, but by hand on a Xeon (Sapphire Rapids): radius_count and radius_search by rules, against the
# same without rules. Forbidden points are dropped from lists of everything within the radius if a few queries show that
# the lists are short. No count of all queries is needed if the memory holds the longest lists of UNCOUNTED_QUERIES.
SHORT_LISTS = 16  # at most one in this many points is within the radius
UNCOUNTED_QUERIES = 64
# Exact values of points that are listed by rules are preferred where they take less time than this part of a search.
SOON = 0.5
LOOKED_AT = 2e-9  # seconds per point in a table of allowed points

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_search with max_neighbors from 65 on. Counting for all
# queries takes about as long as a search for the nearest; a count of a few says whether that search is worth its time.
COUNTED_QUERIES = 64
COUNTED_ONE_OF = 32  # queries
SHORT_SEARCH = 256  # a search for more takes longer by itself than a count and lists of few points more

# Not measured: a search that is refused names a budget, which has to be enough for those with other k that follow.
SLACK = 4  # the part by which they may need more

# Not measured by a case, but by hand on an H200: the first spanning tree of 200,000 x 20 asked for 12 different lengths
# for one or two queries, and compiled kernels for eight ranges of them, 1 to 4 s each.
LEAST_LENGTH = 32  # neighbours; searches of a few queries for up to this many take two launches
MANY_QUERIES = 512  # for which a longer list than is needed takes more time than it saves

# Case: filters once-0.1, once-0.001 on cpu. Chosen on: not recorded.
GROWTH = 4  # ratio of the lengths of the next lists, for queries whose lists were too short [2, 4, 8]
FEW_POINTS = 4096  # of so few points, all lists are short
LARGE_PAIRS = 1 << 20  # pairs of a group; a group with more may be searched separately [1 << 18, 1 << 20, 1 << 22]

# Not measured by a case. Chosen on: not recorded.
TABLE_POINT_SECONDS = 1e-8  # seconds per listed point in a table of allowed points
COPIED_BYTE_SECONDS = 5e-10  # seconds per byte of rows that are gathered in host memory, about
GATHERED_READS = 2.0  # gathering a byte on a device takes this many times as long as reading it
COUNTED_FEW = 16  # times as many points as are allowed take longer to look at than exact values of those
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
