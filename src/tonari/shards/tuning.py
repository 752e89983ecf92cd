"""Tuned numbers of graphs in a directory: sizes of shards and transfers, and numbers of attempts."""

# Case: shards 10m-clusters on cuda. Chosen on: not recorded.
COPIES = 2.2  # expected shards per row on the route "clusters"; the run determines the actual number
MOST_SHARDS = 2 * COPIES  # largest ratio of rows in all shards to rows of the source, before shards are divided instead
ROOM = 0.9  # the expected largest shard may have this share of the rows that fit
SPREAD = 1.05  # the largest shard may be larger than estimated from the sample by this factor
CENTRES_PER_SHARD = 32  # approximate; the total number of centres is between these:
CENTRES = (64, 2048)
TRAINED = 32  # rows per centre in the training of k-means
JUDGED = 1 << 15  # smallest number of rows from which the sizes of shards are estimated
PIECES = 256  # ranges of rows, evenly spaced, from which these rows are read
NEAR = 8  # near centres of a row that are considered
KMEANS_ROUNDS = 4
AXIS_STEPS = 16  # steps of the iteration for the first principal axis
HALVING_STEPS = 4  # steps of a bisection, each of which assigns rows to the nearer of two means
BALANCING_TRIES = 5  # attempts at shards of equal size, each with weights by the sizes of the one before
FULL = 0.95  # largest mean share of a shard that is used; shards that are fuller on average cannot be balanced
LEAST_CHANGE = 0.25  # smallest relative size by which an attempt changes a weight
MORE_SHARDS = 1.05  # factor on the number of shards if some are too large
MOST_TURNS = 16  # largest number of shards that divide the rows of one centre, relative to equal shares
MOST_MARGIN = 1.0
LEAST_MARGIN = 0.01  # if shards are too large, a margin below this becomes 0: no row is in two shards

# Not measured.
# Of the neighbours that may be missed: the share that may be missed because no shard has both ends, and the share that
# the graph of a shard may miss.
LOST_TO_CUTS = 0.5
LOST_IN_SHARDS = 0.5
KNOWN_OF_A_PAIR = 100  # true neighbours that measure the merge of two shards
MOST_SAMPLED = 1 << 14  # most sampled rows for them
GRAPH_WORK = 2  # work of building the graph of a shard, per row, relative to assigning a row to shards
READ_RATE = 1.5e9  # bytes per second read from files; a guess, for the choice of the route
TRUTH_TASKS = 4  # tasks, so that several workers can share them
SEGMENT_ROWS = 1 << 25  # rows of the result that are merged before their lists, which shards hold, are removed
TASK_SECONDS = 10.0  # seconds on a device to build and write the graph of a shard, which a killed build repeats
WRITE_RATE = 1.2e9  # bytes per second that all devices together write to the disk
TRUTH_ROWS = 1 << 26  # most rows that a task searches for the true neighbours of the samples
TRIES = 3  # tries of a task before its error is raised

# Not measured by a case, but by hand on an EPYC (Zen 4): lists of ten neighbours in 15 shards, one thread. Merging by
# blocks of 65,536, 32,768, 16,384, 8,192 and 4,096 rows takes 380, 330, 245, 240 and 275 ns per list.
MERGED_AT_ONCE = 1 << 14  # rows that a thread merges in one step: their lists fit into a cache
MERGING_THREADS = 16  # more threads wait for one another in Python

# Not measured by a case, but by hand on an EPYC (Zen 4): zlib computes checksums at 1.3 GB/s per thread, and the system
# writes 42 MB to its cache in 18 to 40 ms and to the disk in 17 to 26 ms.
CHECKED_AT_ONCE = 8 << 20  # smallest number of bytes whose checksum a thread computes in one step

# Not measured by a case, but by hand on four H100s and 64 cores: 8 million x 96 by 18 shards take 5.0 s on one device,
# 5.3 s on two and 7.1 s on four, and 40 million by 15 shards 13.6, 10.1 and 10.6 s.
SHARED_SECONDS = 0.2  # seconds of the host per shard, in Python, which the threads of all devices share

# Not measured: bounds of memory, and of the time that threads wait for one another.
DEALT_AT_ONCE = 1 << 14  # rows that a thread assigns to shards in one step
RENUMBERED_AT_ONCE = 1 << 18  # rows on a device that are renumbered in one step
TAKEN_AT_ONCE = 1 << 15  # rows that a thread copies in one step
PAIRED = 1 << 13  # neighbours that are paired in one step
SUMMED_BYTES = 4 << 20  # bytes of rows, as float64, that are added up in one step
BLOCK_BYTES = 256 << 20  # bytes of rows that an object is asked for in one call
STAGED_BYTES = 64 << 20  # page-locked bytes through which rows are copied to a device
LOCKED_BYTES = 256 << 20  # largest piece of page-locked memory for rows; a power of two
STAGED_SHARE = 4  # one part in this many of the host's free memory may be page-locked for rows
LEAST_ROWS = 256
MOST_GROUP = 4  # slabs in a group, whose lists are in memory while it is compared with another group
MOST_BLOCK = 1 << 20  # rows of the result that are merged in one step
WAKE_SECONDS = 0.1  # how often the waiting thread checks for Ctrl-C

# Not measured: rows whose values may have overflowed or underflowed are rare.
READ_AGAIN = 1 << 20  # neighbours of such rows that are read again in one step
