"""Tuning constants of searches among sparse rows: they affect the speed, but no answer."""

# Not measured.
QUERY_BLOCK = 256  # queries per task: enough that a block's inverted lists, once cached, are used many times
REFINED_QUERIES = 16  # queries whose candidates are refined between two tests for Ctrl-C
ADDITION_SECONDS = 8e-10  # seconds per product that is added to the score of a pair
PAIR_SECONDS = 3e-10  # seconds per pair to initialise its score and to compare it with the threshold
ORDERED_ENTRIES = 1 << 14  # entries in a block that is sorted or looked up
# Ranks are stored in a table of all columns if one of these limits allows it; otherwise only for the columns that
# occur, which are looked up by binary search.
DENSE_TABLE = 4  # maximum number of columns in the table, as a multiple of the number of the points' entries
LEAST_TABLE = 1 << 16  # maximum number of columns for which the table is used with any number of entries
