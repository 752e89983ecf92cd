"""Tuning constants of searches with filters; a comment on each group names its benchmark case."""

# Case: filters once-0.01-10000, once-0.001-10000 on cuda. Chosen on: EPYC (Zen 4), H100.
# A fast loop finds the true entries of a sparse mask. A million entries take 28, 83, 181 and 213 µs if 0.1, 1, 6 and
# 10 % are true; in NumPy 113, 195, 830 and 424 µs.
FEW_ENTRIES = 16  # a mask is sparse if at most one in this many entries is true
# To copy a mask to an H100 and to find its true entries there takes 0.2 ms.
COPIED_ENTRIES = 1 << 18  # masks of at least this many entries are copied to the points' device, unless they are sparse

# Not measured by a benchmark case, but by hand on an EPYC (Zen 4), with 65,000 points in lists that are looked up in
# 200,000 excluded pairs.
SEARCHED_NUMBERS = 16  # with more excluded pairs per looked-up pair than this, binary searches are faster than a table
TABLE_BYTES = 4  # minimum bytes of the lookup table per excluded pair; the maximum is twice as many
TABLE_BLOCK = 1 << 15  # number of pairs that are looked up in one step, so that temporary arrays stay in a cache

# Not measured by a benchmark case, but by hand on an EPYC (Zen 4), by radius_count with groups="other" and one group of
# half of the points. For a query in a large group, only copies of the other points are searched: this is faster than to
# count all points and to subtract the points of the group.
COMPLEMENT_SHARE = 3  # a group is large if at least one in this many points belongs to it
COMPLEMENT_QUERIES = 64  # if a large group has at least this many queries, the points outside it are copied for them

# Not measured by a benchmark case, but by hand on an EPYC (Zen 4), by radius_count of 2,000 queries in 20,000 points.
APART_GROUPS = 8  # points are counted group by group if the queries have at most this many groups, all of them large
LISTED_PAIRS = 1 << 17  # listed pairs that are counted in one block, so that the block's arrays stay in a cache
NEAR_FEW = 4  # nearest points in the first search of a list, if few of its points are expected within the radius
NEAR_ALL = 16  # a list of at most this many points is searched for all of them at once
LISTED_POINT = 5e-8  # extra seconds per point within the radius for listing and filtering, compared with counting

# Not measured by a benchmark case, but by hand on a Xeon (Sapphire Rapids), by radius_count and radius_search with and
# without rules. If the counts of a few queries show that few points are within the radius, all of them are listed, and
# forbidden points are dropped from the lists.
SHORT_LISTS = 16  # lists are short if at most one in this many points is within the radius
UNCOUNTED_QUERIES = 64  # a radius search does not count first if memory has room for this many lists of all points
SOON = 0.5  # exact values of all allowed points are computed if this takes less than this share of the time of a search
LOOKED_AT = 2e-9  # seconds per entry to make a table of allowed points

# Not measured by a benchmark case, but by hand on an EPYC (Zen 4), by radius_search with max_neighbors of 65 and more.
# To count for all queries takes about as long as to search for the nearest points, so a sample is counted to decide.
COUNTED_QUERIES = 64  # maximum number of queries in the sample
COUNTED_ONE_OF = 32  # the sample has at most one query in this many
SHORT_SEARCH = 256  # up to this many wanted points, a search for the nearest beats lists that are slightly too long

# Not measured: the budget that an error suggests must suffice for later searches with other k too.
SLACK = 4  # the memory suggested for searches exceeds the required memory by 1 / SLACK of it

# Not measured by a benchmark case, but by hand on an H200: for a spanning tree of 200,000 x 20, one or two queries were
# searched with each of 12 list lengths, and kernels were compiled for 8 ranges of lengths, 1 to 4 s each.
LEAST_LENGTH = 32  # minimum length of lists to search for on CUDA; for a few queries, this takes two kernel launches
MANY_QUERIES = 512  # with fewer queries, list lengths on CUDA grow by GROWTH instead of 2: fewer kernels are compiled

# Case: filters once-0.1, once-0.001 on cpu. Chosen on: an unrecorded machine.
GROWTH = 4  # if a list was too short, its query is searched again for this many times as many points [2, 4, 8]
FEW_POINTS = 4096  # with at most this many points, no times are estimated to choose between a search and exact values
LARGE_PAIRS = 1 << 20  # groups of more pairs (queries * points) may be searched separately [1 << 18, 1 << 20, 1 << 22]

# Not measured by a benchmark case. Chosen on: an unrecorded machine.
TABLE_POINT_SECONDS = 1e-8  # seconds per allowed point to list the point from a table
COPIED_BYTE_SECONDS = 5e-10  # approximate seconds per byte to gather rows in host memory
GATHERED_READS = 2.0  # time to gather a byte of rows on a device, as a multiple of the time to read it
COUNTED_FEW = 16  # if less than one in this many points is allowed, exact values are the fastest method
COUNTED_PIECE = 256  # number of points of a list that are counted in one step
COUNTED_LARGE = 1 << 18  # minimum number of pairs (queries * points) of a group that is counted by its own search
WITHIN_LARGE = 4096  # a group with more points than this is searched separately within a radius
TOO_MANY = 2  # a search for the nearest is faster if more than this many times the wanted points are within the radius
FEWER = 8  # exact values are faster if more than this many times the allowed points are within the radius
LISTED_FEW = 32  # exact values of the allowed points are faster if less than one in this many points is allowed

# Not measured: bounds on memory.
ROOM_BYTES = 1 << 30  # maximum bytes for the pairs that are checked in one block, if there is no budget
ROOM_SHARE = 4  # 1 / ROOM_SHARE of the memory is reserved for pairs while rules are checked
