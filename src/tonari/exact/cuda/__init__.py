"""Brute force on CUDA: matrix units find candidates, float64 values order them, and a bound certifies each row.

Each folder imports only from folders below it:

    method.py      the registered method; dispatch.py runs the plan's route on the plan's devices
    replay/        stores the kernel launches of small searches, and runs them again if a search is repeated
    routes/        one search for each route: resident, streamed, host_refine, codes, multi_gpu
    attempts/      the ways to search rows, and the order of retries for rows not yet certified as exact
    coded.py       whether prepared points are kept as codes or streamed
    planning.py    chooses a plan among the divisions of a search (divisions.py), by memory and time (memory.py)
    screens/       low-precision lower bounds for all points, which leave few candidates
    refine/        computes the exact values of the candidates, orders them, and certifies rows
    rows/          the form of rows, its packed copies, and subsets of rows and columns
    plan.py        the plan: every choice of a search that is made before it begins
    kernels/       one kernel per file, in folders of the same names

docs/cuda.md has measurements, docs/exactness.md the proof.
"""
