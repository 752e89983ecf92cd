"""Tuning constants of searches among sparse rows: they affect the speed, but no answer."""

# Not measured.
QUERY_BLOCK = 256  # queries per task, for which the inverted lists of a block of points stay in the second-level cache
REFINED_QUERIES = 16  # queries whose candidates are refined between two tests for Ctrl-C
ADDITION_SECONDS = 8e-10  # seconds per product that is added to the score of a pair
PAIR_SECONDS = 3e-10  # seconds per pair to initialise its score and to compare it with the threshold
ORDERED_ENTRIES = 1 << 14  # entries in a block that is sorted or looked up
# Ranks are stored in a table of all columns if it has at most LEAST_TABLE columns, or DENSE_TABLE times as many columns
# as the points have entries; otherwise only for the columns that occur, which are looked up by binary search.
DENSE_TABLE = 4
LEAST_TABLE = 1 << 16
