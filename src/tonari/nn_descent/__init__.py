"""NN-Descent: neighbours of neighbours are likely to be neighbours. Approximate graphs.

    plan.py          list lengths, start and rounds, as planner.py chooses them
    memory.py        what that holds in memory
    entries.py       an entry of a list: an id, and a bit for what has not met the others yet
    method.py        the method as it is registered
    backend.py       what a device does: start, round, exact rows
    reference.py     the steps in plain NumPy: what a round is
    driver.py        rounds until a measured sample says that the recall is there
    report.py        what the graph tells about that
    intrinsic_dimension.py   how hard points will be
    cpu/, cuda/      the steps on either device

After wang2021 (fixed-size lists, new and old entries, merging), but in two phases without locks: all rows read the
lists of the round before and each writes its own, so that the same seed gives the same bits with any number of threads.
docs/graphs.md has the figures.
"""
