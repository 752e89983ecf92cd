"""Tuned numbers of graphs in a directory: sizes of shards and transfers, and numbers of attempts."""

# Case: shards 10m-clusters on cuda. Chosen on: not recorded.
COPIES = 2.2  # shards that a row is in, expected of the route by clusters; what it is, is found while it runs
MOST_SHARDS = 2 * COPIES  # rows in all shards per row of the source, before shards are cut instead
ROOM = 0.9  # of a shard's rows, that the expected largest shard may take
SPREAD = 1.05  # the largest shard may be larger than the sample says by this factor
CENTRES_PER_SHARD = 32  # about; between these numbers in all:
CENTRES = (64, 2048)
TRAINED = 32  # rows per centre that k-means sees
JUDGED = 1 << 15  # rows, at least, by which the sizes of shards are judged
PIECES = 256  # ranges of rows, evenly spaced, that they are taken from
NEAR = 8  # centres per row that are looked at
KMEANS_ROUNDS = 4
AXIS_STEPS = 16  # towards the first principal axis
HALVING_STEPS = 4  # towards halves that are near their own means
BALANCING_TRIES = 5  # to make shards equal, with weights by what the last one gave
FULL = 0.95  # of equal shards: fuller ones are not reached
LEAST_CHANGE = 0.25  # of a weight, in one of the tries
MORE_SHARDS = 1.05  # times as many, where some are too large
MOST_TURNS = 16  # times as many as equal shares would need
MOST_MARGIN = 1.0
LEAST_MARGIN = 0.01  # below which there are no copies, where shards are too large

# Not measured.
# Of the neighbours that may be missed: the share that may be missed because no shard has both ends, and the share that
# the graph of a shard may miss.
LOST_TO_CUTS = 0.5
LOST_IN_SHARDS = 0.5
KNOWN_OF_A_PAIR = 100  # true neighbours across two shards;
MOST_SAMPLED = 1 << 14  # rows of the sample for that
GRAPH_WORK = 2  # of a row of a shard, compared with that of assigning one
READ_RATE = 1.5e9  # bytes a second that come from files; a guess, for the choice of a route
TRUTH_TASKS = 4  # of which several workers take some each
TRIES = 3  # of a worker that dies

# Not measured: bounds of memory, and of the time that threads wait for one another.
DEALT_AT_ONCE = 1 << 14  # rows that a thread deals at a time
RENUMBERED_AT_ONCE = 1 << 18  # rows on a device
MERGED_AT_ONCE = 1 << 16  # rows, at least, that a thread merges at a time: threads take turns in Python
TAKEN_AT_ONCE = 1 << 15  # rows copied by a thread at a time
PAIRED = 1 << 13  # neighbours at once
SUMMED_BYTES = 4 << 20  # of rows, as float64, that are added up at a time
BLOCK_BYTES = 256 << 20  # of rows that an object is asked for at once
STAGED_BYTES = 64 << 20  # page-locked, on the way to a device
STAGED_SHARE = 4  # of the host's free memory, one part may be page-locked for rows
LEAST_ROWS = 256
MOST_GROUP = 4  # slabs whose lists are in memory while they meet those of another group
MOST_BLOCK = 1 << 20  # rows of the result that are joined at a time
WAKE_SECONDS = 0.1  # how often the waiting thread hears of Ctrl-C

# Not measured: rows whose values may have overflowed or underflowed are rare.
READ_AGAIN = 1 << 20  # numbers of their neighbours that are read again at a time
