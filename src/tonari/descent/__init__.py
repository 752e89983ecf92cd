"""NN-Descent: neighbours of neighbours are likely to be neighbours. Approximate graphs, and the merging of graphs.

    lists.py         an entry: an id, and a bit for what has not met the others yet
    steps.py         what a device does: start, round, exact rows
    reference.py     the steps in plain NumPy: what a round is
    cpu.py           the steps on the CPU
        start.py, clusters.py, pieces.py, scores.py     the first lists: members of near clusters, by scores alone
        rounds.py                                       a round
    gpu/             the steps on CUDA
    run.py           rounds until a measured sample says that the recall is there
    report.py        what the graph tells about that
    approximate.py   what `knn_graph` does by it: arguments, the choice of a method
    merge.py         two graphs into one: only points of different sides meet

After wang2021 (fixed-size lists, new and old entries, merging), but in two phases without locks: all rows read the
lists of the round before and each writes its own, so that the same seed gives the same bits with any number of threads.
docs/graphs.md has the figures. `tonari.planning_descent` chooses list lengths, start and rounds.
"""
