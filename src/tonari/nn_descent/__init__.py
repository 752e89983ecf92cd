"""NN-Descent: approximate k-NN graphs, improved by comparing points with the neighbours of their neighbours.

    plan.py          the record of a plan: list lengths, start, rounds
    planning/        makes the plan, and estimates the work of a run and the difficulty of a data set
    updates.py       the kinds of rounds that a plan can name ("pull", "gnnd"), and the parameters of "gnnd"
    memory.py        computes the memory that a plan needs
    entries.py       the entry of a list: an id, and a bit that marks it as new
    method.py        the method as registered
    backend.py       the steps that a device provides: start, round, exact neighbours of some rows
    reference.py     the steps in plain NumPy: the specification of a round
    driver.py        runs rounds until the recall, measured on a sample, is reached
    report.py        the recall and the rounds of a finished graph
    cpu/, cuda/      the steps on either device
    papers/          the rounds of "gnnd"

The algorithm follows wang2021 (fixed-size lists, new and old entries, merging), but its rounds need no locks: the
update of a row reads the lists of the previous round and writes only the row's own list. The same seed therefore gives
the same bits with any number of threads. On CUDA the update "gnnd" runs the paper's own rounds, with locks.
docs/nn-descent.md has the measurements.
"""
