"""Tuned numbers of searches among sparse rows: they affect the speed, but no answer."""

# Not measured.
QUERY_BLOCK = 256  # queries per task: they share the lists of a block of points in the second-level cache
REFINED_QUERIES = 16  # queries whose values are computed between two checks for Ctrl-C
ADDITION_SECONDS = 8e-10  # per product that is added to the sum of a pair
PAIR_SECONDS = 3e-10  # per pair, for its sum and its comparison with the threshold
ORDERED_ENTRIES = 1 << 14  # entries that are sorted or looked up at once
DENSE_TABLE = 4  # a table of all columns may have this many times the entries of the rows, else columns are looked up
LEAST_TABLE = 1 << 16  # or this many columns
