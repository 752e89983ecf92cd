"""Tuned numbers of searches with filters."""

# Not measured by a case, but by hand on an EPYC (Zen 4): finding the places of a million entries of which 1 % are true.
PACKED_ENTRIES = 1 << 18  # of a mask of which it takes less time to look at packed bits
PACKED_BYTES = 4  # of so many bytes of bits at most one may have a bit for that

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_count with groups="other", of which one has half of the
# points. Such a group's complement is counted, since that is less than all points and the group, and worth a copy.
COMPLEMENT_SHARE = 3  # one of so many points, or more, is of a query's own group
COMPLEMENT_QUERIES = 64  # at least so many queries are of that group

# Not measured by a case, but by hand on an EPYC (Zen 4): radius_search with max_neighbors from 65 on. Counting for all
# queries takes about as long as a search for the nearest; a count of a few says whether that search is worth its time.
COUNTED_QUERIES = 64
COUNTED_ONE_OF = 32  # queries
COUNTED_MOST_WANTED = 256  # a search for more takes longer by itself than a count and the lists

# Not measured: a search that is refused names a budget, which has to be enough for those with other k that follow.
SLACK = 4  # the part by which they may need more
