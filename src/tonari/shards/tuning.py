"""Tuned numbers of builds in a directory: sizes of shards and transfers, and numbers of attempts.

Each group of numbers names the benchmark case that measures it (``python -m benchmarks tune shards``), if there is one.
"""

# Case: shards 10m-clusters on cuda. Chosen on: an unrecorded machine.
# These numbers determine the overlapping shards of the route "clusters" (routes/dealing.py).
COPIES = 2.2  # expected mean number of shards that contain a row, for the plan; the build determines the actual number
MOST_SHARDS = 2 * COPIES  # most shards of equal size to try, as a multiple of n / rows per shard
ROOM = 0.9  # expected rows of a shard, as a share of the rows that fit into memory
SPREAD = 1.05  # expected ratio of a shard's actual size to its size estimated from a sample, at most
CENTRES_PER_SHARD = 32  # centres per shard, within the limits of CENTRES
CENTRES = (64, 2048)  # smallest and largest total number of centres
TRAINED = 32  # rows per centre on which k-means is trained
JUDGED = 1 << 15  # fewest rows of the sample that estimates the sizes of shards
PIECES = 256  # number of evenly spaced ranges of rows in a sample for centres or sizes
NEAR = 8  # number of nearest centres of a row whose shards may contain it
KMEANS_ROUNDS = 4
AXIS_STEPS = 16  # steps of the power method for the first principal axis
HALVING_STEPS = 4  # steps that improve a bisection of centres, each by a cut across the line between two means
BALANCING_TRIES = 5  # attempts at shards of equal size; each adapts the centres' weights to the last attempt
FULL = 0.95  # mean size of shards, as a share of the largest allowed size, above which balancing is given up
LEAST_CHANGE = 0.25  # an attempt multiplies weights by the root of a shard's relative size, at least this number
MORE_SHARDS = 1.05  # growth of the number of shards if some shards are too large
MOST_TURNS = 16  # most shards for the rows of one centre, as a multiple of n / rows per shard
MOST_MARGIN = 1.0  # largest margin, in units of the distance between two centres
LEAST_MARGIN = 0.01  # smallest positive margin; a smaller one becomes 0, so that shards do not overlap

# Not measured.
# A graph may miss the share 1 - recall of all neighbours. One half of it may be missed because no shard contains both
# points, the other half by the graphs of the shards.
LOST_TO_CUTS = 0.5
LOST_IN_SHARDS = 0.5
KNOWN_OF_A_PAIR = 100  # true neighbours across two slabs that measure the recall of a merge
MOST_SAMPLED = 1 << 14  # most rows that are sampled to measure the recall of merges
GRAPH_WORK = 2  # progress per row when the graph of a shard is built; 1 when rows are assigned to shards
READ_RATE = 1.5e9  # bytes per second read from files; a guess, for the choice of the route
TRUTH_TASKS = 4  # fewest tasks that search for true neighbours, so that several workers share them
SEGMENT_ROWS = 1 << 25  # rows of the result in a segment; when it is done, the shards' lists of its rows are removed
TASK_SECONDS = 10.0  # most seconds to build and write a shard on a device, since a killed build repeats it
WRITE_RATE = 1.2e9  # bytes per second that all devices together write to the disk
TRUTH_ROWS = 1 << 26  # most rows of the source that one task compares with the sampled rows
TRIES = 3  # attempts at a task before its error is raised

# Not measured by a case, but by hand on an EPYC (Zen 4): lists of ten neighbours in 15 shards, one thread. Merging by
# blocks of 65,536, 32,768, 16,384, 8,192 and 4,096 rows takes 380, 330, 245, 240 and 275 ns per list.
MERGED_AT_ONCE = 1 << 14  # rows that a thread merges in one step, whose lists fit into a cache
MERGING_THREADS = 16  # most threads that merge lists: more would only wait for the interpreter's lock

# Not measured by a case, but by hand on an EPYC (Zen 4): zlib computes checksums at 1.3 GB/s per thread, and the system
# writes 42 MB to its cache in 18 to 40 ms and to the disk in 17 to 26 ms.
CHECKED_AT_ONCE = 8 << 20  # fewest bytes whose checksum a thread computes in one step

# Not measured by a case, but by hand on four H100s and 64 cores: 8 million x 96 by 18 shards take 5.0 s on one device,
# 5.3 s on two and 7.1 s on four, and 40 million by 15 shards 13.6, 10.1 and 10.6 s.
SHARED_SECONDS = 0.2  # seconds per shard in Python code, which only one device's thread runs

# Not measured: bounds of memory, and of the time that threads wait for one another.
DEALT_AT_ONCE = 1 << 14  # rows that a thread assigns to shards in one step
RENUMBERED_AT_ONCE = 1 << 18  # rows on a device that are renumbered in one step
TAKEN_AT_ONCE = 1 << 15  # rows that a thread copies in one step
PAIRED = 1 << 13  # pairs of a sampled row and a true neighbour whose shards are compared in one step
CHANGED_BYTES = 4 << 20  # maximum bytes of original plus transformed rows, counted as float64, in one step
SUMMED_BYTES = 4 << 20  # rows that k-means adds up in one step, in bytes of float64
BLOCK_BYTES = 256 << 20  # most rows that are requested from a caller's object in one call, in bytes
STAGED_BYTES = 64 << 20  # size of the page-locked buffers through which rows are copied to a device, in bytes
LOCKED_BYTES = 256 << 20  # largest piece of page-locked memory for rows, in bytes; a power of two
STAGED_SHARE = 4  # the host's free memory, divided by the most that may be page-locked for rows
LEAST_ROWS = 256  # fewest rows in a slab or shard
MOST_GROUP = 4  # most slabs in a group; the lists of two groups are in memory while they are compared
MOST_BLOCK = 1 << 20  # most rows of the result that a task merges
WAKE_SECONDS = 0.1  # time after which a waiting thread checks for Ctrl-C

# Not measured: rows whose values may have overflowed or underflowed are rare.
READ_AGAIN = 1 << 20  # values of rows that are read again in one step, to decide whether a distance overflowed
